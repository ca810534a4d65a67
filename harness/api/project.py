"""The main job on one project, as methods; each is the command of the same name.

Everything goes through the flows, so through every gate: `approve` signs with a reviewer's key,
`run` and `apply` decide anew by what the ledger holds. Nothing is asked on a terminal.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.api.interrupt import stop_on_interrupt
from harness.api.translate import decision_of, diff_of, plan_of, run_of
from harness.api.values import Decision, Diff, Plan, Run
from harness.flows.apply import apply_diff, undo_diff
from harness.flows.approve import decide
from harness.flows.caller import caller_name
from harness.flows.history import list_runs
from harness.flows.live_runs import cancel_run, find_live_run
from harness.flows.lookup import find_quarantined, find_run, pick_exact_diff
from harness.flows.plans import view_plan, view_plan_of, view_plans
from harness.flows.quarantined import load_quarantine
from harness.flows.recipes import list_recipe_names
from harness.flows.run import run_plan
from harness.flows.seal import seal_recipes
from harness.flows.session import Session, open_session
from harness.flows.work import begin_work
from harness.model import approval
from harness.model.digest import parse_given_digest

_log = logging.getLogger("harness")


class Project:
    """One project on this host; `open_project` returns it.

    Args:
        root: the project's folder, the one that holds harness.yaml.
    """

    def __init__(self, root: Path) -> None:
        self._root = open_session(root).project.root

    @property
    def root(self) -> Path:
        """Return the project's folder."""
        return self._root

    def recipes(self) -> tuple[str, ...]:
        """Return the names of the project's recipes.

        Raises:
            InputError: the folder of recipes can't be read.
        """
        return tuple(list_recipe_names(self._look()))

    def seal(
        self,
        *recipes: str,
        parameters: Mapping[str, str] | None = None,
        why: str = "",
        requester: str = "",
    ) -> Plan:
        """Freeze recipes, files, images and policy into one plan; nothing runs.

        Args:
            recipes: names of recipes, one or more.
            parameters: values for their parameters.
            why: why it should run; shown to the approver.
            requester: who asks; your login name when empty.

        Raises:
            InputError: every mistake in the recipes, their policy, or the files that would enter.
            SandboxUnavailableError: an image was never made on this host.
            StateError: the state folder can't hold it.
        """
        session = self._begin()
        sealed = seal_recipes(
            session,
            recipes,
            chosen=dict(parameters or {}),
            why=why,
            requester=requester or caller_name(),
        )
        return plan_of(view_plan_of(session, session.ledger.entries(), sealed.plan.digest))

    def plan(self, given: str) -> Plan:
        """Return a plan by its hash, 12 or more digits of it, or its run id.

        Raises:
            InputError: none or several fit.
            VerificationError: it is not as it was stored.
        """
        return plan_of(view_plan(self._look(), given))

    def plans(self) -> tuple[Plan, ...]:
        """Return the project's plans, oldest first.

        Raises:
            VerificationError: one is not as it was stored.
        """
        return tuple(plan_of(view) for view in view_plans(self._look()))

    def approve(self, subject: str, *, key: str | os.PathLike[str], comment: str = "") -> Decision:
        """Sign a plan hash or a diff hash with a reviewer's SSH key.

        Args:
            subject: the full hash.
            key: private key file without a passphrase, or the .pub file of a key that an agent
                holds.
            comment: free text, signed along.

        Raises:
            InputError: no such plan or diff, or the key is nobody's in the reviewers file.
            AuthorityError: it takes no more decisions, or the signature does not hold.
            ContainmentError: the diff holds paths that may not land.
        """
        return self._decide("approve", subject, Path(key), comment)

    def reject(self, subject: str, *, key: str | os.PathLike[str], comment: str = "") -> Decision:
        """Sign that a plan or a diff must not go on; that is final.

        Args:
            subject: the full hash.
            key: as for `approve`.
            comment: free text, signed along.

        Raises:
            InputError: no such plan or diff, or the key is nobody's in the reviewers file.
            AuthorityError: it takes no more decisions, or the signature does not hold.
        """
        return self._decide("reject", subject, Path(key), comment)

    def run(self, plan: str, *, output: Callable[[str, bytes], None] | None = None) -> Run:
        """Run an approved plan, once, and return when it has ended, however it ended.

        Args:
            plan: the full plan hash.
            output: gets what the worker writes while it comes: `stdout` or `stderr`, and bytes.
                It is called in a thread of its own, and can't hold up the run.

        Raises:
            InputError: no such plan.
            AuthorityError: it is not approved, expired, or was used.
            VerificationError: the sealed files or an image are not what was sealed.
            SandboxUnavailableError: no engine, no image, or no worker could be made.
            ContainmentError: what it left can't be read safely.
            StateError: the state folder can't take it.
            KeyboardInterrupt: Ctrl-C, after the run was ended and recorded as interrupted.
        """
        digest = parse_given_digest(plan)
        session = self._begin()
        with stop_on_interrupt() as stop:
            ran = run_plan(session, digest, sink=output, stop=stop, tell=_log.debug)
        for problem in ran.problems:
            _log.warning(problem)
        return self.find_run(ran.plan.run)

    def cancel(self, run: str) -> Run:
        """Ask a run that goes on, in another thread or process, to end; wait until it has.

        Args:
            run: its id.

        Raises:
            InputError: there is none, or it is over.
            StateError: it does not end in time.
        """
        session = self._look()
        return run_of(session, cancel_run(session, find_live_run(session, run)))

    def runs(self) -> tuple[Run, ...]:
        """Return the project's runs, oldest first.

        Raises:
            VerificationError: a record is not as it was stored.
        """
        session = self._look()
        found = list_runs(session.ledger.entries(), session.project.id)
        return tuple(run_of(session, item) for item in found)

    def find_run(self, given: str) -> Run:
        """Return a run by its id, or by 12 or more digits of its plan's hash.

        Raises:
            InputError: there is none.
            VerificationError: its record is not as it was stored.
        """
        session = self._look()
        return run_of(session, find_run(session.ledger.entries(), session.project.id, given))

    def diff(self, given: str) -> Diff:
        """Return what a run changed.

        Args:
            given: 12 or more digits of a diff hash, a run id, or `RUN/OPERATION`.

        Raises:
            InputError: none or several fit.
            VerificationError: it is not as it was stored.
        """
        session = self._look()
        found = find_quarantined(session.ledger.entries(), session.project.id, given)
        return diff_of(session, load_quarantine(session, found))

    def apply(self, diff: str) -> Diff:
        """Land an approved diff, all of it or nothing.

        Args:
            diff: the full diff hash.

        Raises:
            InputError: no such diff.
            AuthorityError: it is not approved, or landed already.
            VerificationError: the project changed below it; nothing was written.
            ContainmentError: a path may not be written; nothing was written.
            StateError: the disk refused; everything was rolled back.
        """
        digest = parse_given_digest(diff)
        session = self._begin()
        apply_diff(session, digest)
        landed = pick_exact_diff(session.ledger.entries(), session.project.id, digest)
        if landed is None:
            raise RuntimeError("a diff that just landed is not on the ledger")
        return diff_of(session, load_quarantine(session, landed))

    def undo(self, diff: str) -> Diff:
        """Make the reverse of a landed diff; it waits in quarantine, to be approved itself.

        Args:
            diff: the full hash of the diff that landed.

        Raises:
            InputError: no such diff, or it never landed.
        """
        digest = parse_given_digest(diff)
        session = self._begin()
        return diff_of(session, undo_diff(session, digest))

    def read(self, digest: str) -> bytes:
        """Return stored bytes, checked against their digest.

        Args:
            digest: of a log, an artifact, a plan, a statement.

        Raises:
            VerificationError: it is missing, or its bytes are not those of the digest.
        """
        return self._look().blobs.get(parse_given_digest(digest))

    def verify(self) -> str:
        """Check every line of the ledger, and return its signed checkpoint, to keep elsewhere.

        Raises:
            VerificationError: something does not fit; the first bad line is named.
        """
        return self._look().ledger.verify().checkpoint

    def _look(self) -> Session:
        return open_session(self._root)

    def _begin(self) -> Session:
        """Open the project to change something; what a killed process left is settled first."""
        session, settled = begin_work(self._root)
        for line in settled.lines():
            _log.warning(line)
        return session

    def _decide(
        self, decision: approval.Decision, subject: str, key: Path, comment: str
    ) -> Decision:
        digest = parse_given_digest(subject)
        received = decide(
            self._begin(), digest, decision=decision, key=key, comment=comment, interactive=False
        )
        return decision_of(received)


def open_project(path: str | os.PathLike[str] = ".") -> Project:
    """Open the project at or above a folder.

    Args:
        path: a folder in the project.

    Raises:
        InputError: there is no harness.yaml, or it has mistakes.
        StateError: the state folder can't be used.
    """
    return Project(Path(path))
