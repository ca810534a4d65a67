"""Holds what a command printed with --json against its published schema."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

import jsonschema
from jsonschema.protocols import Validator

from harness.cli.outputs.kinds import schema_of_command
from harness.cli.outputs.table import ERROR, OUTPUTS


@functools.cache
def validator(command: str) -> Validator:
    return jsonschema.Draft202012Validator(schema_of_command(command))


def command_of(words: Sequence[str]) -> str:
    """Return the words that name the command."""
    return next((name for name in (" ".join(words[:2]), words[0]) if name in OUTPUTS), "")


def require_described(words: Sequence[str], out: str, err: str) -> None:
    """Require that JSON on stdout, or else the error on stderr, is as its schema says.

    Does nothing for a command that was not asked for JSON, or that was killed before it spoke.
    """
    if "--json" not in words:
        return
    if out:
        command = command_of(words)
        assert command, f"no schema for {words}"
        validator(command).validate(json.loads(out))
    elif '"error": {' in err:
        validator(ERROR).validate(json.loads(err[err.index("{\n") :]))
