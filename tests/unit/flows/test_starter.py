from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.flows.starter import starter_files
from harness.governance.reviewers import parse_reviewers
from harness.model.files.file_schemas import schema_bytes
from harness.model.files.policy_file import read_policy, reviewers_file_of
from harness.model.files.project_file import read_project_file
from harness.model.files.recipe_file import read_recipe_cells
from harness.model.policy import Policy
from harness.model.recipe import Recipe

PROJECT = Path(__file__).resolve().parents[3]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ada"


def read_all(files: Mapping[str, bytes]) -> tuple[Policy, list[Recipe]]:
    policy_data = files["policies/default.yaml"]
    reviewers = files["policies/" + reviewers_file_of(policy_data, "policies/default.yaml")]
    policy = read_policy(policy_data, "policies/default.yaml", name="default", reviewers=reviewers)
    recipes = [
        cell
        for path, data in sorted(files.items())
        if path.startswith("recipes/")
        for cell in read_recipe_cells(data, path, name=Path(path).stem, policy=policy, chosen={})
    ]
    return policy, recipes


def test_the_starter_set_is_a_project_that_can_be_sealed() -> None:
    files = starter_files("demo", "ada@example.org", KEY)
    assert read_project_file(files["harness.yaml"], "harness.yaml").name == "demo"
    policy, recipes = read_all(files)
    assert [recipe.name for recipe in recipes] == ["format", "test"]
    assert [recipe.kind for recipe in recipes] == ["build", "test"]
    assert not any(step.script for recipe in recipes for step in recipe.steps)
    assert not policy.isolation.allow_scripts
    assert not policy.approval.throwaway
    (reviewer,) = parse_reviewers(policy.reviewers).entries
    assert reviewer.person == "ada@example.org"
    assert reviewer.may_sign_for("plan-approval@harness")
    assert not reviewer.may_sign_for("git")


def test_every_yaml_file_is_commented_and_names_a_schema_that_is_there() -> None:
    files = starter_files("demo", "ada@example.org", KEY)
    for path, data in files.items():
        if path.endswith(".yaml"):
            first, second = data.decode().splitlines()[:2]
            hint = first.removeprefix("# yaml-language-server: $schema=")
            target = (Path(path).parent / hint).as_posix().replace("recipes/../", "")
            assert files[target.replace("policies/../", "")]
            assert second.startswith("# ")
    assert files[".harness/schemas/recipe-v1.json"] == schema_bytes("recipe")


def test_without_a_key_the_reviewers_file_only_explains() -> None:
    reviewers = starter_files("demo", "", "")["policies/reviewers"].decode()
    assert all(line.startswith("#") for line in reviewers.splitlines())


@pytest.mark.parametrize(
    ("name", "principal", "key", "expected"),
    [
        ("my project", "ada", KEY, "project file is not valid"),
        ("a\nversion: 2", "ada", KEY, "project file is not valid"),
        ("a # b", "ada", KEY, "can't stand in harness.yaml as it is"),
        ("no", "ada", KEY, "project file is not valid"),
        ("demo", "ada, *", KEY, "reviewers"),
        ("demo", "ada cert-authority", KEY, "reviewers"),
        ("demo", "ada", f"{KEY}\nbo {KEY}", "public key: expected one line"),
        ("demo", "ada", "not a key", "reviewers"),
    ],
)
def test_what_cannot_stand_in_the_files_is_refused(
    name: str, principal: str, key: str, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        starter_files(name, principal, key)


def test_our_own_recipes_and_policies_are_valid() -> None:
    paths = [PROJECT / "policies/reviewers"]
    paths += [*PROJECT.glob("recipes/*.yaml"), *PROJECT.glob("policies/*.yaml")]
    files = {path.relative_to(PROJECT).as_posix(): path.read_bytes() for path in paths}
    _, recipes = read_all(files)
    assert {recipe.name for recipe in recipes} >= {"format", "lint", "test"}
    assert read_project_file((PROJECT / "harness.yaml").read_bytes(), "harness.yaml").name


def test_the_files_our_own_test_recipe_names_need_nothing_but_pytest() -> None:
    policy_and_recipes = {
        path: (PROJECT / path).read_bytes()
        for path in ("policies/default.yaml", "policies/reviewers", "recipes/test.yaml")
    }
    _, (recipe,) = read_all(policy_and_recipes)
    named = [item for item in recipe.steps[0].argv if item.startswith("tests/")]
    assert named
    for item in named:
        assert "hypothesis" not in (PROJECT / item).read_text()
