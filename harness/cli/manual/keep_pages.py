"""Pages of the commands that keep what this host knows."""

from __future__ import annotations

from collections.abc import Mapping

from harness.cli.manual.page import Page

_STATE = ("HARNESS_STATE",)
_FOLDER = ("~/.local/state/sealed-harness/",)
_BROKEN = {3: "The ledger, its checkpoint or its key do not fit together."}
_PLACES = ("harness.yaml", *_FOLDER)

KEEP_PAGES: Mapping[str, Page] = {
    "project": Page(
        environment=_STATE,
        files=_PLACES,
        examples=(("See where this host's projects are", "harness project list"),),
        see=("project list", "project move", "project add"),
    ),
    "project list": Page(
        environment=_STATE,
        files=_FOLDER,
        examples=(("See ids and folders", "harness project list"),),
        see=("project move",),
    ),
    "project move": Page(
        arguments={
            "KNOWN": "Its id or 8 or more digits of it, or the folder where it was.",
            "FOLDER": "The folder where it is now. [default: here]",
        },
        exits={
            2: "There is no such project, it is still where it was, or FOLDER is another one's.",
            **_BROKEN,
        },
        environment=_STATE,
        files=_PLACES,
        examples=(("After `mv /old/place .`", "harness project move /old/place"),),
        see=("project list", "project add"),
    ),
    "project add": Page(
        exits={2: "The folder is known already, or holds no project."},
        environment=_STATE,
        files=_PLACES,
        examples=(("Say that this is another project of the same name", "harness project add"),),
        see=("project list", "project move"),
    ),
    "key": Page(
        environment=_STATE,
        files=_FOLDER,
        examples=(("See which keys signed this ledger", "harness key show"),),
        see=("key show", "key rotate", "key renew", "ledger verify"),
    ),
    "key show": Page(
        exits=_BROKEN,
        environment=_STATE,
        files=_FOLDER,
        examples=(("Get the verifier key to give away", "harness key show"),),
        see=("key rotate", "ledger verify"),
    ),
    "key rotate": Page(
        exits={3: "The old key is not there, or the ledger does not fit."},
        environment=_STATE,
        files=_FOLDER,
        examples=(("Hand over to a new key", "harness key rotate"),),
        see=("key show", "key renew", "ledger verify"),
    ),
    "key renew": Page(
        exits={2: "--lost is missing, or the key is there.", 3: "The ledger does not fit."},
        environment=_STATE,
        files=_FOLDER,
        examples=(("Go on after the key was lost for good", "harness key renew --lost"),),
        see=("key rotate", "state restore"),
    ),
    "state": Page(
        environment=_STATE,
        files=_FOLDER,
        examples=(("Keep what this host knows", "harness state backup state.tar"),),
        see=("state backup", "state restore"),
    ),
    "state backup": Page(
        arguments={"FILE": "Where to write it; nothing is there yet."},
        exits={
            2: "FILE is there, lies in the state folder, or nothing was recorded yet.",
            3: "The ledger or an object is damaged; nothing was written.",
            6: "FILE can't be written, or an apply does not end.",
        },
        environment=_STATE,
        files=_FOLDER,
        examples=(
            ("Back up, the key kept elsewhere", "harness state backup state.tar"),
            ("Back up all of it", "harness state backup with-key.tar --with-key"),
        ),
        see=("state restore", "key show", "ledger verify"),
    ),
    "state restore": Page(
        arguments={"FILE": "A backup that `harness state backup` wrote."},
        exits={
            3: "FILE is damaged, or not what the checkpoint commits to; nothing was written.",
            6: "The state folder holds something, or FILE was written by a newer harness.",
        },
        environment=("HARNESS_STATE", "DOCKER_HOST"),
        files=_FOLDER,
        examples=(
            ("Bring a state back", "harness state restore state.tar"),
            (
                "Refuse a backup older than what you kept",
                "harness state restore state.tar --checkpoint kept",
            ),
        ),
        see=("state backup", "project move", "key renew", "image list"),
    ),
}
