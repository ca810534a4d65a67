"""Which paths of a project enter a snapshot: the recipe's patterns, the policy's, git's.

Rules:
    * Nothing that git could take for `.git` exists here, be it folder, file or link; nor does an
      apply's staging folder.
    * `exclude` and ignored paths stay out, with all that lies below them.
    * With `include`, a path enters when a pattern matches it or, failing that, a folder above it;
      the nearest one decides.
    * A `.gitignore` beside what enters enters too: it is part of what was frozen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from enum import IntEnum

from harness.execution.snapshot.ignore import IGNORE_FILE, IgnoreChain
from harness.model.patterns import parse_patterns
from harness.model.relpath import STAGE_PREFIX, is_git_name
from harness.model.secrets import find_secret

RULES_VERSION = 1
"""Raise it when the same tree and patterns shall give another decision: it empties the cache."""


class Verdict(IntEnum):
    """What becomes of a path.

    Attributes:
        SKIP: stays out.
        TAKE: enters.
        PASS: a folder that enters only when something below it does.
        BESIDE: a file that enters only when something else in its folder does.
        UNSEEN: counts as if it were not there.
    """

    SKIP = 0
    TAKE = 1
    PASS = 2
    BESIDE = 3
    UNSEEN = 4


class Selection:
    """The patterns of one recipe under one policy.

    Args:
        include: patterns of what enters; none means all.
        exclude: patterns of what stays out.
        admit_secrets: patterns of secret-looking files that may enter all the same.

    Attributes:
        digest: names these patterns; equal digests decide alike.
    """

    def __init__(
        self, *, include: Iterable[str], exclude: Iterable[str], admit_secrets: Iterable[str]
    ) -> None:
        lists = [list(include), list(exclude), list(admit_secrets)]
        self._include, self._exclude, self._admit = (parse_patterns(items) for items in lists)
        self.takes_all = not lists[0]
        self.digest = hashlib.sha256(json.dumps([RULES_VERSION, *lists]).encode()).hexdigest()

    def judge(
        self, path: bytes, *, is_folder: bool, inside: bool, rules: IgnoreChain | None
    ) -> Verdict:
        """Decide about a path whose parent folder was walked.

        Args:
            path: from the project's root.
            is_folder: a link to a folder is none.
            inside: whether the parent folder was taken, and not only passed.
            rules: the ignore rules of the parent folder.

        Raises:
            HarnessError: whatever reading an ignore file raises.
        """
        name = path.rsplit(b"/", 1)[-1]
        if is_git_name(name) or name.startswith(STAGE_PREFIX):
            return Verdict.UNSEEN
        if self._exclude.decide(path, is_folder=is_folder):
            return Verdict.SKIP
        if rules and rules.matches(path, is_folder=is_folder):
            return Verdict.SKIP
        included = self.takes_all or self._include.decide(path, is_folder=is_folder)
        if included or (included is None and inside):
            return Verdict.TAKE
        if is_folder:
            return Verdict.PASS
        return Verdict.BESIDE if name == IGNORE_FILE else Verdict.SKIP

    def why_not(self, path: bytes, *, is_folder: bool, inside: bool) -> str:
        """Return why a path that was skipped stays out, for people.

        Args:
            path: from the project's root.
            is_folder: as for `judge`.
            inside: as for `judge`.
        """
        if self._exclude.decide(path, is_folder=is_folder):
            return "excluded by the recipe"
        verdict = self.judge(path, is_folder=is_folder, inside=inside, rules=None)
        return "not included by the recipe" if verdict == Verdict.SKIP else "ignored by git"

    def find_secret(self, path: bytes, head: bytes) -> str:
        """Return why a file must stay out as a secret, or an empty text."""
        reason = find_secret(path, head)
        return "" if reason and self._admit.covers(path, is_folder=False) else reason
