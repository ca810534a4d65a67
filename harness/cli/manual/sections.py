"""The sections of a page, in the order of man-pages(7), for `--help` and for the man pages."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cli.manual.page import ENVIRONMENT, FILES, Page
from harness.cli.manual.pages import PAGES

Rows = Sequence[tuple[str, str]]


def arguments_of(command: str) -> Rows:
    """Return the arguments of a command with their meaning."""
    page = PAGES.get(command)
    return list(page.arguments.items()) if page else []


def sections_of(command: str) -> list[tuple[str, Rows]]:
    """Return what follows a command's options: titles, each with its rows of two columns."""
    page = PAGES.get(command)
    if page is None:
        return []
    found: list[tuple[str, Rows]] = [
        ("Exit codes", [(str(code), text) for code, text in page.all_exits.items()]),
        ("Environment", [(name, ENVIRONMENT[name]) for name in _variables(page)]),
        ("Files", [(name, FILES[name]) for name in page.files]),
    ]
    return [(title, rows) for title, rows in found if rows]


def examples_of(command: str) -> Rows:
    """Return the examples: what for, and the command line."""
    page = PAGES.get(command)
    return page.examples if page else ()


def related_to(command: str) -> tuple[str, ...]:
    """Return the commands to look at next, each as it is typed."""
    page = PAGES.get(command)
    return tuple(f"harness {other}" for other in page.see) if page else ()


def _variables(page: Page) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*page.environment, "HARNESS_DEBUG")))
