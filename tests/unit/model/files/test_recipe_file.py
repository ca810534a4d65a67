from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.model.digest import digest_of
from harness.model.files.recipe_file import (
    read_recipe_cells,
    read_recipe_parameters,
    read_recipe_policy_name,
)
from harness.model.limits import Isolation, Limits
from harness.model.policy import ApprovalPolicy, Policy
from harness.model.recipe import Recipe

POLICY = Policy(
    name="default",
    isolation=Isolation(),
    approval=ApprovalPolicy(reviewers_digest=digest_of(b"")),
    reviewers=b"",
)
SCRIPTS = replace(POLICY, isolation=Isolation(allow_scripts=True))

HEAD = "version: 1\nkind: test\ndescription: Run the tests.\nimage: python\n"
STEPS = "steps:\n  - run: [pytest]\n"


def read(
    text: str, chosen: Mapping[str, str] | None = None, policy: Policy = POLICY, name: str = "t"
) -> Recipe:
    (recipe,) = read_recipe_cells(text.encode(), "r.yaml", name=name, policy=policy, chosen=chosen)
    return recipe


def mistakes_in(
    text: str, chosen: Mapping[str, str] | None = None, policy: Policy = POLICY
) -> list[str]:
    with pytest.raises(InputError, match="recipe is not valid") as caught:
        read(text, chosen, policy)
    return [str(issue) for issue in caught.value.issues]


def test_a_whole_recipe() -> None:
    recipe = read(
        HEAD
        + """\
steps:
  - name: unit
    run: [python3, -m, pytest, "--junitxml=out/${param.what}.xml", "${param.what}"]
  - run: [ruff, check]
parameters:
  what: {description: What to test., default: tests, pattern: "[a-z/]+"}
inputs: {include: [src/**, tests/**], exclude: ["*.log"]}
writable: [src/**, /setup.py, "!src/gen/**"]
outputs: [{name: results, path: out/tests.xml, report: junit}]
env: {MODE: "x-${param.what}", COST: "$5", TEXT: "$${param.what}"}
limits: {cpus: 1.5, memory: 512MiB, wall: 5m, idle: 30s, pids: 64}
workspace: copy
""",
        {"what": "src/a"},
    )
    assert [step.argv for step in recipe.steps] == [
        ("python3", "-m", "pytest", "--junitxml=out/src/a.xml", "src/a"),
        ("ruff", "check"),
    ]
    assert [step.name for step in recipe.steps] == ["unit", "ruff check"]
    assert recipe.env == {"MODE": "x-src/a", "COST": "$5", "TEXT": "${param.what}"}
    assert recipe.parameters == {"what": "src/a"}
    assert recipe.limits == Limits(
        cpu_millis=1500, memory_bytes=512 << 20, wall_ms=300_000, idle_ms=30_000, pids=64
    )
    assert (recipe.workspace, recipe.policy, recipe.name) == ("copy", "default", "t")
    assert recipe.writable == ("src/**", "/setup.py", "!src/gen/**")
    assert recipe.outputs[0].report == "junit"


def test_every_mistake_is_reported_at_once_with_place_and_fix() -> None:
    found = mistakes_in("""\
version: 1
kind: tset
descripton: x
image: python
steps:
  - run: pytest -q
  - run: [sh, -c, ls]
limits: {memory: 512M, wall: 20m}
env: {API_TOKEN: x, PATH: /bin}
writable: [.git/hooks/x]
""")
    assert found == [
        (
            "r.yaml:1:1: field 'description' is missing (fix: add it: Why it exists, in one line; "
            "an approver reads it)"
        ),
        (
            "r.yaml:2:7: kind: expected one of build, test, experiment, got 'tset' "
            "(fix: did you mean 'test'?)"
        ),
        "r.yaml:3:1: unknown field 'descripton' (fix: did you mean 'description'?)",
        (
            "r.yaml:6:10: steps[0].run: expected a list, got the text 'pytest -q' "
            '(fix: write a list: ["pytest", "-q"])'
        ),
        (
            "r.yaml:7:11: steps[1]: is a script (shell sh), and the policy allows none (fix: run a "
            "program with its arguments, or set isolation.allow_scripts in the policy)"
        ),
        (
            "r.yaml:8:18: limits.memory: expected something like 512MiB, got '512M' "
            "(fix: write 512MiB)"
        ),
        (
            "r.yaml:8:30: limit wall: expected at most 10m, got 20m (fix: a recipe can only "
            "tighten its policy, a policy only what is above it)"
        ),
        (
            "r.yaml:9:7: env API_TOKEN looks like a credential (fix: remove it: a worker is "
            "offline and needs none; choose another name if it is none)"
        ),
        (
            "r.yaml:9:21: env PATH is fixed to '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
            "/sbin:/bin' for every run (fix: remove it: results do not depend on it)"
        ),
        (
            "r.yaml:10:12: writable: '.git/hooks/x' names .git (fix: remove it: .git never enters "
            "a worker)"
        ),
    ]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("steps: []\n", "5:8: steps: expected at least 1 items, got 0"),
        ("steps:\n", "5:7: steps: expected a list, got nothing"),
        ("steps: [{run: []}]\n", "5:15: steps[0].run: expected at least 1 items, got 0"),
        ("steps: [{run: ['']}]\n", "steps[0].run[0]: expected a program, got ''"),
        ("steps: [{run: [-q]}]\n", "steps[0].run[0]: expected a program, got '-q'"),
        ("steps: [{run: [pytest -q]}]\n", "'pytest -q' holds blanks, and no shell splits it"),
        (
            "steps: [{run: [sleep, 3]}]\n",
            '5:23: steps[0].run[1]: expected text, got the number 3 (fix: quote it: "3")',
        ),
        ("steps: [{run: [a, no]}]\n", "5:19: no is a boolean to some YAML readers"),
        (
            "steps: [{run: [a], nam: b}]\n",
            "unknown field 'nam' in steps[0] (fix: did you mean 'name'?)",
        ),
        ("steps: [{run: [cat, ~/x]}]\n", "steps[0].run[1]: '~/x' names a path of the host"),
        ("steps: [{run: [cat, --f=/home/ada/x]}]\n", "'--f=/home/ada/x' names a path of the host"),
        ("steps: [{run: [cat, 'C:\\x']}]\n", "names a path of the host"),
        ("steps: [{run: [cat, $HOME/x]}]\n", "no shell replaces $HOME here"),
        ("steps: [{run: [x, /var/run/docker.sock]}]\n", "the text names an engine's socket"),
        (
            "steps: [{run: [x, 'ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5']}]\n",
            "looks like a secret (GitHub token)",
        ),
        (
            "steps: [{run: [x, '${param.y}']}]\n",
            "steps[0].run[1]: unknown parameter 'y' (fix: declared: none)",
        ),
        ("steps: [{run: [x, '${param.y']}]\n", "no '}' after parameter 'y'"),
        ("steps: [{run: [x], retries: 5}]\n", "unknown field 'retries' in steps[0]"),
        ("steps: [" + "{run: [x]}, " * 65 + "]\n", "5:8: steps: expected at most 64 items, got 65"),
        ("steps: [{run: [" + "x, " * 1001 + "]}]\n", "expected at most 1000 items, got 1001"),
    ],
)
def test_bad_steps(more: str, expected: str) -> None:
    found = mistakes_in(HEAD + more)
    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("env: {GITHUB_SHA: x}\n", "env GITHUB_SHA looks like a credential"),
        ("env: {db_password: x}\n", "env db_password looks like a credential"),
        ("env: {DOCKER_HOST: x}\n", "points to an engine, an agent or a cluster"),
        ("env: {SSH_AUTH_SOCK: x}\n", "points to an engine, an agent or a cluster"),
        ("env: {LD_PRELOAD: x}\n", "loads code that the argv does not show"),
        ("env: {HARNESS_X: x}\n", "names that start with HARNESS_ are taken"),
        ("env: {tz: x}\n", "env tz is fixed to 'UTC' for every run"),
        ("env: {A-B: x}\n", "env: expected a name like [A-Za-z_][A-Za-z0-9_]{0,127}, got 'A-B'"),
        ("env: {A: 1}\n", '7:10: env.A: expected text, got the number 1 (fix: quote it: "1")'),
        ("env: {A: true}\n", 'env.A: expected text, got true (fix: quote it: "true")'),
        ("env: {A: ~/x}\n", "env.A: '~/x' names a path of the host"),
        ("writable: [../x]\n", "7:12: writable: '../x' holds an empty name, '.' or '..'"),
        ("writable: [./x]\n", "holds an empty name, '.' or '..'"),
        ("writable: [/src/x]\n", "is an absolute path (fix: write 'src/x')"),
        ("writable: [/home/ada]\n", "names a path of the host or worker"),
        ("writable: [/]\n", "'/' is not a pattern"),
        ("writable: ['#x']\n", "'#x' is a comment to gitignore"),
        ("writable: [' x']\n", "' x' is not a pattern"),
        ("writable: ['[ab']\n", "the bracket is never closed"),
        ("writable: [x, x]\n", "writable[1]: 'x' is here twice"),
        ("writable: [.GIT/config]\n", "names .git"),
        (
            "writable: src/**\n",
            "expected a list, got the text 'src/**' (fix: write a list: [\"src/**\"])",
        ),
        ("inputs: {include: [.git]}\n", "inputs.include: '.git' names .git"),
        (
            "inputs: {exclud: [x]}\n",
            "unknown field 'exclud' in inputs (fix: did you mean 'exclude'?)",
        ),
        ("outputs: [{name: a, path: /x}]\n", "outputs: '/x' is not inside the workspace"),
        ("outputs: [{name: a, path: /workspace/x}]\n", "is absolute (fix: write 'x')"),
        ("outputs: [{name: a, path: '*.xml'}]\n", "expected one path, not a pattern"),
        ("outputs: [{name: a, path: a/../b}]\n", "'..' is not a name inside a tree"),
        (
            "outputs: [{name: a, path: x}, {name: a, path: z}]\n",
            "outputs: the name 'a' is here twice",
        ),
        ("outputs: [{name: a, path: x, report: tap}]\n", "expected junit, got 'tap'"),
        (
            "limits: {wall: 600}\n",
            "limits.wall: expected text, got the number 600 (fix: write something like 10m)",
        ),
        ("limits: {wall: 0s}\n", "limits.wall: duration: expected a number and ms"),
        ("limits: {cpus: 0.0011}\n", "limits.cpus: expected at least 0.01, got 0.0011"),
        (
            "limits: {cpus: 1.2345}\n",
            "limits.cpus: amount: expected at most three digits after the point",
        ),
        ("limits: {pids: 4}\n", "limits.pids: expected at least 8, got 4"),
        ("limits: {memory: 1KiB}\n", "limit memory: expected at least 16MiB, got 1KiB"),
        ("limits: {memory: 3GiB}\n", "limit memory: expected at most 2GiB, got 3GiB"),
        ("timeout: 5m\n", "unknown field 'timeout'"),
        ("policy: other\n", "7:9: policy: expected 'default', got 'other'"),
        ("parameters: {x: {default: a}}\n", "parameter 'x' is never used (fix: write ${param.x}"),
        ("parameters: {X: {default: a}}\n", "parameters: expected a name like"),
    ],
)
def test_bad_fields(more: str, expected: str) -> None:
    found = mistakes_in(HEAD + STEPS + more)
    assert len(found) == 1, found
    assert expected in found[0]
    assert found[0].startswith("r.yaml:7:")


USES = "steps:\n  - run: [pytest, '${param.x}']\nparameters:\n"


@pytest.mark.parametrize(
    ("parameter", "chosen", "expected"),
    [
        ("  x: {}\n", {}, "--param x: a value is needed (fix: --param x=VALUE)"),
        ("  x: {}\n", {"x": "a", "z": "b"}, "--param z: this recipe has no such parameter"),
        ("  x: {}\n", {"x": "-k"}, "--param x: '-k' could become an option"),
        ("  x: {}\n", {"x": "a\nb"}, "--param x: expected one line of at most 256 characters"),
        ("  x: {}\n", {"x": "a" * 257}, "expected one line of at most 256 characters"),
        ("  x: {choices: [a, b]}\n", {"x": "c"}, "--param x: expected one of a, b, got 'c'"),
        ("  x: {pattern: '[a-z]+'}\n", {"x": "A"}, "expected a match of [a-z]+, got 'A'"),
        ("  x: {default: '-k'}\n", {}, "r.yaml:8:16: parameters.x: '-k' could become an option"),
        ("  x: {default: c, choices: [a]}\n", {}, "parameters.x: expected one of a, got 'c'"),
        ("  x: {default: a, pattern: (a)}\n", {}, "r.yaml:8:28: parameters.x.pattern: '(a)'"),
    ],
)
def test_bad_parameters(parameter: str, chosen: Mapping[str, str], expected: str) -> None:
    found = mistakes_in(HEAD + USES + parameter, chosen)
    assert len(found) == 1, found
    assert expected in found[0]


def test_a_parameter_never_makes_a_new_argument() -> None:
    recipe = read(HEAD + USES + "  x: {}\n", {"x": "a b 'c'"})
    assert recipe.steps[0].argv == ("pytest", "a b 'c'")


def test_checking_without_values_leaves_references_as_they_are() -> None:
    recipe = read(HEAD + USES + "  x: {}\n", None)
    assert recipe.steps[0].argv == ("pytest", "${param.x}")


@pytest.mark.parametrize("value", ["-cimport os", "-Ic"])
def test_a_value_cannot_turn_a_command_into_a_script(value: str) -> None:
    text = HEAD + "steps:\n  - run: [python3, '${param.x}', f]\nparameters:\n"
    found = mistakes_in(text + "  x: {pattern: '.*'}\n", {"x": value})
    assert any("steps[0]: is a script (inline source for python)" in line for line in found)


def test_scripts_need_the_switch_and_take_no_parameters_in_their_source() -> None:
    text = (
        HEAD + "steps:\n  - run: [sh, -c, 'echo \"$1\"', sh, '${param.x}']\nparameters:\n  x: {}\n"
    )
    recipe = read(text, {"x": "a; rm -rf /"}, SCRIPTS)
    assert recipe.steps[0].script
    assert recipe.steps[0].argv[4] == "a; rm -rf /"
    found = mistakes_in(text.replace("$1", "${param.x}"), {"x": "a"}, SCRIPTS)
    assert found == [
        (
            "r.yaml:6:19: steps[0].run[2]: a reference inside source text would be code "
            "(fix: pass it as an argument after the source, or in env)"
        ),
    ]


def test_an_argument_longer_than_the_kernel_takes_is_refused() -> None:
    long = "${param.x}" * 600
    text = HEAD + f"steps:\n  - run: [echo, '{long}']\nparameters:\n  x: {{}}\n"
    found = mistakes_in(text, {"x": "a" * 256})
    assert "steps[0].run[1]: expected at most 131071 bytes, got 153600" in found[0]


@pytest.mark.parametrize(
    ("own", "above", "effective"),
    [("", "copy", "copy"), ("auto", "copy", "copy"), ("copy", "auto", "copy"), ("copy",) * 3],
)
def test_workspace_is_the_stricter(own: str, above: str, effective: str) -> None:
    policy = replace(POLICY, isolation=Isolation(workspace=above))
    text = HEAD + STEPS + (f"workspace: {own}\n" if own else "")
    assert read(text, {}, policy).workspace == effective


def test_workspace_cannot_differ_from_the_policys() -> None:
    policy = replace(POLICY, isolation=Isolation(workspace="copy"))
    found = mistakes_in(HEAD + STEPS + "workspace: overlay\n", {}, policy)
    assert found == [
        "r.yaml:7:12: workspace: expected copy, as the policy says, got overlay (fix: leave it out)"
    ]


def test_the_file_name_must_be_a_name() -> None:
    with pytest.raises(InputError) as caught:
        read(HEAD + STEPS, name="My Recipe")
    assert "file name: expected lower-case letters" in str(caught.value.issues[0])


def test_the_policys_name_is_read_whatever_else_is_wrong() -> None:
    assert read_recipe_policy_name((HEAD + "policy: strict\nwat: no\n").encode(), "r") == "strict"
    assert read_recipe_policy_name(HEAD.encode(), "r") == "default"
    for text in ("policy: [x]\n", "- a\n", "a: [\n"):
        with pytest.raises(InputError):
            read_recipe_policy_name(text.encode(), "r")


def test_parameters_can_be_listed_without_a_policy() -> None:
    text = HEAD + USES + "  x: {description: What., choices: [a, b], default: a}\n"
    (parameter,) = read_recipe_parameters(text.encode(), "r")
    assert (parameter.name, parameter.default, parameter.choices) == ("x", "a", ("a", "b"))
    assert parameter.description == "What."


def test_line_ends_change_nothing() -> None:
    text = (
        HEAD
        + STEPS
        + "env: {A: |-\n    x\n    y\n  }\n".replace("{A: |-", "\n  A: |-").replace("  }\n", "")
    )
    windows = text.replace("\n", "\r\n")
    assert read(windows, {}) == read(text, {})


_LINES = st.lists(
    st.sampled_from(
        [
            *(HEAD + STEPS).splitlines(),
            *(
                "env:",
                "  A: b",
                "limits:",
                "  cpus: 1.5",
                "  wall: no",
                "writable:",
                "  - x",
                "- x",
            ),
            *("parameters:", "  x: {}", "  x: {pattern: '['}", "inputs: {include: [1]}", "? x"),
            *("  - run: ['${param.x}', sh, -c]", "outputs: [{name: a, path: b}]", "policy: [", "'"),
        ]
    ),
    max_size=14,
)


@settings(max_examples=300)
@given(_LINES, st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=2))
def test_any_file_is_read_or_refused_with_its_mistakes(
    lines: list[str], chosen: Mapping[str, str]
) -> None:
    try:
        recipe = read("\n".join(lines), chosen)
    except InputError as error:
        issues = error.issues
    else:
        assert recipe.steps
        return
    assert issues
