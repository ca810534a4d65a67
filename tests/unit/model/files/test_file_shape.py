from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.model.files.file_schemas import SCHEMAS
from harness.model.files.file_shape import check_shape
from harness.model.files.mistakes import Mistakes
from harness.model.files.policy_file import read_host_isolation, read_policy
from harness.model.files.project_file import read_project_file
from harness.model.files.recipe_file import read_recipe_cells
from harness.model.files.schema_parts import Schema
from harness.model.files.strict_yaml import parse_yaml

KEYWORDS = {
    *("$schema", "$id", "title", "description", "default", "examples"),
    *("type", "const", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum"),
    *("properties", "required", "additionalProperties", "propertyNames", "maxProperties"),
    "minProperties",
    *("items", "minItems", "maxItems", "uniqueItems"),
}

RECIPE = {
    "version": 1,
    "kind": "test",
    "description": "Run.",
    "image": "python",
    "policy": "default",
    "parameters": {"p": {"description": "x", "default": "a", "choices": ["a"], "pattern": "a"}},
    "matrix": {"k": ["1.0", "v-_"], "l": ["x"], "exclude": [{"k": "1.0", "l": "x"}]},
    "needs": ["build"],
    "steps": [
        {
            "name": "n",
            "run": ["pytest", "${param.p}", "${matrix.k}${matrix.l}"],
            "timeout": "1m",
            "allowed_exit_codes": [0, 5],
        }
    ],
    "inputs": {"include": ["src/**"], "exclude": ["*.log"]},
    "writable": ["src/**"],
    "outputs": [
        {
            "name": "results",
            "path": "r.xml",
            "report": "junit",
            "type": "application/xml",
            "max_size": "1MiB",
        }
    ],
    "env": {"CI": "true"},
    "limits": {"cpus": 1, "memory": "512MiB", "pids": 64, "wall": "10m", "idle": "1m"},
    "workspace": "auto",
}
POLICY = {
    "version": 1,
    "isolation": {
        "limits": {"cpus": 2, "memory": "1GiB", "open_files": 100},
        "tmp_exec": True,
        "allow_scripts": False,
        "admit_secrets": ["tests/keys/*"],
        "workspace": "copy",
    },
    "approval": {
        "plan": 1,
        "diff": 2,
        "rules": [{"paths": ["a"], "approvals": 3, "reviewers": ["a", "b", "c"]}],
        "exclude_requester": True,
        "valid_for": "24h",
        "reviewers": "reviewers",
        "throwaway": False,
    },
}
PROJECT = {"version": 1, "name": "Demo-1", "recipes": "ci/recipes", "policies": "policies"}
GOOD: Mapping[str, dict[str, Any]] = {
    "recipe": RECIPE,
    "policy": POLICY,
    "host": {"version": 1, "isolation": POLICY["isolation"]},
    "project": PROJECT,
}


def schemas_in(schema: Schema) -> Iterator[Schema]:
    yield schema
    inner = [*schema.get("properties", {}).values(), schema.get("items")]
    for child in (*inner, schema.get("additionalProperties")):
        if isinstance(child, Mapping):
            yield from schemas_in(child)


def published(schema: Schema) -> Any:
    """Return a schema as ECMA-262 means it: `$` matches at the very end only."""
    return json.loads(json.dumps(schema).replace('$"', '\\\\Z"'))


class Oracle:
    """An independent validator of one schema."""

    def __init__(self, schema: Schema) -> None:
        self.validator = jsonschema.Draft202012Validator(published(schema))

    def accepts(self, value: object) -> bool:
        return bool(self.validator.is_valid(value))


ORACLES = {kind: Oracle(schema) for kind, schema in SCHEMAS.items()}


def our_verdict(kind: str, value: object) -> list[str]:
    mistakes = Mistakes("f")
    text = json.dumps(value, ensure_ascii=True)
    check_shape(parse_yaml(text.encode(), mistakes), SCHEMAS[kind], mistakes)
    return [str(issue) for _, issue in mistakes.found]


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_are_schemas_and_use_only_what_we_read(kind: str) -> None:
    jsonschema.Draft202012Validator.check_schema(dict(SCHEMAS[kind]))
    for schema in schemas_in(SCHEMAS[kind]):
        assert set(schema) <= KEYWORDS
        if schema["type"] == "object":
            assert "additionalProperties" in schema
        pattern = schema.get("pattern", "^$")
        assert (pattern[0], pattern[-1]) == ("^", "$")


@pytest.mark.parametrize("kind", SCHEMAS)
def test_defaults_and_examples_are_good_values(kind: str) -> None:
    for schema in schemas_in(SCHEMAS[kind]):
        oracle = Oracle(schema)
        given_values = schema.get("examples", [])
        for value in (*given_values, *([schema["default"]] if "default" in schema else [])):
            assert oracle.accepts(value), (value, schema)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_file_with_every_field_is_good_to_both(kind: str) -> None:
    assert ORACLES[kind].accepts(GOOD[kind])
    assert our_verdict(kind, GOOD[kind]) == []


# no fraction that is whole: JSON Schema takes 1.0 for an integer, we take it for a fraction
_PLAIN = st.sampled_from(
    [
        *(
            None,
            True,
            False,
            0,
            1,
            -1,
            2,
            300,
            1.5,
            0.001,
            "",
            "a",
            "A",
            "1",
            "10m",
            "512MiB",
            "512M",
        ),
        *("auto", "test", "a\n", "a/b", "../x", "default", "x" * 70, "x" * 1100, "é", "-", "junit"),
    ]
)
_VALUES = st.recursive(
    _PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "run", "name", "A_B", "wall", "é"]), inner, max_size=3
        )
    ),
    max_leaves=4,
)


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """Return a good file with one place changed, taken away or added to."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        name = draw(st.sampled_from(sorted(value)))
        rest = {key: item for key, item in value.items() if key != name}
        action = draw(st.integers(0, 5))
        if action == 0:
            return rest
        if action == 1:
            return {**value, draw(st.sampled_from(["x", "nmae", "A-B", "é"])): value[name]}
        return {**value, name: draw(changed(value[name]))}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        action = draw(st.integers(0, 2))
        if action == 0:
            return [*value, value[0]]
        return [draw(changed(value[0])), *value[1:]]
    return draw(_VALUES)


@settings(max_examples=600)
@given(st.sampled_from(sorted(SCHEMAS)), st.data())
def test_our_verdict_is_that_of_an_independent_validator(kind: str, data: st.DataObject) -> None:
    value = data.draw(changed(GOOD[kind]))
    found = our_verdict(kind, value)
    assert ORACLES[kind].accepts(value) == (not found), found


def test_what_is_wrong_is_left_out_and_the_rest_is_there() -> None:
    mistakes = Mistakes("f")
    text = b"version: 2\nname: demo\nwat: 1\nrecipes: [x]\n"
    node = check_shape(parse_yaml(text, mistakes), SCHEMAS["project"], mistakes)
    assert node is not None
    assert node.plain() == {"name": "demo"}
    assert [str(issue) for _, issue in mistakes.found] == [
        "f:1:10: version: expected 1, got 2",
        "f:3:1: unknown field 'wat' (fix: known here: version, name, recipes, policies)",
        'f:4:10: recipes: expected text, got a list (fix: write something like "recipes")',
    ]


def test_fractions_are_compared_exactly() -> None:
    mistakes = Mistakes("f")
    schema = {"type": "number", "minimum": 0.1, "maximum": 0.3}
    assert check_shape(parse_yaml(b"0.1", mistakes), schema, mistakes) is not None
    node = check_shape(parse_yaml(b"0.3", mistakes), schema, mistakes)
    assert node is not None
    assert node.value == Decimal("0.3")
    assert check_shape(parse_yaml(b"0.30000000000000", mistakes), schema, mistakes) is not None
    assert check_shape(parse_yaml(b"0.300000000000001", mistakes), schema, mistakes) is None


LEAST_POLICY = b"version: 1\napproval: {reviewers: reviewers}\n"


def read_as(kind: str, data: bytes) -> object:
    if kind == "project":
        return read_project_file(data, "f")
    if kind == "host":
        return read_host_isolation(data, "f")
    if kind == "policy":
        return read_policy(data, "f", name="default", reviewers=b"")
    policy = read_policy(LEAST_POLICY, "f", name="default", reviewers=b"")
    return read_recipe_cells(data, "f", name="r", policy=policy, chosen={"p": "a"})


@settings(max_examples=300)
@given(st.sampled_from(sorted(SCHEMAS)), st.data())
def test_readers_refuse_what_the_validator_refuses_and_raise_nothing_else(
    kind: str, data: st.DataObject
) -> None:
    value = data.draw(changed(GOOD[kind]))
    text = json.dumps(value).encode()
    if ORACLES[kind].accepts(value):
        # more may be wrong than a schema can say
        with contextlib.suppress(InputError):
            read_as(kind, text)
    else:
        with pytest.raises(InputError) as caught:
            read_as(kind, text)
        assert all(issue.where for issue in caught.value.issues)
