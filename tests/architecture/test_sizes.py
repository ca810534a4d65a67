"""Small files, small functions."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.source import ROOT, functions, modules

FILE_LINES, FUNCTION_LINES = 400, 60
FOLDERS = ("harness", "images", "docs")


def long_functions(path: str, tree: ast.Module) -> list[str]:
    return [
        f"{path}:{function.name}: {length} lines"
        for function in functions(tree)
        if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_are_small(folder: str) -> None:
    lengths = {
        path: len((ROOT / path).read_text("utf-8").splitlines()) for path, _ in modules(folder)
    }
    assert lengths
    assert {path: lines for path, lines in lengths.items() if lines > FILE_LINES} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_functions_are_small(folder: str) -> None:
    found = [text for path, tree in modules(folder) for text in long_functions(path, tree)]
    assert found == []


def test_the_ruler_measures() -> None:
    body = "    x = 1\n" * FUNCTION_LINES
    assert long_functions("x.py", ast.parse(f"def f():\n{body}")) == ["x.py:f: 61 lines"]


def test_every_package_says_what_it_knows_refuses_and_does() -> None:
    for path, tree in modules():
        if path.endswith("/__init__.py") and path != "harness/__init__.py":
            text = ast.get_docstring(tree) or ""
            assert all(word in text for word in ("Knows:", "Refuses:", "Flow:")), path
            assert len(tree.body) == 1, f"{path}: expected nothing but its docstring"
