"""What a shell is offered for an argument or an option: `shell_complete=offer("runs")`.

The readers are imported when a shell asks, never by a command that just runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from harness.model.digest import PREFIX

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from harness.flows.candidates import Candidate

_PLAIN = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")
"""What no shell reads as anything but itself: a word is put on the line as it is."""

Kind = Literal["recipes", "plans", "runs", "diffs", "landed diffs", "images", "reviewers"]
Offer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem[str]]"]


def offer(*kinds: Kind) -> Offer:
    """Return what click calls for the words that may complete an argument or an option.

    Args:
        kinds: what the word can be, likeliest first.
    """

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - as below

        start = context.params.get("project") or Path()
        given = context.params.get(parameter.name or "") or ()
        found = [item for kind in kinds for item in _candidates(kind, start)]
        return [
            CompletionItem(word, help=item.about or None)
            for item in found
            for word in _spelled(item.value, incomplete)
            if word not in given and _PLAIN.fullmatch(word)
        ]

    return complete


def _candidates(kind: Kind, start: Path) -> Iterable[Candidate]:
    from harness.flows import candidates  # noqa: PLC0415 - only when a shell asks

    readers: Mapping[Kind, Callable[[], Iterable[Candidate]]] = {
        "recipes": lambda: candidates.offer_recipes(start),
        "plans": lambda: candidates.offer_plans(start),
        "runs": lambda: candidates.offer_runs(start),
        "diffs": lambda: candidates.offer_diffs(start, landed=False),
        "landed diffs": lambda: candidates.offer_diffs(start, landed=True),
        "images": candidates.offer_images,
        "reviewers": lambda: candidates.offer_reviewers(start),
    }
    return readers[kind]()


def _spelled(value: str, incomplete: str) -> Iterable[str]:
    """Yield the value as it continues what was typed: a hash with `sha256:` or without."""
    if value.startswith(incomplete):
        yield value
    elif value.removeprefix(PREFIX).startswith(incomplete):
        yield value.removeprefix(PREFIX)
