"""What the ledger says about approvals: who decided, and whether a nonce is spent. Pure.

Rules:
    * A nonce is spent by the intent entry of a run or an apply, so it is spent before the effect.
    * A decision is found by gate, subject and plan. Its bytes come from the blob store by digest;
      bytes that are missing stop everything, for they could be a rejection.
    * An approval from before a restore is stale, also when it is brought again: it may have been
      used in what the backup does not hold.
    * A grant is claimed under the ledger's lock: `guard_grant` is what `Ledger.append` checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.errors import ApprovalConsumedError, ApprovalRejectedError
from harness.governance.approvals import ReceivedApproval, Terms, VerifiedApproval
from harness.model.digest import Digest, digest_of, parse_digest, short
from harness.model.entry import Entry

LoadBlob = Callable[[Digest], bytes]
Check = Callable[[Sequence[Entry]], None]

_DECISIONS = ("approve", "reject")
_SPENDERS = ("run", "apply")


def decision_body(verified: VerifiedApproval) -> dict[str, str]:
    """Return the body of an `approve` or `reject` entry."""
    approval = verified.signed.approval
    return {
        "gate": approval.gate,
        "subject": approval.subject,
        "plan": approval.plan,
        "statement": digest_of(verified.signed.statement),
        "signature": digest_of(verified.signed.signature),
        "reviewer": verified.person,
        "key": verified.key.fingerprint,
        "presence": verified.presence,
        "nonce": approval.nonce,
    }


def collect_approvals(
    entries: Sequence[Entry], terms: Terms, load_blob: LoadBlob
) -> tuple[ReceivedApproval, ...]:
    """Return every decision about a subject, with the time the ledger received it, unverified.

    Args:
        entries: the ledger, verified against its checkpoint.
        terms: what the decisions must be about; only gate, subject and plan select.
        load_blob: returns verified bytes by digest.

    Raises:
        InputError: an entry names no digest.
        VerificationError: a statement or signature is missing or has other bytes.
    """
    about = [entry for entry in entries if entry.verb in _DECISIONS and _is_about(entry, terms)]
    restored = max((entry.seq for entry in entries if entry.verb == "restore"), default=-1)
    stale = {entry.body.get("statement") for entry in about if entry.seq < restored}
    return tuple(
        ReceivedApproval(
            statement=load_blob(parse_digest(entry.body.get("statement"))),
            signature=load_blob(parse_digest(entry.body.get("signature"))),
            received=entry.time,
            stale=entry.body.get("statement") in stale,
        )
        for entry in about
    )


def is_spent(entries: Sequence[Entry], nonce: str) -> bool:
    """Tell whether a run or an apply with this nonce was begun."""
    return any(
        entry.verb in _SPENDERS and entry.phase == "intent" and entry.body.get("nonce") == nonce
        for entry in entries
    )


def refuse_spent(nonce: str) -> Check:
    """Return a check for `Ledger.append` that refuses a nonce which is spent already.

    The check raises `ApprovalConsumedError`.
    """

    def check(entries: Sequence[Entry]) -> None:
        if is_spent(entries, nonce):
            raise ApprovalConsumedError(f"nonce {nonce}: its one-time approval is spent already")

    return check


def guard_grant(terms: Terms, *, seen: int) -> Check:
    """Return a check for `Ledger.append` that claims a grant: not spent, and nobody said no since.

    The check raises `ApprovalConsumedError` or `ApprovalRejectedError`.

    Args:
        terms: what was approved.
        seen: how many entries the decision was made on; later ones are looked at here.
    """

    def check(entries: Sequence[Entry]) -> None:
        refuse_spent(terms.nonce)(entries)
        for entry in entries[seen:]:
            if entry.verb == "reject" and _is_about(entry, terms):
                raise ApprovalRejectedError(
                    f"{terms.gate} {short(terms.subject)}: was rejected by "
                    f"{entry.body.get('reviewer')} just now"
                )

    return check


def _is_about(entry: Entry, terms: Terms) -> bool:
    wanted = {"gate": terms.gate, "subject": terms.subject, "plan": terms.plan}
    return all(entry.body.get(member) == value for member, value in wanted.items())
