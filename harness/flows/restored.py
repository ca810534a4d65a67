"""The mark of a state that was restored, until the ledger says so too.

Apart from restoring itself, because every command that begins work looks for it.
"""

from __future__ import annotations

from harness.errors import InputError, StateError
from harness.flows.session import Host
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.store.durable import state_error, sync_folder

MARK = "restored.json"
MARK_KIND = "harness/restored/v1"


def mark_bytes(entries: int, backup: str) -> bytes:
    """Return the bytes of the mark.

    Args:
        entries: how many ledger entries the backup held.
        backup: when it was made.
    """
    return canonical_bytes({"_type": MARK_KIND, "entries": entries, "backup": backup})


def settle_restore(host: Host) -> str:
    """Say on the ledger that the state was restored, when that was not said yet.

    Returns:
        What was said, for people; empty when there was nothing to say.

    Raises:
        LedgerBrokenError: the private host key is not there, or the ledger does not fit.
        StateError: the state folder can't be read or written.
    """
    mark = host.state.root / MARK
    try:
        data = mark.read_bytes()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise state_error(f"read {MARK}", error) from error
    try:
        value = parse_canonical(data, MARK_KIND)
        body = {"entries": value["entries"], "backup": value["backup"]}
    except (InputError, KeyError) as error:
        raise StateError(f"state folder: {MARK}: is not as it was written") from error
    if not any(
        entry.verb == "restore" and dict(entry.body) == body for entry in host.ledger.entries()
    ):
        host.ledger.append("restore", "done", project="", body=body)
    try:
        mark.unlink(missing_ok=True)
    except OSError as error:
        raise state_error(f"remove {MARK}", error) from error
    sync_folder(host.state.root)
    return f"state restored from the backup of {body['backup']}; earlier approvals count no more"
