"""Check recipes and policies, and gather every mistake, whichever file it is in."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass

from harness.errors import HarnessError, InputError, Issue
from harness.execution.image.definition import list_definitions
from harness.execution.image.lock import read_lock
from harness.flows.needs import check_needs, find_needs
from harness.flows.policies import list_policy_names, read_policy_named, reviewers_path
from harness.flows.recipes import SUFFIX, read_recipe_bytes
from harness.flows.session import Session
from harness.governance.reviewers import parse_reviewers
from harness.governance.thresholds import check_policy
from harness.model.digest import digest_of
from harness.model.files.recipe_file import read_recipe_cells, read_recipe_policy_name
from harness.model.limits import Isolation
from harness.model.policy import ApprovalPolicy, Policy
from harness.model.recipe import Recipe
from harness.store.resources import find_resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One file and whether it holds.

    Attributes:
        name: of the recipe or the policy.
        cells: as read with default parameters; none for a policy, and when it has mistakes.
        issues: every mistake, in the file itself or in what it names.
    """

    name: str
    cells: tuple[Recipe, ...]
    issues: tuple[Issue, ...]


def check_recipes(session: Session, names: list[str]) -> list[Checked]:
    """Read recipes and all that they need, and keep all mistakes.

    What is read of each: the file, the policy it names, and what that names.

    Raises:
        InputError: a name that is no recipe.
    """
    found = find_needs(session, names)
    wrong = check_needs(session, found)
    return [_check_recipe(session, name, wrong.get(name, ())) for name in found]


def check_policies(session: Session) -> list[Checked]:
    """Read every policy of the project, used or not, and keep all mistakes."""
    return [
        Checked(name=name, cells=(), issues=_read_policy(session, name)[1])
        for name in list_policy_names(session)
    ]


def find_stray_files(session: Session) -> tuple[Issue, ...]:
    """Return files that look like recipes or policies and are never read."""
    return tuple(
        Issue(
            message=f"is never read: expected the suffix {SUFFIX}",
            where=os.path.relpath(path, session.project.root),
            fix=f"rename it to {path.stem}{SUFFIX}",
        )
        for folder in (session.project.recipes, session.project.policies)
        if folder.is_dir()
        for path in sorted(folder.glob("*.yml"))
    )


def _check_recipe(session: Session, name: str, wrong_needs: tuple[Issue, ...]) -> Checked:
    data, file = read_recipe_bytes(session, name)
    issues = wrong_needs
    try:
        policy, wrong = _read_policy(session, read_recipe_policy_name(data, file))
        issues += wrong
        cells = read_recipe_cells(data, file, name=name, policy=policy, chosen=None)
    except InputError as error:
        return Checked(name=name, cells=(), issues=(*issues, *_issues_of(error)))
    for image in dict.fromkeys(cell.image for cell in cells):
        issues += _check_image(session, image, file)
    return Checked(name=name, cells=() if issues else cells, issues=issues)


def _read_policy(session: Session, name: str) -> tuple[Policy, tuple[Issue, ...]]:
    """Return a policy, or a lenient one in its place, and every mistake in it."""
    try:
        policy = read_policy_named(session, name)
    except HarnessError as error:
        lenient = Policy(
            name=name,
            isolation=Isolation(allow_scripts=True),
            approval=ApprovalPolicy(reviewers_digest=digest_of(b"")),
            reviewers=b"",
        )
        return lenient, _issues_of(error)
    try:
        reviewers = parse_reviewers(policy.reviewers, name=reviewers_path(session, name))
        check_policy(policy.approval, reviewers, requester="")
    except InputError as error:
        where = f"{session.project.policies.name}/{name}{SUFFIX}"
        return policy, tuple(
            Issue(message=issue.message, where=issue.where or where, fix=issue.fix)
            for issue in _issues_of(error)
        )
    return policy, ()


def _check_image(session: Session, image: str, file: str) -> tuple[Issue, ...]:
    known = {*read_lock(session.state.images_lock), *list_definitions(find_resources("images"))}
    if image in known:
        return ()
    near = difflib.get_close_matches(image, known, n=1)
    fix = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(sorted(known))}"
    return (
        Issue(
            message=f"image: {image!r:.60} is neither built, added nor defined",
            where=file,
            fix=fix,
        ),
    )


def _issues_of(error: HarnessError) -> tuple[Issue, ...]:
    return error.issues or (Issue(message=error.message, fix=error.hint),)
