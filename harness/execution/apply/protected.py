"""Places in a project that an apply never writes: where git keeps itself, and where hooks lie.

`.git` under any spelling is refused by `find_obstacles`. This module finds the places with other
names: a git folder that a `.git` file or link points to, `core.hooksPath` (of the repository, the
user and the host), and files of the tree that a hook is a link to. A hook runs on the next commit
with all rights of the user, outside any box.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.errors import StateError
from harness.execution.apply.git_config import config_values, expand_home
from harness.model.changeset import Change

_POINTER_BYTES = 8192


def find_protected(root: Path, environment: Mapping[str, str]) -> frozenset[bytes]:
    """Return the protected paths inside the project, relative to its root.

    Args:
        root: the project's root folder; it may lie inside a larger repository.
        environment: names the user's configuration: HOME, XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL.

    Raises:
        StateError: git's own files are there but can't be read.
    """
    real = os.path.realpath(root)
    inside: set[bytes] = set()
    try:
        for place in _places(Path(real), environment):
            # As named, and as it is after links: neither may be replaced.
            for spelling in (os.path.normpath(place), os.path.realpath(place)):
                if spelling == real or spelling.startswith(real.rstrip("/") + "/"):
                    relative = os.path.relpath(spelling, real)
                    inside.add(b"" if relative == "." else os.fsencode(relative))
    except OSError as error:
        raise StateError(f"git folder of the project: {error.strerror}") from error
    return frozenset(inside)


def is_protected(change: Change, protected: frozenset[bytes]) -> bool:
    """Tell whether a change is at or below a protected place, or takes a folder above one away."""
    path = change.path
    stays = change.after is not None and change.after.type == "folder"
    return any(
        not place
        or path == place
        or path.startswith(place + b"/")
        or (place.startswith(path + b"/") and not stays)
        for place in protected
    )


def _places(root: Path, environment: Mapping[str, str]) -> Iterator[str]:
    top = next((folder for folder in (root, *root.parents) if _exists(folder / ".git")), None)
    configs = _user_configs(environment)
    home = environment.get("HOME", "")
    if top is not None:
        git_folder = _git_folder(top)
        common = _common_folder(git_folder)
        yield str(git_folder)
        yield str(common)
        yield from _hook_links(common / "hooks")
        configs += [common / "config", git_folder / "config.worktree"]
    for config in configs:
        for value in config_values(config, "core.hookspath", home=home):
            place = (top or root) / expand_home(value, home)
            yield str(place)
            yield from _hook_links(place)


def _user_configs(environment: Mapping[str, str]) -> list[Path]:
    home = environment.get("HOME", "")
    base = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    named = environment.get("GIT_CONFIG_GLOBAL", "")
    found = ["/etc/gitconfig", f"{base}/git/config" if base else "", named]
    found.append(f"{home}/.gitconfig" if home else "")
    return [Path(name) for name in found if name]


def _git_folder(top: Path) -> Path:
    dot_git = top / ".git"
    if dot_git.is_dir():
        return Path(os.path.realpath(dot_git))
    text = _pointer(dot_git)
    return Path(os.path.realpath(top / text.removeprefix("gitdir:").strip()))


def _common_folder(git_folder: Path) -> Path:
    pointer = git_folder / "commondir"
    return (
        Path(os.path.realpath(git_folder / _pointer(pointer))) if _exists(pointer) else git_folder
    )


def _hook_links(hooks: Path) -> Iterator[str]:
    """Yield where a hooks folder, and the links in it, lead."""
    yield str(hooks)
    if hooks.is_dir():
        with os.scandir(hooks) as entries:
            yield from (entry.path for entry in entries if entry.is_symlink())


def _pointer(path: Path) -> str:
    with path.open("rb") as stream:
        return os.fsdecode(stream.read(_POINTER_BYTES)).strip()


def _exists(path: Path) -> bool:
    return os.path.lexists(path)
