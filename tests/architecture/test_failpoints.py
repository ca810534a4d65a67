"""No rename, engine call or ledger append without a failpoint; each scanner catches a violation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.ledger.log import Ledger
from harness.store import failpoints
from tests.architecture.source import calls, functions, modules, spelling
from tests.fakes.ledger_keys import MemoryKeys, key_of

DURABLE = "harness/store/durable.py"
DOOR = "docker_calls.py"
ADAPTER = "docker_"
"""How the names of the adapter's modules begin, wherever they lie."""

FOLDER = "harness/ledger/folder.py"
POINT = "pass_failpoint"

_RENAMES = {"os.rename", "os.replace", "os.renames", "os.link", "shutil.move"}
_RENAME_NAMES = {"rename", "renames", "replace", "link", "move"}
_RENAME_METHODS = {"rename", "renames", "hardlink_to", "link_to"}
_HOLDERS = {"__init__", "close", "_call"}
"""Methods of the door that may touch the SDK's client."""


# ---- renames ----


def is_rename(name: str, call: ast.Call) -> bool:
    """Tell whether a call renames, replaces or links a path.

    `str.replace` takes two arguments and `dataclasses.replace` a keyword; `Path.replace` takes one.
    """
    if name in _RENAMES:
        return True
    method = name.rpartition(".")[2] if "." in name else ""
    if method == "replace":
        return len(call.args) == 1 and not call.keywords
    return method in _RENAME_METHODS


def stray_renames(path: str, tree: ast.Module) -> list[str]:
    found = [f"{path}:{call.lineno}: {name}" for name, call in calls(tree) if is_rename(name, call)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "shutil"):
            found += [
                f"{path}:{node.lineno}: from {node.module} import {item.name}"
                for item in node.names
                if item.name in _RENAME_NAMES
            ]
    return found


def unguarded(function: ast.FunctionDef) -> list[str]:
    """Return the renames of a function without a failpoint before and after."""
    points = [index for index, part in enumerate(function.body) if _passes_point(part)]
    return [
        f"{function.name}:{call.lineno}: {name}"
        for index, part in enumerate(function.body)
        for name, call in calls(part)
        if is_rename(name, call)
        and not (any(p < index for p in points) and any(p > index for p in points))
    ]


def _passes_point(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and spelling(statement.value.func) == POINT
    )


def test_only_one_module_renames() -> None:
    found = [
        text for path, tree in modules() if path != DURABLE for text in stray_renames(path, tree)
    ]
    assert found == []


def test_every_rename_passes_a_point_before_and_after() -> None:
    tree = dict(modules())[DURABLE]
    assert len(stray_renames(DURABLE, tree)) >= 3
    assert [text for function in functions(tree) for text in unguarded(function)] == []


@pytest.mark.parametrize(
    "planted",
    [
        "os.rename(a, b)",
        "os.replace(a, b, src_dir_fd=1)",
        "os.renames(a, b)",
        "os.link(a, b)",
        "shutil.move(a, b)",
        "path.rename(other)",
        "Path(a).replace(b)",
        "path.hardlink_to(other)",
        "from os import replace",
        "from shutil import move as go",
    ],
)
def test_the_scanner_sees_a_planted_rename(planted: str) -> None:
    assert len(stray_renames("x.py", ast.parse(planted))) == 1


@pytest.mark.parametrize(
    "harmless", ["text.replace('a', 'b')", "replace(value, name=1)", "dataclasses.replace(v, a=1)"]
)
def test_the_scanner_leaves_text_and_values_alone(harmless: str) -> None:
    assert stray_renames("x.py", ast.parse(harmless)) == []


def test_the_scanner_sees_a_rename_without_its_points() -> None:
    late = "def f():\n    os.replace(a, b)\n    pass_failpoint('x')\n"
    early = "def f():\n    pass_failpoint('x')\n    if a:\n        os.replace(a, b)\n"
    both = "def f():\n    pass_failpoint('x')\n    os.replace(a, b)\n    pass_failpoint('y')\n"
    found = [len(unguarded(next(functions(ast.parse(text))))) for text in (late, early, both)]
    assert found == [1, 1, 0]


# ---- engine calls ----


def stray_engine_calls(path: str, tree: ast.Module) -> list[str]:
    """Return what reaches the Docker SDK's client elsewhere than in its door."""
    found: list[str] = []
    holders = {
        id(node)
        for function in functions(tree)
        if _name(path) == DOOR and function.name in _HOLDERS
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="_client") if id(node) not in holders:
                found.append(f"{path}:{node.lineno}: {spelling(node)}")
            case ast.Attribute(attr="APIClient" | "DockerClient" | "from_env") if (
                id(node) not in holders
            ):
                found.append(f"{path}:{node.lineno}: {spelling(node)}")
            case ast.Constant(value="_client"):
                found.append(f"{path}:{node.lineno}: _client by name")
            case ast.Import() | ast.ImportFrom() if not _name(path).startswith(ADAPTER):
                found += [f"{path}:{node.lineno}: docker" for name in _imported(node)]
            case _:
                pass
    return found


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [item.name for item in node.names] if isinstance(node, ast.Import) else [node.module]
    yield from (name for name in names if name and name.split(".")[0] == "docker")


def test_every_engine_call_goes_through_the_door() -> None:
    found = [text for path, tree in modules() for text in stray_engine_calls(path, tree)]
    assert found == []


def test_the_door_passes_points() -> None:
    (tree,) = (tree for path, tree in modules() if _name(path) == DOOR)
    door = {function.name: function for function in functions(tree)}
    start = [index for index, part in enumerate(door["_call"].body) if _passes_point(part)]
    work = [
        index
        for index, part in enumerate(door["_call"].body)
        if any(name == "work" for name, _ in calls(part))
    ]
    assert len(work) == 1
    assert start[0] < work[0] < start[-1]
    made = [
        index
        for index, part in enumerate(door["__init__"].body)
        if any(name == "docker.APIClient" for name, _ in calls(part))
    ]
    assert any(_passes_point(part) for part in door["__init__"].body[: made[0]])


@pytest.mark.parametrize(
    ("path", "planted"),
    [
        (f"{ADAPTER}engine.py", "class E(D):\n    def start(self):\n        self._client.start()"),
        (f"{ADAPTER}engine.py", "client = docker.APIClient()"),
        (f"{ADAPTER}engine.py", "client = docker.from_env()"),
        (f"{ADAPTER}engine.py", "getattr(self, '_client').start()"),
        (DOOR, "class D:\n    def other(self):\n        self._client.start()"),
        ("harness/flows/run.py", "import docker"),
        ("harness/flows/run.py", "from docker.errors import APIError"),
    ],
)
def test_the_scanner_sees_a_planted_engine_call(path: str, planted: str) -> None:
    assert len(stray_engine_calls(path, ast.parse(planted))) == 1


# ---- ledger appends ----


def unguarded_appends(path: str, tree: ast.Module) -> list[str]:
    """Return functions that open a file to append, or cut one, without a point before it."""
    found = []
    for function in functions(tree):
        points = [call.lineno for name, call in calls(function) if name == POINT]
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and node.attr in ("O_APPEND", "ftruncate"):
                guarded = path == FOLDER and any(line < node.lineno for line in points)
                if not guarded:
                    found.append(f"{path}:{function.name}:{node.lineno}: {node.attr}")
    return found


def test_only_the_ledger_appends_and_only_past_a_point() -> None:
    found = [text for path, tree in modules() for text in unguarded_appends(path, tree)]
    assert found == []


def test_the_scanner_sees_a_planted_append() -> None:
    planted = "def f():\n    os.open(p, os.O_WRONLY | os.O_APPEND)\n    pass_failpoint('x')\n"
    assert len(unguarded_appends(FOLDER, ast.parse(planted))) == 1
    guarded = f"def f():\n    {POINT}('x')\n    os.open(p, os.O_WRONLY | os.O_APPEND)\n"
    assert unguarded_appends(FOLDER, ast.parse(guarded)) == []
    assert len(unguarded_appends("harness/flows/run.py", ast.parse(guarded))) == 1


def test_an_append_passes_its_points_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(1)
    folder = tmp_path / "ledger"
    folder.mkdir(mode=0o700)
    ledger = Ledger(folder, MemoryKeys(key), now=lambda: datetime(2026, 1, 31, tzinfo=UTC))
    ledger.append("seal", "done", project="p", body={})

    log = tmp_path / "points"
    monkeypatch.setattr(failpoints, "_LOG", str(log))
    monkeypatch.setattr(failpoints, "_ARMED", True)
    ledger.append("seal", "done", project="p", body={})
    assert [line.split(" ")[1] for line in log.read_text().splitlines()] == [
        "ledger.append.write",
        "ledger.append.fsync",
        "ledger.append.checkpoint",
        "rename.before",
        "rename.after",
        "ledger.append.done",
    ]
