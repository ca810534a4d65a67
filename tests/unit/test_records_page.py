from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("records", DOCS / "generate_records.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_the_code(generator: ModuleType) -> None:
    assert generator.PAGE.read_bytes() == generator.render(), "run python docs/generate_records.py"


def test_every_kind_of_the_code_is_on_the_page(generator: ModuleType) -> None:
    page = generator.PAGE.read_text("utf-8")
    assert len(generator.kinds()) > 20
    assert [kind for kind in generator.kinds() if f"`{kind}`" not in page] == []


def test_no_listed_member_is_without_a_meaning(generator: ModuleType) -> None:
    page = generator.PAGE.read_text("utf-8")
    assert [line for line in page.splitlines() if line.endswith("|  |")] == []


def test_every_listed_member_is_written_under_that_name(generator: ModuleType) -> None:
    text = "".join(path.read_text("utf-8") for path in (generator.HARNESS / "model").glob("*.py"))
    listed = generator.PAGE.read_text("utf-8").partition("## Bodies")[0]
    members = set(re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE))
    assert len(members) > 60
    assert {name for name in members if f'"{name}"' not in text} == set()
