from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.files.recipe_rules import (
    argument_problem,
    env_name_problem,
    path_problem,
    pattern_problem,
    value_problem,
)
from harness.model.seal import FIXED_ENV


@pytest.mark.parametrize(
    "name",
    """
    TOKEN API_TOKEN GITHUB_TOKEN npm_token SECRET CLIENT_SECRET DB_PASSWORD PGPASSWORD PASSWD
    SSH_PASSPHRASE API_KEY OPENAI_API_KEY APIKEY AWS_ACCESS_KEY_ID AWS_PROFILE PRIVATE_KEY
    SIGNING_KEY_PATH CREDENTIALS GOOGLE_APPLICATION_CREDENTIALS BASIC_AUTH SENTRY_DSN GH_PAT
    TWINE_USERNAME PIP_INDEX_URL DOCKER_HOST DOCKER_CONFIG KUBECONFIG SSH_AUTH_SOCK GPG_TTY
    LD_PRELOAD LD_AUDIT BASH_ENV HARNESS_RUN
    """.split(),  # noqa: SIM905 - a table of words
)
def test_names_a_recipe_may_not_set(name: str) -> None:
    assert env_name_problem(name) is not None


@pytest.mark.parametrize("name", sorted(FIXED_ENV))
def test_fixed_variables_are_fixed_in_any_case(name: str) -> None:
    for spelling in (name, name.lower()):
        problem = env_name_problem(spelling)
        assert problem is not None
        assert "is fixed to" in problem.message


@pytest.mark.parametrize(
    "name",
    """
    CI DEBUG PYTHONPATH PYTHONDONTWRITEBYTECODE TOKENIZERS_PARALLELISM KEYBOARD MONKEY AUTHOR
    COMPASS PASSES PATTERN PATCH LD_LIBRARY_PATH NODE_OPTIONS ENV HYPOTHESIS_PROFILE CFLAGS PATHS
    """.split(),  # noqa: SIM905 - a table of words
)
def test_names_that_only_look_alike_are_free(name: str) -> None:
    assert env_name_problem(name) is None


@pytest.mark.parametrize(
    "value",
    [
        *("~", "~/x", "~ada/x", "--f=~/x", "/home/ada", "a:/home/ada/x", "/Users/ada", "/root"),
        *("/root/.ssh", "C:\\x", "file:///home/ada/x", "unix:///run/docker.sock", "/mnt/c/x"),
        "-----BEGIN OPENSSH PRIVATE KEY-----\n" + "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ" * 2,
    ],
)
def test_values_of_the_host(value: str) -> None:
    assert value_problem(value) is not None


@pytest.mark.parametrize(
    "value",
    [
        *("/home/worker/x", "/workspace/src", "/usr/bin/python3", "pkg~=1.0", "HEAD~2", "/rooted"),
        *("$5", "a/home/b", "https://example.org/home/ada", "x:y", ""),
    ],
)
def test_values_of_the_worker(value: str) -> None:
    assert argument_problem(value) is None


@pytest.mark.parametrize("value", ["$HOME", "a/$USER", "${PWD}/x"])
def test_no_shell_replaces_variables_in_arguments(value: str) -> None:
    assert argument_problem(value) is not None
    assert value_problem(value) is None


@pytest.mark.parametrize(
    "pattern",
    ["*", "**", "src/**", "/setup.py", "/src/", "*.py", "!keep", "[ab]/x", "[]a]", r"\#x", "a b"],
)
def test_good_patterns(pattern: str) -> None:
    assert pattern_problem(pattern, git_matters=True) is None


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "/", "!", "!/", "..", "../a", "a/../b", "a//b", "./a", "/a/b", "~", "~/a"),
        *("/home/ada/x", "/workspace/x", "#x", " a", "a ", "a\nb", "[a", "C:\\a", "!../a"),
    ],
)
def test_bad_patterns(pattern: str) -> None:
    assert pattern_problem(pattern, git_matters=False) is not None


@pytest.mark.parametrize("pattern", [".git", ".git/hooks/*", "a/.GIT/x", "!.git", "git~1"])
def test_git_matters_where_it_is_let_in(pattern: str) -> None:
    assert pattern_problem(pattern, git_matters=True) is not None
    assert pattern_problem(pattern, git_matters=False) is None


@pytest.mark.parametrize("path", ["r.xml", "out/r.xml", "a b", ".harness-out/x"])
def test_good_paths(path: str) -> None:
    assert path_problem(path) is None


@pytest.mark.parametrize(
    "path", ["/x", "/workspace/x", "../x", "a/../x", "a//b", "*.xml", "a?", "[a]", "~/x", ".git/x"]
)
def test_bad_paths(path: str) -> None:
    assert path_problem(path) is not None


@given(st.text(max_size=60))
def test_any_text_gets_a_verdict(text: str) -> None:
    for problem in (
        env_name_problem(text),
        argument_problem(text),
        pattern_problem(text, git_matters=True),
        path_problem(text),
    ):
        assert problem is None or (problem.message and problem.fix)
