"""The project file, `harness.yaml`: marks a folder as a project and names its parts."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.files.fields import child, text
from harness.model.files.file_schemas import PROJECT
from harness.model.files.file_shape import check_shape
from harness.model.files.mistakes import Mistakes
from harness.model.files.strict_yaml import parse_yaml

PROJECT_FILE = "harness.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """A project file, read and checked.

    Attributes:
        name: the project's name, for people.
        recipes: folder of its recipes, relative to the project's root.
        policies: folder of its policies, relative to the project's root.
    """

    name: str
    recipes: str
    policies: str


def read_project_file(data: bytes, file: str) -> ProjectFile:
    """Read a project file.

    Args:
        data: its bytes.
        file: its path, for messages.

    Raises:
        InputError: every mistake in it.
    """
    mistakes = Mistakes(file)
    root = check_shape(parse_yaml(data, mistakes), PROJECT, mistakes)
    mistakes.stop_if_any("project file is not valid")
    return ProjectFile(
        name=text(child(root, "name")),
        recipes=text(child(root, "recipes"), "recipes"),
        policies=text(child(root, "policies"), "policies"),
    )
