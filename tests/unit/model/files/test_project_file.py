from __future__ import annotations

import pytest

from harness.errors import InputError
from harness.model.files.project_file import ProjectFile, read_project_file


def test_a_project_with_its_defaults() -> None:
    found = read_project_file(b"version: 1\nname: Demo_2.x\n", "harness.yaml")
    assert found == ProjectFile(name="Demo_2.x", recipes="recipes", policies="policies")


def test_other_folders() -> None:
    found = read_project_file(b"version: 1\nname: a\nrecipes: ci/r\npolicies: ci/p\n", "h")
    assert (found.recipes, found.policies) == ("ci/r", "ci/p")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: a\n", "h:1:1: field 'version' is missing (fix: add it: Version of this format)"),
        ("version: 2\nname: a\n", "h:1:10: version: expected 1, got 2"),
        ("version: 1\nname: a b\n", "h:2:7: name: expected something like my-project, got 'a b'"),
        (
            "version: 1\nname: 3.11\n",
            'h:2:7: name: expected text, got the number 3.11 (fix: quote it: "3.11")',
        ),
        (
            "version: 1\nname: a\nrecipes: ../r\n",
            "h:3:10: recipes: expected something like recipes",
        ),
        ("version: 1\nname: a\nrecipes: /r\n", "h:3:10: recipes: expected something like recipes"),
        (
            "version: 1\nname: a\nrecipes: .git\n",
            "h:3:10: recipes: expected something like recipes",
        ),
        (
            "version: 1\nname: a\nrecipe: r\n",
            "h:3:1: unknown field 'recipe' (fix: did you mean 'recipes'?)",
        ),
        ("- a\n", "h:1:1: file: expected fields, got a list"),
    ],
)
def test_bad_projects(text: str, expected: str) -> None:
    with pytest.raises(InputError, match="project file is not valid: 1 mistake") as caught:
        read_project_file(text.encode(), "h")
    assert str(caught.value.issues[0]).startswith(expected)
