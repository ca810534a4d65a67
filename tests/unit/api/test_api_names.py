"""The names of the API, what they cost, and the page about them."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import pickle
import subprocess
import sys
import typing
from pathlib import Path
from types import ModuleType

import pytest

import harness
from harness import errors
from harness.api import values
from harness.api.project import Project

ROOT = Path(__file__).resolve().parents[3]
NAMES = {
    "AuthorityError",
    "Change",
    "ContainmentError",
    "Decision",
    "Diff",
    "HarnessError",
    "InputError",
    "Operation",
    "Plan",
    "Project",
    "Run",
    "SandboxUnavailableError",
    "StateError",
    "VerificationError",
    "open_project",
}


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_these_are_all_the_names() -> None:
    assert set(harness.__all__) == NAMES
    found: dict[str, object] = {}
    exec("from harness import *", found)  # noqa: S102 - what a star import gives is the question
    assert set(found) - {"__builtins__"} == NAMES
    assert set(dir(harness)) == NAMES | {"__version__"}


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match=r"^module 'harness' has no attribute 'Approved'$"):
        _ = harness.Approved  # type: ignore[attr-defined]


def test_importing_it_imports_nothing_of_it() -> None:
    code = "import sys, harness; print(sorted(n for n in sys.modules if n.startswith('harness')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['harness', 'harness.errors']"


def test_every_family_of_errors_is_a_name() -> None:
    families = {item.__name__ for item in errors.HarnessError.__subclasses__()}
    assert families - NAMES == {"AcquisitionError"}  # nothing here acquires anything


def test_everything_is_typed_and_documented() -> None:
    functions = [harness.open_project]
    functions += [item for _, item in inspect.getmembers(Project, inspect.isfunction)]
    for function in functions:
        if function.__name__.startswith("_"):
            continue
        hints = typing.get_type_hints(function)
        assert set(hints) - {"return"} == set(inspect.signature(function).parameters) - {"self"}
        text = inspect.getdoc(function) or ""
        assert "Raises:" in text, function
        for name in set(hints) - {"return", "given", "subject"}:
            assert f"    {name}: " in text, f"{function.__name__}: {name}"
    assert (ROOT / "harness" / "py.typed").is_file()


def test_values_are_frozen_plain_and_say_what_each_field_is() -> None:
    kinds = [getattr(harness, name) for name in sorted(NAMES)]
    made = [item for item in kinds if isinstance(item, type) and dataclasses.is_dataclass(item)]
    assert {item.__name__ for item in made} == {
        name for name, item in vars(values).items() if dataclasses.is_dataclass(item)
    }
    for item in made:
        text = inspect.getdoc(item) or ""
        for field in dataclasses.fields(item):
            assert f"    {field.name}: " in text, f"{item}: {field.name}"
    change = harness.Change(path="a", op="add", mode="100644", digest="")
    assert pickle.loads(pickle.dumps(change)) == change  # noqa: S301 - our own bytes
    with pytest.raises(dataclasses.FrozenInstanceError):
        change.path = "b"  # type: ignore[misc]


def test_a_run_names_each_diff_once() -> None:
    diff = "sha256:" + "0" * 64
    operations = [
        harness.Operation(name=name, kind="passed", outcome="passed", diff=found)
        for name, found in (("a", diff), ("b", ""), ("c", diff))
    ]
    run = harness.Run(id="r", plan="p", kind="passed", operations=tuple(operations))
    assert run.passed
    assert run.diffs == (diff,)
    assert not dataclasses.replace(run, kind="failed").passed


def test_the_page_is_that_of_the_code() -> None:
    for path, content in script("generate_python").render_all():
        assert path.read_bytes() == content, f"run python docs/generate_python.py: {path.name}"


def test_the_page_names_everything() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
    for name in NAMES:
        assert f"### {name}\n" in page or f"| `{name}` |" in page or name == "Project", name


def test_opening_no_project_is_refused_and_makes_no_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    with pytest.raises(harness.InputError, match=r"^project: no harness.yaml in "):
        harness.open_project(tmp_path)
    assert list(tmp_path.iterdir()) == []
