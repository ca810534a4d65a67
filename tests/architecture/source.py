"""The package's own source as syntax trees, for tests about its shape."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def modules(folder: str = "harness") -> Iterator[tuple[str, ast.Module]]:
    """Yield every module below a folder of the project, by its path from the root."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8"))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield every function and method; nothing in the package is asynchronous."""
    for node in ast.walk(tree):
        assert not isinstance(node, ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef):
            yield node


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call with its dotted spelling, as `os.replace` or `?.rename`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield spelling(node.func), node


def spelling(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{spelling(node.value)}.{node.attr}"
    return "?"
