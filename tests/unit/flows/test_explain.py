"""What a recipe comes to: values with their source, operations, order, scripts, files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.execution.snapshot.take import take_snapshot
from harness.flows.explain import Explained, explain_recipe
from harness.flows.session import Session, open_session

HOST = "version: 1\nisolation: {tmp_exec: false, limits: {cpus: 8, pids: 100}}\n"
POLICY = """\
version: 1
isolation:
  limits: {memory: 1GiB, artifact: 1MiB}
  allow_scripts: true
approval: {reviewers: reviewers}
"""
RECIPE = """\
version: 1
kind: test
description: Run.
image: img-${matrix.v}
needs: [other]
matrix: {v: [a, b]}
parameters: {p: {default: x}, q: {}}
steps:
  - run: [sh, -c, 'echo "$1"', sh, "${param.p}", "${param.q}"]
    timeout: 30s
  - run: [ls]
    allowed_exit_codes: [0, 2]
inputs: {include: [src, "*.md"], exclude: [src/big]}
outputs:
  - {name: one, path: out/a, max_size: 1KiB, type: text/plain}
  - {name: two, path: out/b}
limits: {wall: 5m}
"""
OTHER = """\
version: 1
kind: test
description: Run.
image: python
steps: [{run: [ls]}]
"""
FILES = {
    "README.md": b"# x\n",
    ".gitignore": b"*.log\n",
    "src/a.py": b"1\n",
    "src/b.log": b"log\n",
    "src/big/c": b"c",
    "src/id_rsa": b"k",
    "docs/d.txt": b"d",
    "e.txt": b"e",
    "run.log": b"e",
}


def write_files(root: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    texts = {
        "config/sealed-harness/policy.yaml": HOST,
        "project/harness.yaml": "version: 1\nname: sample\n",
        "project/policies/reviewers": "ada ssh-ed25519 "
        "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n",
        "project/policies/default.yaml": POLICY,
        "project/recipes/test.yaml": RECIPE,
        "project/recipes/other.yaml": OTHER,
    }
    write_files(tmp_path, {name: text.encode() for name, text in texts.items()})
    write_files(tmp_path / "project", FILES)
    return open_session(tmp_path / "project")


def sources(explained: Explained) -> dict[str, tuple[str, str]]:
    return {
        item.field: (item.value, f"{item.source} {item.where}".rstrip())
        for item in explained.values
    }


def test_every_value_has_its_source(session: Session) -> None:
    found = sources(explain_recipe(session, "test"))
    policy, recipe = "policy policies/default.yaml", "recipe recipes/test.yaml"
    assert found["limits.wall"] == ("5m", f"{recipe}:17:10")
    assert found["limits.memory"] == ("1GiB", f"{policy}:3:12")
    assert found["limits.pids"] == ("100", "host policy.yaml:2:48")
    assert found["limits.cpus"] == ("2", "default"), "what binds nobody is not the source"
    assert found["limits.idle"] == ("none", "default")
    assert found["limits.artifact"] == ("1MiB", f"{policy}:3:26")
    assert found["isolation.tmp_exec"] == ("false", "host policy.yaml:2:13")
    assert found["isolation.allow_scripts"] == ("true", f"{policy}:4:3")
    assert found["isolation.admit_secrets"] == ("none", "default")
    assert found["workspace"] == ("auto", "default")
    assert found["image"] == ("img-a, img-b", f"{recipe}:4:1")
    assert found["policy"] == ("default", "default")
    assert found["steps[0].timeout"] == ("30s", f"{recipe}:10:5")
    assert found["steps[0].allowed_exit_codes"] == ("0", "default")
    assert found["steps[1].timeout"] == ("none", "default")
    assert found["steps[1].allowed_exit_codes"] == ("0, 2", f"{recipe}:12:5")
    assert found["outputs[0].max_size"] == ("1KiB", f"{recipe}:15:30")
    assert found["outputs[0].type"] == ("text/plain", f"{recipe}:15:46")
    assert found["outputs[1].max_size"] == ("1MiB", f"{policy}:3:26")
    assert found["outputs[1].type"] == ("none", "default")
    assert found["parameters.p"] == ("x", f"{recipe}:7:18")
    assert found["parameters.q"] == ("to be chosen", f"{recipe}:7:31")


def test_operations_order_and_scripts(session: Session) -> None:
    explained = explain_recipe(session, "test")
    assert explained.operations == ("test:v=a", "test:v=b")
    assert explained.order == ("other", "test")
    (script,) = explained.scripts
    assert (script.step, script.reason) == (0, "shell sh")


@pytest.mark.parametrize("warm", [False, True])
def test_files_that_enter_and_why_others_do_not(session: Session, *, warm: bool) -> None:
    recipe = (("src", "*.md"), ("src/big",))
    if warm:
        take_snapshot(
            session.project.root,
            state=session.state,
            project=session.project.id,
            owner=(1, 1),
            include=recipe[0],
            exclude=recipe[1],
        )
    before = sorted(session.state.root.rglob("*"))
    files = explain_recipe(session, "test").files
    assert sorted(session.state.root.rglob("*")) == before
    assert (files.files, files.bytes) == (3, sum(len(FILES[n]) for n in ENTER))
    assert {item.path.decode(): item.reason for item in files.left_out} == {
        "docs/d.txt": "not included by the recipe",
        "e.txt": "not included by the recipe",
        "harness.yaml": "not included by the recipe",
        "policies/default.yaml": "not included by the recipe",
        "policies/reviewers": "not included by the recipe",
        "recipes/other.yaml": "not included by the recipe",
        "recipes/test.yaml": "not included by the recipe",
        "run.log": "not included by the recipe",
        "src/b.log": "ignored by git",
        "src/big/": "excluded by the recipe",
        "src/id_rsa": "looks like a secret: SSH private key",
    }


ENTER = ("README.md", ".gitignore", "src/a.py")


def test_without_include_what_git_ignores_is_named_so(session: Session) -> None:
    files = explain_recipe(session, "other").files
    assert {item.path.decode(): item.reason for item in files.left_out} == {
        "run.log": "ignored by git",
        "src/b.log": "ignored by git",
        "src/id_rsa": "looks like a secret: SSH private key",
    }


def test_mistakes_are_refused_as_they_are_when_sealing(session: Session) -> None:
    (session.project.recipes / "other.yaml").write_text(OTHER + "needs: [nope]\nwat: 1\n")
    with pytest.raises(InputError, match="recipes are not valid: 2 mistakes"):
        explain_recipe(session, "test")
    (session.project.recipes / "other.yaml").write_text(OTHER)
    (session.project.root / "src" / "link").symlink_to("/etc/passwd")
    with pytest.raises(InputError) as caught:
        explain_recipe(session, "test")
    assert "src/link" in str(caught.value.issues[0])
