"""Sealed Harness: sealed, approved, offline runs of recipes over real code.

Knows: the version, and the names of the Python API. Refuses: importing anything heavy; a name of
the API is imported when it is used.
Flow: `python -m harness` and the `harness` command start in `harness.__main__`; scripts begin with
`harness.open_project()`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from harness.errors import (
    AuthorityError,
    ContainmentError,
    HarnessError,
    InputError,
    SandboxUnavailableError,
    StateError,
    VerificationError,
)

if TYPE_CHECKING:
    from harness.api.project import Project, open_project
    from harness.api.values import Change, Decision, Diff, Operation, Plan, Run

__version__ = "0.1.0"

__all__ = [
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
]

_PROJECT = ("Project", "open_project")


if not TYPE_CHECKING:  # a checker would take every name for one of ours

    def __getattr__(name: str) -> Any:
        """Import a name of the API when it is first used (PEP 562)."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = "harness.api.project" if name in _PROJECT else "harness.api.values"
        value = getattr(importlib.import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
