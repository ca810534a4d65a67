"""Data that comes with the package: image definitions, policies, recipes.

In a checkout they lie beside the package; a wheel carries them in `harness/_data`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from harness.errors import StateError

_PACKAGE = Path(__file__).resolve().parent.parent


def find_resources(
    kind: Literal["images", "policies", "recipes"], *, package: Path = _PACKAGE
) -> Path:
    """Return the folder of one kind of data.

    Args:
        kind: which.
        package: the folder of the package `harness`.

    Raises:
        StateError: the installation lacks it.
    """
    for folder in (package / "_data" / kind, package.parent / kind):
        if folder.is_dir():
            return folder
    raise StateError(
        f"installation: the folder {kind} is missing",
        hint="install the package again: its data files are part of it",
    )
