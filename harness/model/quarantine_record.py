"""What waits in quarantine beside the changeset: where it came from and what to look at.

Format (`harness/quarantine/v1`): the run, its plan, how it ended, the diff hash, the digest of the
by-products, flags for the reviewer, and declared outputs that are missing. A reverse changeset made
by undo names the diff that it takes back.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import InputError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.digest import Digest, digest_of, parse_digest
from harness.model.relpath import path_from_json, path_to_json

QUARANTINE_KIND = "harness/quarantine/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineRecord:
    """One quarantined diff.

    Attributes:
        run: run id.
        plan: plan hash.
        outcome: kind of the run's outcome.
        diff: diff hash.
        by_products: digest of the list of by-products.
        flags: path and what a reviewer should look at.
        missing: names of declared outputs that were not made.
        undoes: the diff this one takes back; empty for a run's own diff.
    """

    run: str
    plan: Digest
    outcome: str
    diff: Digest
    by_products: Digest
    flags: tuple[tuple[bytes, str], ...]
    missing: tuple[str, ...]
    undoes: str

    def to_bytes(self) -> bytes:
        """Return the canonical bytes."""
        return canonical_bytes(
            {
                "_type": QUARANTINE_KIND,
                "run": self.run,
                "plan": self.plan,
                "outcome": self.outcome,
                "diff": self.diff,
                "byProducts": self.by_products,
                "flags": [{**path_to_json(path), "reason": reason} for path, reason in self.flags],
                "missing": list(self.missing),
                "undoes": self.undoes,
            }
        )

    @property
    def digest(self) -> Digest:
        """Return the digest of the record."""
        return digest_of(self.to_bytes())


def parse_quarantine_record(data: bytes) -> QuarantineRecord:
    """Read a quarantine record.

    Raises:
        InputError: not canonical or malformed.
    """
    value = parse_canonical(data, QUARANTINE_KIND)
    try:
        record = QuarantineRecord(
            run=value["run"],
            plan=parse_digest(value["plan"]),
            outcome=value["outcome"],
            diff=parse_digest(value["diff"]),
            by_products=parse_digest(value["byProducts"]),
            flags=tuple((path_from_json(item), item["reason"]) for item in value["flags"]),
            missing=tuple(value["missing"]),
            undoes=value["undoes"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"quarantine record: malformed: {error!r}"[:200]) from error
    if record.to_bytes() != data:
        raise InputError("quarantine record: has unknown or missing members")
    return record
