"""The host's key: which one signs, which ones signed before, and how one follows another."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import LedgerBrokenError
from harness.flows.session import Host
from harness.ledger.kept import read_kept, require_continues, require_handed_over
from harness.ledger.key_change import KeyChange
from harness.ledger.key_folder import KeyFolder
from harness.ledger.note import parse_vkey
from harness.ledger.report import Era, LedgerReport, eras_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKeys:
    """The keys of this host.

    Attributes:
        eras: every key that signed for the ledger, oldest first; the one in force is the last.
        problem: why nothing can be signed; empty when the private half is there.
    """

    eras: tuple[Era, ...]
    problem: str


def show_keys(host: Host) -> HostKeys:
    """Return the host's keys, the whole ledger verified on the way.

    Raises:
        LedgerBrokenError: the ledger and its keys do not fit together.
        StateError: a file can't be read.
    """
    keys = KeyFolder(host.state.host)
    # A ledger that has not begun has no checkpoint that a key could have signed.
    eras = host.ledger.verify().eras or eras_of((), keys.known())
    try:
        keys.signer()
    except LedgerBrokenError as error:
        return HostKeys(eras=eras, problem=error.message)
    return HostKeys(eras=eras, problem="")


def rotate_key(host: Host) -> KeyChange:
    """Hand over to a new key, under the signature of the old one.

    Raises:
        LedgerBrokenError: the old key is not there, or the ledger does not fit.
        StateError: the state folder can't take it.
    """
    return host.ledger.change_key("rotate")


def renew_key(host: Host) -> KeyChange:
    """Begin anew with a key in place of a lost one; nothing connects the two.

    Raises:
        InputError: the key is there.
        LedgerBrokenError: the ledger does not fit.
        StateError: the state folder can't take it.
    """
    return host.ledger.change_key("renew")


def verify_ledger(
    host: Host, *, kept: bytes | None = None, vkey: str | None = None
) -> LedgerReport:
    """Check the whole ledger, and hold it against what somebody kept elsewhere.

    Args:
        host: this host.
        kept: a checkpoint that was given out earlier; an empty one is refused.
        vkey: a verifier key that was given out earlier; an empty one is refused.

    Raises:
        InputError: the verifier key is malformed.
        LedgerBrokenError: something does not fit; the first bad line is named.
        StateError: a file can't be read.
    """
    key = parse_vkey(vkey) if vkey is not None else None
    watch = (read_kept(kept).size,) if kept is not None else ()
    report = host.ledger.verify(watch=watch)
    if kept is not None:
        require_continues(report, kept)
    if key is not None:
        require_handed_over(report, key)
    return report
