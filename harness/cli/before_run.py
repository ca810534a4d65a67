"""What comes before a run that was not approved yet: seal, show, ask, sign.

Apart from `harness run`, because a plan that is approved already needs none of it.
"""

from __future__ import annotations

from pathlib import Path

from harness.cli.approve import confirm
from harness.cli.options import is_terminal, parse_parameters
from harness.cli.progress import working
from harness.errors import ApprovalMissingError, InputError
from harness.flows.approve import decide
from harness.flows.caller import caller_name
from harness.flows.recipes import list_recipe_names
from harness.flows.seal import seal_recipes
from harness.flows.session import Session
from harness.model.digest import Digest, is_short_digest, parse_given_digest


def make_ready(
    session: Session,
    what: tuple[str, ...],
    params: tuple[str, ...],
    *,
    why: str,
    requester: str,
    key: Path | None,
) -> Digest:
    """Return the hash of a plan to run: of recipes sealed and approved now, or as given.

    Args:
        session: host and project.
        what: names of recipes, or one plan hash.
        params: parameters of the recipes.
        why: why they should run.
        requester: who asks; the login name when empty.
        key: approves the plan.

    Raises:
        InputError: neither recipes nor a full hash; or every mistake in the recipes.
        ApprovalMissingError: there is no terminal to ask on, or the person said no.
        AuthorityError: the signature does not hold, or the gate takes no more decisions.
    """
    if _names_recipe(session, what):
        return _seal_and_ask(
            session, what, params, why=why, requester=requester or caller_name(), key=key
        )
    _refuse_recipe_words(params, why)
    digest = parse_given_digest(what[0])
    if key is not None:
        _approve(session, digest, key)
    return digest


def _names_recipe(session: Session, what: tuple[str, ...]) -> bool:
    known = list_recipe_names(session)
    unknown = [name for name in what if name not in known]
    if not unknown:
        return True
    if len(what) == 1 and is_short_digest(what[0]):
        return False
    raise InputError(
        f"run: {unknown[0]!r:.80} is neither a recipe of this project nor a plan hash",
        hint="`harness recipe list` shows recipes, `harness plan list` plans; one hash at a time",
    )


def _refuse_recipe_words(params: tuple[str, ...], why: str) -> None:
    if params or why:
        raise InputError("run: --param and --why belong to a recipe; a plan is sealed already")


def _seal_and_ask(
    session: Session,
    recipes: tuple[str, ...],
    params: tuple[str, ...],
    *,
    why: str,
    requester: str,
    key: Path | None,
) -> Digest:
    """Seal recipes, show the plan, ask, and record the approval.

    Raises:
        ApprovalMissingError: there is no terminal to ask on.
    """
    names = " ".join(recipes)
    if not is_terminal():
        raise ApprovalMissingError(
            f"run {names}: nothing is approved without a terminal",
            hint=f"`harness seal {names}`, then `harness run HASH --key KEY` with the full hash",
        )
    with working("sealing"):
        sealed = seal_recipes(
            session, recipes, chosen=parse_parameters(params), why=why, requester=requester
        )
    digest = sealed.plan.digest
    chosen = confirm(session, digest, "approve", key=key)
    _approve(session, digest, chosen)
    return digest


def _approve(session: Session, digest: Digest, key: Path) -> None:
    decide(session, digest, decision="approve", key=key, comment="", interactive=is_terminal())
