"""What `harness project`, `harness key` and `harness state` print."""

from __future__ import annotations

from collections.abc import Mapping

from harness.cli.outputs.pieces import (
    Schema,
    digest,
    flag,
    many,
    members,
    moment,
    or_empty,
    or_null,
    text,
    whole,
    word,
)

_BASE64 = "^[A-Za-z0-9+/]*={0,2}$"

_VKEY = "A verifier key (C2SP)"


def _path(name: str, about: str) -> Mapping[str, Schema]:
    """Return the members of a path of the host: one of the two is there."""
    coded: Schema = {
        "description": f"{about}, in base64 when it is not UTF-8.",
        "type": "string",
        "pattern": _BASE64,
    }
    return {name: text(f"{about}."), f"{name}_b64": coded}


_PROJECT: Mapping[str, Schema] = {
    "id": text("32 hex digits, random; the host keeps it."),
    "name": text("As its harness.yaml said when it was last opened."),
    "demo": flag("It was made by `harness demo`."),
    "place": word("Whether its folder is where it was.", "here", "gone", "unreadable"),
}
_ROOT = _path("root", "Its folder")

KNOWN_PROJECT: Schema = members("One project of this host.", _PROJECT, _ROOT)

MOVED_PROJECT: Schema = members(
    "A project that followed its folder.", _PROJECT, {**_ROOT, **_path("old", "Where it was")}
)

ERAS: Schema = many(
    "The keys of this ledger, oldest first; the last one signs now.",
    members(
        "One key.",
        {
            "key": text(f"{_VKEY}; empty when it was lost and nobody knows it."),
            "since": whole("Entries before the first one that it stands for."),
            "time": or_empty(moment("When it took over; empty for the first.")),
            "begunBy": word(
                "How it took over: signed by the key before it, or after that was lost.",
                "first",
                "rotate",
                "renew",
            ),
        },
    ),
)

KEYS: Schema = members(
    "The keys of this host.",
    {"keys": ERAS, "problem": text("Why nothing can be signed now; empty when it can.")},
)

KEY_CHANGE: Schema = members(
    "A key that took over.",
    {
        "entry": whole("Position of the entry that says so."),
        "old": text(f"{_VKEY} before; empty when nobody knows it."),
        "new": text(f"{_VKEY} from here on."),
    },
)

_MANIFEST: Mapping[str, Schema] = {
    "created": moment("When the backup was made."),
    "entries": whole("Entries of its ledger."),
    "root": digest("Root of the tree over them (RFC 6962)."),
    "last": or_empty(moment("Of the last entry; empty without one.")),
    "objects": whole("Stored objects in it."),
    "bytes": whole("Their sizes together."),
    "withKey": flag("The private host key is in it."),
    "key": text(f"{_VKEY}: the one in force."),
}

BACKUP: Schema = members(
    "A backup that was made.",
    {
        "file": text("Where it is."),
        "checkpoint": text("The signed checkpoint over its ledger, to keep elsewhere."),
        **_MANIFEST,
    },
)

RESTORED: Schema = members(
    "A state that was restored.",
    {
        "state": text("The state folder."),
        "problem": text("Why nothing can be signed yet; empty when it can."),
        "lostProjects": many(
            "Projects whose folder is not where it was.",
            members("A project.", _PROJECT, _ROOT),
        ),
        "missingImages": or_null(
            many(
                "Locked images that the engine does not have; null when no engine answers.",
                text("A name."),
            )
        ),
        **_MANIFEST,
    },
)
