"""Who calls is what the operating system says; where their files are is what HOME says first."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.flows.caller import caller_config, caller_home, caller_name
from harness.flows.init import init_project
from harness.flows.policies import read_host_policy

NOBODY = 2_000_000_000


def unknown(_uid: int) -> pwd.struct_passwd:
    raise KeyError


def account(_uid: int) -> pwd.struct_passwd:
    return pwd.struct_passwd(("ada", "x", 7, 7, "", "/home/ada", "/bin/sh"))


def test_the_name_is_the_operating_systems_and_not_a_word_of_the_callers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", account)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert caller_name() == "ada"


def test_an_id_without_an_account_has_a_name_that_a_reviewers_file_can_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    monkeypatch.delenv("HOME", raising=False)
    assert caller_name() == "uid-2000000000"
    begun = init_project(tmp_path, key=None, reviewer="")
    assert "policies/reviewers" in begun.written


@pytest.mark.parametrize(
    ("environment", "home", "config"),
    [
        ({"HOME": "/h"}, "/h", "/h/.config"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}, "/h", "/c"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "c"}, "/h", "/h/.config"),
        ({"HOME": "h"}, "/home/ada", "/home/ada/.config"),
        ({}, "/home/ada", "/home/ada/.config"),
    ],
)
def test_home_and_configuration_follow_the_environment_then_the_account(
    environment: dict[str, str], home: str, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", account)
    assert caller_home(environment) == Path(home)
    assert caller_config(environment) == Path(config)


def test_a_caller_without_a_home_has_no_host_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert caller_home({}) is None
    assert caller_config({}) is None
    assert read_host_policy() is None


def test_a_host_policy_that_can_not_be_read_is_not_taken_for_absent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert read_host_policy() is None
    (tmp_path / "sealed-harness" / "policy.yaml").mkdir(parents=True)
    with pytest.raises(InputError, match=r"host policy .*policy\.yaml: Is a directory") as caught:
        read_host_policy()
    assert "may be another user's" in caught.value.hint
