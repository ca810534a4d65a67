"""The form of a page, and what several pages refer to by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

EVERYWHERE: Mapping[int, str] = {
    0: "Done.",
    2: "A word of the command, or a file it reads, is malformed; nothing was done.",
    6: "The engine, an image or the state folder can't be used.",
    130: "Interrupted by Ctrl-C, SIGTERM or SIGHUP.",
}
"""Exit codes that every command may have; a page says what is special."""

ENVIRONMENT: Mapping[str, str] = {
    "DOCKER_HOST": "Address of the engine, as unix:///PATH; no other is then tried. "
    "[default: the system's socket, your rootless engine's, the one that setup started]",
    "HARNESS_STATE": "Whole path of the state folder. "
    "[default: $XDG_STATE_HOME/sealed-harness, else ~/.local/state/sealed-harness]",
    "XDG_CONFIG_HOME": "Where the host's own policy is, below sealed-harness/. "
    "[default: ~/.config]",
    "SSH_AUTH_SOCK": "The agent that holds a key of which only the .pub file is given.",
    "HARNESS_DEBUG": "When set, a fault of harness shows its trace.",
}
"""Variables that commands read."""

FILES: Mapping[str, str] = {
    "harness.yaml": "Marks the project's folder and names those of recipes and policies.",
    "recipes/NAME.yaml": "The recipes.",
    "policies/NAME.yaml": "The policies, and beside them the files of reviewers.",
    ".gitignore": "What does not enter a snapshot, besides what a recipe excludes.",
    "~/.config/sealed-harness/policy.yaml": "What this host allows at most.",
    "~/.local/state/sealed-harness/": "The state folder: ledger, objects, layers, host key.",
    "~/.local/state/sealed-harness/images.lock": "Names and content ids of this host's images.",
    "~/.docker/config.json": "What `docker login` left for a registry, and its helpers.",
    "~/.ssh/id_ed25519": "The key that approve offers to sign with on a terminal.",
}
"""Files that commands read or write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What the manual says of one command beside its description and its options.

    Attributes:
        arguments: by their word in the usage.
        exits: what an exit code means here, where `EVERYWHERE` does not say it.
        environment: variables it reads, of `ENVIRONMENT`.
        files: files it reads or writes, of `FILES`.
        examples: what for, and the command line.
        see: other commands, by their words.
    """

    arguments: Mapping[str, str] = field(default_factory=dict)
    exits: Mapping[int, str] = field(default_factory=dict)
    environment: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    examples: tuple[tuple[str, str], ...]
    see: tuple[str, ...]

    @property
    def all_exits(self) -> Mapping[int, str]:
        """Return every exit code with its meaning, in order."""
        return dict(sorted({**EVERYWHERE, **self.exits}.items()))
