"""What an image definition says: `image.yaml` and the requirements beside it, read strictly.

Nothing in it assumes a language: `python` is for images that get wheels.

Rule: every requirement is pinned by version and SHA-256. Options, links and paths are refused, so
that a definition can't name another source of packages. pip never sees the file itself, only the
lines that were read here, so that no spelling can mean one thing to us and another to pip.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.errors import InputError, Issue
from harness.model.files.fields import child, text, texts
from harness.model.files.file_shape import check_shape
from harness.model.files.mistakes import Mistakes
from harness.model.files.schema_parts import Schema
from harness.model.files.strict_yaml import Node, parse_yaml

_ARGUMENT: Schema = {"type": "string", "minLength": 1, "maxLength": 4096}
_BASE: Schema = {
    "type": "object",
    "description": "The Debian system below.",
    "additionalProperties": False,
    "required": ["suite", "packages"],
    "properties": {
        "suite": {
            "type": "string",
            "description": "Debian release, as debootstrap calls it.",
            "pattern": "^[a-z]{3,32}$",
            "examples": ["bookworm"],
        },
        "packages": {
            "type": "array",
            "description": "Debian packages on top of the smallest system.",
            "minItems": 1,
            "maxItems": 200,
            "uniqueItems": True,
            "items": {
                "type": "string",
                "pattern": "^[a-z0-9][a-z0-9.+-]{1,63}$",
                "examples": ["git"],
            },
            "examples": [["python3", "git"]],
        },
    },
}
_PYTHON: Schema = {
    "type": "object",
    "description": "The wheels in it.",
    "additionalProperties": False,
    "required": ["version", "requirements"],
    "properties": {
        "version": {
            "type": "string",
            "description": "Version of the suite's python3.",
            "pattern": "^3[.][1-9][0-9]?$",
            "examples": ["3.11"],
        },
        "requirements": {
            "type": "string",
            "description": "Requirements file beside this one.",
            "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
            "examples": ["requirements.lock"],
        },
    },
}
IMAGE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["version", "description", "base", "check"],
    "properties": {
        "version": {"type": "integer", "description": "Version of this format.", "const": 1},
        "description": {
            "type": "string",
            "description": "One line for people.",
            "minLength": 1,
            "maxLength": 200,
        },
        "base": _BASE,
        "python": _PYTHON,
        "check": {
            "type": "array",
            "description": "Command that must succeed in the finished image, offline.",
            "minItems": 1,
            "maxItems": 100,
            "items": _ARGUMENT,
            "examples": [["python3", "-m", "pytest", "--version"]],
        },
    },
}
"""The fields of `image.yaml`; docs/reference/images.md explains each."""

_REQUIREMENT = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!+-]+(?: --hash=sha256:[0-9a-f]{64})+"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonPart:
    """The wheels of an image.

    Attributes:
        version: `3.11` say: what the wheels are chosen for.
        requirements: name of the requirements file beside `image.yaml`.
    """

    version: str
    requirements: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionFile:
    """What `image.yaml` says.

    Attributes:
        description: one line for people.
        suite: the Debian release of the base.
        packages: Debian packages on top of the smallest system.
        python: its wheels; None for an image without.
        check: argv run in the finished image, offline; exit 0 means usable.
    """

    description: str
    suite: str
    packages: tuple[str, ...]
    python: PythonPart | None
    check: tuple[str, ...]


def read_definition_file(data: bytes, file: str) -> DefinitionFile:
    """Read an `image.yaml`.

    Args:
        data: its bytes.
        file: its path, for messages.

    Raises:
        InputError: every mistake in it.
    """
    mistakes = Mistakes(file)
    root = check_shape(parse_yaml(data, mistakes), IMAGE, mistakes)
    mistakes.stop_if_any("image definition is not valid")
    return DefinitionFile(
        description=text(child(root, "description")),
        suite=text(child(root, "base", "suite")),
        packages=tuple(name for name, _ in texts(child(root, "base", "packages"))),
        python=_read_python(root),
        check=tuple(argument for argument, _ in texts(child(root, "check"))),
    )


def _read_python(root: Node | None) -> PythonPart | None:
    if child(root, "python") is None:
        return None
    return PythonPart(
        version=text(child(root, "python", "version")),
        requirements=text(child(root, "python", "requirements")),
    )


def read_requirements(data: bytes, file: str) -> tuple[str, ...]:
    """Read a requirements file in which every line is pinned by version and hash.

    Args:
        data: its bytes; a backslash at the end of a line continues it.
        file: its path, for messages.

    Returns:
        Each requirement on one line.

    Raises:
        InputError: every line that is something else, or no requirement at all.
    """
    issues: list[Issue] = []
    lines = _logical_lines(data.decode("utf-8", "replace"))
    for number, requirement in lines:
        if not _REQUIREMENT.fullmatch(requirement):
            issues.append(
                Issue(
                    message=f"requirement {requirement.split(' ')[0]!r:.80} is not pinned by hash",
                    where=f"{file}:{number}:1",
                    fix="NAME==VERSION --hash=sha256:HEX, and nothing else",
                )
            )
    if not lines:
        issues.append(Issue(message="expected at least one requirement", where=f"{file}:1:1"))
    if issues:
        raise InputError("requirements are not all pinned", issues=tuple(issues))
    return tuple(requirement for _, requirement in lines)


def _logical_lines(content: str) -> list[tuple[int, str]]:
    """Return each requirement, on one line, with the number of its first line."""
    found: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, raw in enumerate(content.splitlines(), 1):
        line = "" if raw.lstrip().startswith("#") else raw  # a comment never continues
        start = start if pending else number
        pending += line.removesuffix("\\") + " "
        if not line.endswith("\\"):
            found.append((start, " ".join(pending.split())))
            pending = ""
    found.append((start, " ".join(pending.split())))
    return [(number, line) for number, line in found if line]
