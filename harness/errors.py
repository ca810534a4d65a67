"""Every error a user can meet, on one screen, classed by who must act next.

Rules:
    * An error has a stable `code`, an `exit_code`, and a `hint` that says what to do.
    * Messages are lower case, object first: "expected X, got Y". Worker output is never in one.
    * A recipe that fails is an `Outcome`, not an error.
    * Only `HarnessError` leaves a public function; adapters translate foreign errors.
    * A wrong call order is `RuntimeError`: a bug of ours, never confused with an attack.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One mistake in a file or an argument, with its place and its fix.

    Attributes:
        message: what is wrong, lower case, object first.
        where: `file:line:column`, an option name, or a path; empty when there is no place.
        fix: what to write instead; empty when the message says it.
    """

    message: str
    where: str = ""
    fix: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        fix = f" (fix: {self.fix})" if self.fix else ""
        return f"{place}{self.message}{fix}"


class HarnessError(Exception):
    """Root of all errors that a user may see; never raised itself.

    Args:
        message: one line, lower case.
        hint: the next step for the reader; replaces the class's own hint.
        issues: every mistake found, when there may be several.
    """

    code = "harness"
    exit_code = 1
    hint = ""

    def __init__(self, message: str, *, hint: str = "", issues: tuple[Issue, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.issues = issues
        self.hint = hint or self.hint


class InputError(HarnessError):
    """A file or an argument of the author's is malformed; nothing was done."""

    code = "input"
    exit_code = 2
    hint = "correct what is named above; nothing was written"


class VerificationError(HarnessError):
    """Bytes are not what was promised; stop and look."""

    code = "verification"
    exit_code = 3
    hint = "what was promised and what is there differ; find out why before going on"


class BaseDriftError(VerificationError):
    """The project changed below an approved change; nothing was written."""

    code = "base-drift"
    hint = "run the recipe again on the project as it is now, and have the new diff approved"


class LedgerBrokenError(VerificationError):
    """The ledger, its checkpoint or its key do not fit together."""

    code = "ledger-broken"
    hint = "keep a copy of the state folder; `harness ledger verify` names the first bad line"


class AuthorityError(HarnessError):
    """Not permitted, or not yet; an approver must act."""

    code = "authority"
    exit_code = 4
    hint = "have it approved: `harness approve HASH --key KEY`"


class ApprovalMissingError(AuthorityError):
    """Fewer valid approvals than the policy asks for."""

    code = "approval-missing"


class ApprovalExpiredError(AuthorityError):
    """The plan or the approval is past its end."""

    code = "approval-expired"
    hint = "seal and approve again"


class ApprovalConsumedError(AuthorityError):
    """The grant was spent already: an approval works once."""

    code = "approval-consumed"
    hint = "seal again and have the new plan approved; an approval works once"


class ApprovalRejectedError(AuthorityError):
    """A reviewer said no; the rejection stands."""

    code = "approval-rejected"
    hint = "change what was rejected, then seal or run again"


class ApprovalInvalidError(AuthorityError):
    """A signature or statement that does not count: other key, project, plan, gate or policy."""

    code = "approval-invalid"


class ContainmentError(HarnessError):
    """Something tried to leave its box."""

    code = "containment"
    exit_code = 5
    hint = "look at the paths named above before trusting this change"


class SandboxUnavailableError(HarnessError):
    """The engine, an image or a needed feature is missing; an operator must act."""

    code = "sandbox-unavailable"
    exit_code = 6
    hint = "run `harness setup`; it says what is missing"


class EngineUnreachableError(SandboxUnavailableError):
    """No Docker Engine answers."""

    code = "engine-unreachable"


class ImageMissingError(SandboxUnavailableError):
    """A worker image is not there, or is not the one that was locked."""

    code = "image-missing"
    hint = "run `harness image build NAME` (or `image add`), then seal again"


class AcquisitionError(HarnessError):
    """Something from outside could not be had."""

    code = "acquisition"
    exit_code = 7
    hint = "check the network and try again; nothing was installed"


class StateError(HarnessError):
    """The state folder cannot be used as it is: permissions, disk, schema."""

    code = "state"
    exit_code = 6
    hint = "check the state folder's owner, mode (0700) and free space"


class NewerStateError(StateError):
    """A newer harness wrote it; this one would have to guess."""

    code = "newer-state"
    hint = "upgrade harness on this host; nothing was written"
