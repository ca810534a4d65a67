"""`harness completion`: scripts that let a shell complete commands, names, hashes and run ids.

The script of a shell asks this program with `_HARNESS_COMPLETE=SHELL_complete`, as click's own do.
Two faults of those are mended here. Bash splits a word at `:` and `=`, which hashes and operations
contain. Fish's script cuts a word at its first comma. A question that can't be answered, whatever
the reason, is answered with nothing: a prompt is no place for a message.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    shell_complete,
    split_arg_string,
)

from harness.cli.command import Command

VARIABLE = "_HARNESS_COMPLETE"

_QUOTES = ("'", '"')

_BASH = """\
# Completion of `%(prog_name)s` for bash 4.4 or newer: source this file, or
#   eval "$(%(prog_name)s completion bash)"
%(complete_func)s() {
    local line=${COMP_LINE:0:${COMP_POINT:-0}} type value
    [[ -n $line ]] || line="${COMP_WORDS[*]:0:COMP_CWORD+1}"
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            plain) COMPREPLY+=("$value") ;;
        esac
    done < <(env %(complete_var)s=bash_complete COMP_WORDS="$line" COMP_CWORD= \\
        COMP_WORDBREAKS="$COMP_WORDBREAKS" "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Bash(BashComplete):
    """Bash, with words taken from the line itself, not from where bash broke it."""

    source_template = _BASH

    def source(self) -> str:
        """Return the script; click's own starts a bash to learn its version."""
        return ShellComplete.source(self)

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the whole words before the cursor, and the one it stands in."""
        if os.environ.get("COMP_CWORD"):
            return super().get_completion_args()
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)
        if line[-1:].isspace() or len(words) < 2:  # noqa: PLR2004 - the program and one word
            return words[1:], ""
        return words[1:-1], words[-1]

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return the part of a word that follows bash's last break in what was typed."""
        word = str(item.value)
        cut = _broken_at(os.environ.get("COMP_WORDS", ""), os.environ.get("COMP_WORDBREAKS", ""))
        _, typed = self.get_completion_args()
        return f"{item.type},{word[cut:] if cut and word.startswith(typed) else word}"


def _broken_at(line: str, breaks: str) -> int:
    """Return how much of the last word of a line bash takes for words of their own."""
    last = line.rpartition(" ")[2]
    if last.startswith(_QUOTES):
        return 0
    return max((last.rfind(mark) + 1 for mark in breaks if mark in ":="), default=0)


class _Fish(FishComplete):
    """Fish, with words that hold commas kept whole."""

    source_template = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )


SHELLS: Mapping[str, type[ShellComplete]] = {"bash": _Bash, "zsh": ZshComplete, "fish": _Fish}


def answer_shell(program: click.Command, instruction: str) -> int:
    """Answer a shell's question; silently, whatever happens.

    Args:
        program: the command line.
        instruction: what the shell's script put into `_HARNESS_COMPLETE`, as `bash_complete`.

    Returns:
        The exit code: 0 when the question was answered.
    """
    for name, shell in SHELLS.items():
        add_completion_class(shell, name)
    with contextlib.suppress(Exception):
        return shell_complete(program, {}, "harness", VARIABLE, instruction)
    return 1


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands in your shell.

    It completes commands, options, recipes, plan and diff hashes, run ids, images and reviewers.
    """
    program = context.find_root().command
    script = SHELLS[shell](program, {}, "harness", VARIABLE).source()
    click.echo(script, nl=False)
