"""A recipe with a matrix is one recipe a cell, and each must be right."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.model.digest import digest_of
from harness.model.files.recipe_file import read_recipe_cells, read_recipe_needs
from harness.model.files.recipe_matrix import MAX_CELLS
from harness.model.limits import MIB, Isolation, Limits
from harness.model.policy import ApprovalPolicy, Policy
from harness.model.recipe import Recipe, sealed_outputs, sealed_steps

POLICY = Policy(
    name="default",
    isolation=Isolation(),
    approval=ApprovalPolicy(reviewers_digest=digest_of(b"")),
    reviewers=b"",
)
HEAD = "version: 1\nkind: test\ndescription: Run the tests.\nimage: python\n"


def cells(
    text: str, chosen: Mapping[str, str] | None = None, policy: Policy = POLICY
) -> tuple[Recipe, ...]:
    return read_recipe_cells(text.encode(), "r.yaml", name="t", policy=policy, chosen=chosen)


def mistakes(text: str, policy: Policy = POLICY) -> list[str]:
    with pytest.raises(InputError, match="recipe is not valid") as caught:
        cells(text, policy=policy)
    return [str(issue) for issue in caught.value.issues]


def test_every_combination_is_a_cell_in_the_order_of_the_file() -> None:
    found = cells(
        HEAD.replace("image: python", "image: py${matrix.python}-${matrix.mode}")
        + """\
matrix: {python: ["3.11", "3.12"], mode: [fast, full]}
parameters: {what: {default: tests}}
steps: [{run: [pytest, "--m=${matrix.mode}", "${param.what}", "$${matrix.mode}"]}]
env: {V: "py${matrix.python}"}
"""
    )
    assert [cell.operation for cell in found] == [
        "t:python=3.11,mode=fast",
        "t:python=3.11,mode=full",
        "t:python=3.12,mode=fast",
        "t:python=3.12,mode=full",
    ]
    last = found[-1]
    assert last.cell == {"python": "3.12", "mode": "full"}
    assert last.steps[0].argv == ("pytest", "--m=full", "tests", "${matrix.mode}")
    assert (last.image, last.env, last.parameters) == (
        "py3.12-full",
        {"V": "py3.12"},
        {"what": "tests"},
    )
    assert last.to_json()["cell"] == {"python": "3.12", "mode": "full"}
    assert len({str(cell.to_json()) for cell in found}) == 4


def test_exclude_leaves_out_what_has_all_its_values() -> None:
    found = cells(
        HEAD
        + """\
matrix:
  a: ["1", "2", "3"]
  b: [x, z]
  exclude: [{a: "1"}, {a: "2", b: x}]
steps: [{run: [run, "${matrix.a}", "${matrix.b}"]}]
"""
    )
    assert [tuple(cell.cell.values()) for cell in found] == [("2", "z"), ("3", "x"), ("3", "z")]


def test_a_recipe_without_a_matrix_has_one_cell_and_its_own_name() -> None:
    (found,) = cells(HEAD + "steps: [{run: [ls]}]\n")
    assert (found.operation, found.cell, found.needs) == ("t", {}, ())


USES = 'steps: [{run: [ls, "${matrix.a}"]}]\n'


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ("{}", "5:9: matrix: expected at least 1 fields, got 0"),
        ("[a]", "5:9: matrix: expected fields, got a list"),
        ("{a: [u], b: []}", "5:21: matrix.b: expected at least 1 items, got 0"),
        (
            "{a: u}",
            "5:13: matrix.a: expected a list, got the text 'u' (fix: write a list: [\"u\"])",
        ),
        (
            "{a: [3.11]}",
            '5:14: matrix.a[0]: expected text, got the number 3.11 (fix: quote it: "3.11")',
        ),
        ("{a: [no]}", "5:14: no is a boolean to some YAML readers (fix: write true or false, or "),
        ("{a: [010]}", "5:14: 010 is a number to some YAML readers"),
        ("{a: [u/v]}", "5:14: matrix.a[0]: expected something like 3.11, got 'u/v'"),
        ("{a: ['u,b=v']}", "5:14: matrix.a[0]: expected something like 3.11, got 'u,b=v'"),
        ("{a: ['']}", "5:14: matrix.a[0]: expected something like 3.11, got ''"),
        ("{a: ['$(id)']}", "5:14: matrix.a[0]: expected something like 3.11, got '$(id)'"),
        (f"{{a: [{'v' * 65}]}}", "5:14: matrix.a[0]: expected something like 3.11, got"),
        ("{a: [u, u]}", "5:17: matrix.a[1]: 'u' is here twice"),
        ("{A: [u], a: [v]}", "5:10: matrix: expected a name like [a-z][a-z0-9_]{0,62}, got 'A'"),
        (
            "{a: [u], b: [v]}",
            "5:18: matrix key 'b' is never used (fix: write ${matrix.b} in",
        ),
        (
            "{a: [u], exclude: [{b: u}]}",
            "5:29: matrix.exclude[0]: the matrix has no key 'b' (fix: it has: a)",
        ),
        (
            "{a: [u, v], exclude: [{a: w}]}",
            "5:35: matrix.exclude[0].a: 'w' is none of its values (fix: it has: u, v)",
        ),
        (
            "{a: [u, v], exclude: [{a: u}, {a: u}]}",
            "5:39: matrix.exclude[1]: leaves nothing out that an entry before it does not",
        ),
        ("{a: [u], exclude: [{a: u}]}", "5:9: matrix: exclude leaves no cell"),
        ("{a: [u], exclude: [{}]}", "5:28: matrix.exclude[0]: expected at least 1 fields, got 0"),
        ("{exclude: [{a: u}]}", "5:9: matrix: expected a key with its values, got none"),
    ],
)
def test_every_mistake_in_a_matrix_has_its_place(matrix: str, expected: str) -> None:
    found = mistakes(HEAD + f"matrix: {matrix}\n" + USES)
    assert any(line.startswith(f"r.yaml:{expected}") for line in found), found
    assert len(found) <= 2


def test_cells_are_capped() -> None:
    def made(rows: int) -> str:
        values = ", ".join(f"v{number}" for number in range(rows))
        return (
            HEAD
            + f"matrix: {{a: [{values}], b: [u, v]}}\n"
            + ('steps: [{run: [ls, "${matrix.a}", "${matrix.b}"]}]\n')
        )

    assert len(cells(made(MAX_CELLS // 2))) == MAX_CELLS
    assert mistakes(made(MAX_CELLS // 2 + 1)) == [
        (
            "r.yaml:5:9: matrix: expected at most 64 cells, got 66 "
            "(fix: leave values out, or make two recipes of it)"
        )
    ]
    many = ", ".join(f"v{number}" for number in range(64))
    keys = dict.fromkeys("abcdefgh", many)
    text = ", ".join(f"{name}: [{values}]" for name, values in keys.items())
    uses = ", ".join(f'"${{matrix.{name}}}"' for name in keys)
    (found,) = mistakes(HEAD + f"matrix: {{{text}}}\nsteps: [{{run: [ls, {uses}]}}]\n")
    assert "expected at most 4096 combinations, got 281474976710656" in found


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('steps: [{run: [ls, "${matrix.b}"]}]', "unknown matrix key 'b' (fix: declared: a)"),
        ('steps: [{run: [ls, "${matrix.a"]}]', "no '}' after matrix key 'a'"),
        (
            'steps: [{run: [sh, -c, "ls ${matrix.a}"]}]',
            "steps[0].run[2]: a reference inside source text would be code",
        ),
        (
            'steps: [{run: [ls, "${matrix.a}"]}]\noutputs: [{name: x, path: "out/${matrix.a}/x"}]',
            None,
        ),
        (
            'steps: [{run: [python3, "${matrix.a}", f]}]',
            "steps[0]: is a script (inline source for python), and the policy allows none",
        ),
    ],
)
def test_where_a_cell_s_value_goes(more: str, expected: str | None) -> None:
    text = HEAD + f"matrix: {{a: ['-c']}}\n{more}\n"
    policy = (
        replace(POLICY, isolation=Isolation(allow_scripts=True)) if "sh, -c" in more else POLICY
    )
    if expected is None:
        (cell,) = cells(text)
        assert cell.outputs[0].path == "out/${matrix.a}/x"
    else:
        assert any(expected in line for line in mistakes(text, policy))


def test_a_cell_s_image_must_be_a_name() -> None:
    text = HEAD.replace("python", "py${matrix.a}") + "matrix: {a: [u, U]}\nsteps: [{run: [ls]}]\n"
    assert mistakes(text) == ["r.yaml:4:8: image: expected a name like python, got 'pyU'"]
    text = HEAD.replace("python", "${param.x}") + "steps: [{run: [ls]}]\n"
    assert "image: expected something like python, got '${param.x}'" in mistakes(text)[0]


def test_needs_are_read_with_their_places() -> None:
    text = HEAD + "needs: [build, lint]\nsteps: [{run: [ls]}]\n"
    assert cells(text)[0].needs == ("build", "lint")
    assert "needs" not in cells(text)[0].to_json()
    assert [tuple(need) for need in read_recipe_needs(text.encode(), "r.yaml")] == [
        ("build", "r.yaml:5:9"),
        ("lint", "r.yaml:5:16"),
    ]
    for needs, expected in (
        ("[t]", "5:9: needs: 't' needs itself (fix: remove it)"),
        ("[build, build]", "5:16: needs[1]: 'build' is here twice"),
        ("[Build]", "5:9: needs[0]: expected something like build, got 'Build'"),
        ("build", "5:8: needs: expected a list, got the text 'build'"),
    ):
        (found,) = mistakes(HEAD + f"needs: {needs}\nsteps: [{{run: [ls]}}]\n")
        assert found.startswith(f"r.yaml:{expected}")


def test_steps_and_outputs_have_bounds_of_their_own() -> None:
    (found,) = cells(
        HEAD
        + """\
steps:
  - {run: [ls], timeout: 90s, allowed_exit_codes: [5, 0]}
  - {run: [ls]}
outputs:
  - {name: a, path: a, max_size: 1KiB, type: text/plain}
  - {name: b, path: b, report: junit}
limits: {artifact: 1MiB}
"""
    )
    assert [(step.timeout_ms, step.allowed_exits) for step in found.steps] == [
        (90_000, (0, 5)),
        (0, (0,)),
    ]
    assert [(output.max_bytes, output.type) for output in found.outputs] == [
        (1024, "text/plain"),
        (MIB, "application/xml"),
    ]
    sealed = found.to_json()
    assert sealed_steps(sealed) == found.steps
    assert sealed_outputs(sealed) == found.outputs


def test_a_seal_of_the_first_version_means_what_it_meant() -> None:
    sealed = {
        "steps": [{"name": "n", "argv": ["ls"], "script": False}],
        "outputs": [{"name": "a", "path": "a", "report": ""}],
    }
    (step,), (output,) = sealed_steps(sealed), sealed_outputs(sealed)
    assert (step.timeout_ms, step.allowed_exits) == (0, (0,))
    assert (output.type, output.max_bytes) == ("", 0)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            "{run: [ls], timeout: 11m}",
            "steps[0].timeout: expected 100ms to 10m, got 11m (fix: the limit",
        ),
        ("{run: [ls], timeout: 99ms}", "steps[0].timeout: expected 100ms to 10m, got 99ms"),
        ("{run: [ls], timeout: 5}", "steps[0].timeout: expected text, got the number 5"),
        ("{run: [ls], timeout: 5 min}", "steps[0].timeout: expected something like 5m"),
        ("{run: [ls], allowed_exit_codes: []}", "expected at least 1 items, got 0"),
        ("{run: [ls], allowed_exit_codes: [256]}", "expected at most 255, got 256"),
        ("{run: [ls], allowed_exit_codes: [-1]}", "expected at least 0, got -1"),
        ("{run: [ls], allowed_exit_codes: [0, 0]}", "0 is here twice"),
        ("{run: [ls], allowed_exit_codes: [true]}", "expected a whole number, got true"),
        ('{run: [ls], allowed_exit_codes: ["5"]}', "expected a whole number, got the text '5'"),
        ("{run: [ls], allowed_exit_codes: 5}", "expected a list, got the number 5"),
    ],
)
def test_bad_bounds_of_a_step(more: str, expected: str) -> None:
    (found,) = mistakes(HEAD + f"steps: [{more}]\n")
    assert expected in found
    assert found.startswith("r.yaml:5:")


def test_a_timeout_that_is_too_short_is_not_blamed_on_the_limit_wall() -> None:
    (found,) = mistakes(HEAD + "steps: [{run: [ls], timeout: 99ms}]\n")
    assert found.endswith("got 99ms")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("max_size: 65MiB", "outputs: max_size: expected 1B to 64MiB, got 65MiB (fix: the limit"),
        ("max_size: 0B", "outputs: max_size: expected 1B to 64MiB, got 0B"),
        ("max_size: 1M", "expected something like 1MiB, got '1M' (fix: write 1MiB)"),
        ("type: text", "expected something like application/json, got 'text'"),
        ("type: Text/Plain", "expected something like application/json, got 'Text/Plain'"),
        ("type: text/plain; charset=utf-8", "expected something like application/json"),
    ],
)
def test_bad_bounds_of_an_output(more: str, expected: str) -> None:
    text = HEAD + "steps: [{run: [ls]}]\noutputs: [{name: a, path: a, " + more + "}]\n"
    (found,) = mistakes(text)
    assert expected in found
    assert found.startswith("r.yaml:6:")


def test_the_policy_bounds_an_artifact() -> None:
    policy = replace(POLICY, isolation=Isolation(limits=Limits(artifact_bytes=1024)))
    text = HEAD + "steps: [{run: [ls]}]\noutputs: [{name: a, path: a}]\n"
    assert cells(text, policy=policy)[0].outputs[0].max_bytes == 1024
    (found,) = mistakes(text + "limits: {artifact: 2KiB}\n", policy)
    assert "limit artifact: expected at most 1KiB, got 2KiB" in found


VALUES = st.text("abcXYZ019._-", min_size=1, max_size=8)
MATRICES = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(lambda key: key != "exclude"),
    st.lists(VALUES, min_size=1, max_size=4, unique=True),
    min_size=1,
    max_size=3,
)


@settings(max_examples=100)
@given(MATRICES)
def test_any_good_matrix_gives_its_product(matrix: dict[str, list[str]]) -> None:
    lines = [f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in matrix.items()]
    uses = ", ".join(f'"${{matrix.{key}}}"' for key in matrix)
    text = HEAD + "matrix:\n" + "\n".join(lines) + f"\nsteps: [{{run: [ls, {uses}]}}]\n"
    found = cells(text)
    rows = list(itertools.product(*matrix.values()))
    assert [cell.steps[0].argv[1:] for cell in found] == rows
    assert len({cell.operation for cell in found}) == len(rows)


LINES = st.lists(
    st.sampled_from(
        [
            *(HEAD + USES).splitlines(),
            "matrix:",
            "  a: [u, v]",
            '  b: ["1", x]',
            "  a: [3.1, no, {}]",
            "  exclude: [{a: u}, {b: w}, {}, []]",
            "  exclude: x",
            "  ? [x]",
            "needs: [t, u, U, []]",
            "steps: [{run: ['${matrix.a}', '${matrix.b}'], timeout: 1s, allowed_exit_codes: [5]}]",
            "steps: [{run: [sh, -c, '${matrix.a'], timeout: [1], allowed_exit_codes: [x, 999]}]",
            "outputs: [{name: a, path: b, max_size: 1B, type: a/b}, {name: a, max_size: 9TiB}]",
            "image: '${matrix.a}'",
            "env: {A: '${matrix.b}${matrix.c}$${matrix.'}",
            "limits: {wall: 1s, artifact: 1B}",
        ]
    ),
    max_size=14,
)


@settings(max_examples=300)
@given(LINES)
def test_any_file_is_read_or_refused_with_places(lines: list[str]) -> None:
    try:
        found = cells("\n".join(lines))
    except InputError as error:
        issues = error.issues
    else:
        assert found
        assert len({cell.operation for cell in found}) == len(found)
        return
    assert issues
    assert all(issue.where.startswith("r.yaml:") for issue in issues)
