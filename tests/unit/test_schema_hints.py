"""The first line of every YAML file that we ship or write names a schema that checks the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from harness.flows.demo import make_demo_files
from harness.flows.init import init_project

ROOT = Path(__file__).resolve().parents[2]
HINT = "# yaml-language-server: $schema="
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f demo\n"


def yaml_files(root: Path) -> Iterator[Path]:
    yield root / "harness.yaml"
    for kind in ("recipes", "policies"):
        yield from sorted((root / kind).glob("*.yaml"))


@pytest.fixture(params=["started", "demo", "ours"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a project as `harness init` and `harness demo` write it, and our own."""
    if request.param == "ours":
        return ROOT
    key = tmp_path / "key.pub"
    key.write_text(KEY)
    root = tmp_path / "project"
    root.mkdir()
    if request.param == "started":
        init_project(root, key=key, reviewer="ada")
    else:
        make_demo_files(root, key.with_suffix(""))
    return root


def schema_of(path: Path) -> Mapping[str, Any]:
    """Return the schema that a file's first line names, as an editor finds it."""
    first = path.read_text().splitlines()[0]
    assert first.startswith(HINT), path
    found: Mapping[str, Any] = json.loads((path.parent / first.removeprefix(HINT)).read_bytes())
    return found


def test_every_file_is_valid_by_the_schema_it_names(project: Path) -> None:
    files = list(yaml_files(project))
    assert len(files) >= 4
    for path in files:
        schema = schema_of(path)
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(yaml.safe_load(path.read_text()), schema)


def test_the_schemas_are_of_the_right_kind_and_refuse_a_wrong_field(project: Path) -> None:
    for path in yaml_files(project):
        kind = {"recipes": "Recipe", "policies": "Policy"}.get(path.parent.name, "Project")
        schema = schema_of(path)
        assert schema["title"] == kind
        content = yaml.safe_load(path.read_text())
        for bad in ({**content, "wat": 1}, {**content, "version": 2}, [content]):
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(bad, schema)
