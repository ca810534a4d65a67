"""What recipes need of each other: every mistake with its place, checked and when sealing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.flows.check import check_recipes
from harness.flows.planned import read_recipes_to_plan
from harness.flows.session import Session, open_session

HEAD = "version: 1\nkind: test\ndescription: Run.\nimage: python\npolicy: POLICY\n"
STEPS = "steps:\n  - run: [pytest]\n"
KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"

Project = Callable[..., Session]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a function that makes a project: `name="needs: [...]"` for each recipe."""
    monkeypatch.setenv("HARNESS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    root = tmp_path / "project"

    def make(**recipes: str) -> Session:
        for folder in ("recipes", "policies"):
            (root / folder).mkdir(parents=True)
        (root / "harness.yaml").write_text("version: 1\nname: sample\n")
        (root / "policies/reviewers").write_text(f"ada ssh-ed25519 {KEY}\n")
        for policy in ("default", "other"):
            text = "version: 1\napproval: {reviewers: reviewers}\n"
            (root / f"policies/{policy}.yaml").write_text(text)
        for name, more in recipes.items():
            policy = "other" if name.startswith("other") else "default"
            text = HEAD.replace("POLICY", policy) + more + "\n" + STEPS
            (root / f"recipes/{name}.yaml").write_text(text)
        return open_session(root)

    return make


def mistakes(session: Session, *names: str) -> list[str]:
    checked = check_recipes(session, list(names))
    return [str(issue) for item in checked for issue in item.issues]


def refusal(session: Session, *names: str) -> list[str]:
    with pytest.raises(InputError, match=r"recipes are not valid: \d+ mistakes?") as caught:
        read_recipes_to_plan(session, names, {})
    return [str(issue) for issue in caught.value.issues]


def test_what_is_needed_comes_first_and_enters_by_itself(project: Project) -> None:
    session = project(
        a="needs: [b, c]",
        b="matrix: {k: [u, v]}\nenv: {K: '${matrix.k}'}\nneeds: [c]",
        c="",
        d="",
    )
    planned = read_recipes_to_plan(session, ["d", "a"], {})
    assert {item.recipe.operation: item.needs for item in planned} == {
        "d": (),
        "c": (),
        "b:k=u": ("c",),
        "b:k=v": ("c",),
        "a": ("b:k=u", "b:k=v", "c"),
    }
    assert [item.recipe.name for item in planned] == ["d", "c", "b", "b", "a"]
    assert mistakes(session, "a") == []
    assert [item.name for item in check_recipes(session, ["a"])] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("recipes", "expected"),
    [
        (
            {"a": "needs: [tset]", "test": ""},
            [
                (
                    "recipes/a.yaml:6:9: needs: 'tset' is no recipe of this project "
                    "(fix: did you mean 'test'?)"
                )
            ],
        ),
        (
            {"a": "needs: [a]"},
            ["recipes/a.yaml:6:9: needs: 'a' needs itself (fix: remove it)"],
        ),
        (
            {"a": "needs: [other]", "other": ""},
            [
                (
                    "recipes/a.yaml:6:9: needs: 'other' is under the policy other, this recipe "
                    "under default (fix: name one policy in both: a plan is approved under one)"
                )
            ],
        ),
        (
            {"a": "needs: [b]", "b": "needs: [c, nope]", "c": "needs: [a]"},
            [
                (
                    "recipes/b.yaml:6:12: needs: 'nope' is no recipe of this project "
                    "(fix: `harness recipe list` shows them)"
                ),
                "CIRCLE",
            ],
        ),
    ],
)
def test_each_mistake_has_its_place_in_check_and_when_sealing(
    project: Project, recipes: dict[str, str], expected: list[str]
) -> None:
    session = project(**recipes)
    for found in (mistakes(session, "a"), refusal(session, "a")):
        plain = [line for line in found if "a circle" not in line]
        assert plain == [line for line in expected if line != "CIRCLE"]
        circles = [line for line in found if "a circle" in line]
        assert len(circles) == expected.count("CIRCLE")
        for line in circles:
            place, names = line.split(": needs: a circle: ")
            first, second, *_ = names.split(" (fix")[0].split(" -> ")
            assert place == f"recipes/{first}.yaml:6:9"
            assert {first, second} < {"a", "b", "c"}


def test_two_circles_are_both_found(project: Project) -> None:
    session = project(a="needs: [b, c]", b="needs: [a]", c="needs: [a]")
    assert len([line for line in mistakes(session, "a") if "a circle" in line]) == 2


def test_mistakes_of_all_recipes_of_a_plan_are_told_at_once(project: Project) -> None:
    session = project(a="needs: [b]\nwat: 1", b="env: {PATH: x}", c="nope: 1")
    found = refusal(session, "a", "c")
    assert [line.split(":")[0] for line in found] == [f"recipes/{n}.yaml" for n in "acb"]
    assert len(mistakes(session, "a")) == 2


def test_a_parameter_goes_to_every_recipe_that_declares_it(project: Project) -> None:
    declared = "parameters: {p: {default: x}}\nenv: {P: '${param.p}'}"
    session = project(a=f"needs: [b]\n{declared}", b=declared, c="")
    planned = read_recipes_to_plan(session, ["a"], {"p": "y"})
    assert [item.recipe.parameters for item in planned] == [{"p": "y"}, {"p": "y"}]
    with pytest.raises(InputError, match="parameters are not valid") as caught:
        read_recipes_to_plan(session, ["c"], {"p": "y"})
    assert "no recipe of this plan (c) has such a parameter" in str(caught.value.issues[0])


def test_a_plan_of_no_recipe_is_refused(project: Project) -> None:
    with pytest.raises(InputError, match="recipes: expected one or more names, got none"):
        read_recipes_to_plan(project(a=""), [], {})
