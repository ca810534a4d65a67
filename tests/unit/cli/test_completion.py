"""What a shell is answered: the right words, in the shell's own spelling, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from harness.cli.completion import VARIABLE, answer_shell
from harness.cli.main import run_command_line
from harness.cli.offer import offer

HASH = "sha256:" + "ab12" * 16
CELL = "20261130-101010-abcdef/test:python=3.11,os=debian"
BREAKS = " \t\n\"'><=;|&(:"

Ask = Callable[..., list[str]]


@click.command()
@click.argument(
    "words",
    nargs=-1,
    shell_complete=lambda _c, _p, typed: [
        word for word in (HASH, CELL, "plain") if word.startswith(typed)
    ],
)
@click.option("--file", type=click.Path())
@click.option("--who", shell_complete=lambda _c, _p, _t: ["ada"])
def program(words: tuple[str, ...]) -> None:
    """Stand in for the harness."""


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    def answer(shell: str, line: str, number: str = "", breaks: str = BREAKS) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", number)
        monkeypatch.setenv("COMP_WORDBREAKS", breaks)
        assert answer_shell(program, f"{shell}_complete") == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out.splitlines()

    return answer


def test_bash_gets_whole_words(ask: Ask) -> None:
    assert ask("bash", "harness ") == [f"plain,{HASH}", f"plain,{CELL}", "plain,plain"]
    assert ask("bash", "harness pl") == ["plain,plain"]


def test_bash_gets_what_follows_its_last_break(ask: Ask) -> None:
    """Bash replaces only what follows the last `:` or `=` before the cursor."""
    assert ask("bash", "harness sha256:ab") == [f"plain,{HASH.removeprefix('sha256:')}"]
    assert ask("bash", f"harness {CELL[:34]}") == [f"plain,{CELL[28:]}"]
    assert ask("bash", "harness 20261130-101010-abcdef/test:python=3") == ["plain,3.11,os=debian"]


def test_bash_that_breaks_nowhere_gets_whole_words(ask: Ask) -> None:
    assert ask("bash", "harness sha256:ab", breaks=" ") == [f"plain,{HASH}"]
    assert ask("bash", 'harness "sha256:ab') == [f"plain,{HASH}"]


def test_bash_may_ask_as_the_scripts_of_click_do(ask: Ask) -> None:
    assert ask("bash", "harness pl", "1") == ["plain,plain"]
    assert ask("bash", "harness plain", "2", "") == [
        f"plain,{HASH}",
        f"plain,{CELL}",
        "plain,plain",
    ]


def test_bash_is_told_to_complete_files_itself(ask: Ask) -> None:
    assert ask("bash", "harness --file ") == ["file,"]
    assert ask("bash", "harness --file=x") == ["file,x"]


def test_bash_gets_the_value_alone_after_an_equals_sign(ask: Ask) -> None:
    assert ask("bash", "harness --who=a") == ["plain,ada"]


def test_zsh_and_fish_get_whole_words(ask: Ask) -> None:
    assert ask("zsh", "harness sha256:ab", "1") == ["plain", HASH, "_"]
    assert ask("fish", "harness sha256:ab", "sha256:ab") == [f"plain,{HASH}"]


@pytest.mark.parametrize("instruction", ["", "bash", "tcsh_complete", "bash_dance", "\x00", "_"])
def test_a_question_that_is_none_is_answered_with_nothing(
    instruction: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer_shell(program, instruction) == 1
    assert capsys.readouterr() == ("", "")


def test_a_fault_is_answered_with_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COMP_WORDS", raising=False)
    assert answer_shell(program, "bash_complete") == 1
    assert capsys.readouterr() == ("", "")


def test_an_offer_leaves_out_what_a_shell_would_read_and_what_was_given(tmp_path: Path) -> None:
    (tmp_path / "harness.yaml").write_text("version: 1\nname: p\n")
    (tmp_path / "recipes").mkdir()
    for name in ("test", "tidy", "$(reboot)", "two words", "nl\nx"):
        (tmp_path / "recipes" / f"{name}.yaml").touch()
    argument = click.Argument(["names"], nargs=-1)
    context = click.Context(program)
    context.params = {"project": tmp_path, "names": ("test",)}
    found = [item.value for item in offer("recipes")(context, argument, "")]
    assert found == ["tidy"]


def test_completing_makes_no_state_folder_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "harness.yaml").write_text("version: 1\nname: p\n")
    state = tmp_path / "state"
    monkeypatch.setenv("HARNESS_STATE", str(state))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_CWORD", "")
    for command in ("seal", "run", "approve", "apply", "undo", "diff", "runs show"):
        monkeypatch.setenv("COMP_WORDS", f"harness {command} ")
        assert run_command_line([]) == 0
    out, err = capsys.readouterr()
    assert (out.strip(), err) == ("", "")
    assert not state.exists()
    assert [item.name for item in tmp_path.iterdir()] == ["harness.yaml"]
