from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from harness.model.digest import digest_of
from harness.model.files.policy_file import read_host_isolation, read_policy
from harness.model.files.recipe_file import read_recipe_cells
from harness.model.limits import Isolation
from harness.model.policy import ApprovalPolicy, Policy
from harness.model.seal import FIXED_ENV

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generator", DOCS / "generate_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_schemas_and_tables_are_those_of_the_code(generator: ModuleType) -> None:
    for path, content in generator.render_all():
        assert path.read_bytes() == content, f"run python docs/generate_reference.py: {path.name}"


def examples(page: str) -> list[bytes]:
    text = (DOCS / page).read_text()
    return [match.encode() for match in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


POLICY = Policy(
    name="default",
    isolation=Isolation(),
    approval=ApprovalPolicy(reviewers_digest=digest_of(b"")),
    reviewers=b"",
)


def test_the_recipe_example_is_a_recipe() -> None:
    (example,) = examples("reference/recipe.md")
    (recipe,) = read_recipe_cells(example, "recipe.md", name="unit", policy=POLICY, chosen={})
    assert recipe.steps[0].argv[-1] == "tests"


def test_every_recipe_of_the_how_to_is_a_recipe() -> None:
    found = [
        [
            cell.operation
            for cell in read_recipe_cells(data, "page", name="parts", policy=POLICY, chosen={})
        ]
        for data in examples("how-to/write-a-recipe.md")
    ]
    assert found == [
        ["parts"],
        ["parts"],
        ["parts"],
        [
            "parts:part=unit,level=quick",
            "parts:part=unit,level=full",
            "parts:part=integration,level=quick",
        ],
        ["parts"],
    ]


def test_the_examples_of_the_monorepo_page_are_files_that_hold() -> None:
    payments, services, owners = examples("how-to/use-it-in-a-monorepo.md")
    cells = [
        cell.operation
        for data in (payments, services)
        for cell in read_recipe_cells(data, "page", name="part", policy=POLICY, chosen={})
    ]
    assert cells == ["part", *(f"part:service={name}" for name in ("payments", "billing", "mail"))]
    assert len(read_policy(owners, "page", name="default", reviewers=b"").approval.rules) == 2


def test_the_policy_examples_are_policies() -> None:
    project, host = examples("reference/policy.md")
    policy = read_policy(project, "policy.md", name="default", reviewers=b"")
    assert policy.approval.rules[0].approvals == 2
    assert not read_host_isolation(host, "policy.md").allow_scripts


def test_the_page_lists_every_fixed_variable() -> None:
    text = (DOCS / "reference" / "recipe.md").read_text()
    for name in FIXED_ENV:
        assert f"`{name}`" in text
