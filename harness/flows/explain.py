"""Explain a recipe: each effective value with where it comes from, and what would be sealed.

A value is the recipe's, its policy's, the host's own policy's, or the built-in one where nobody
says anything. What is written stands with its place, so that an editor can go there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.execution.snapshot.preview import Preview, preview_snapshot
from harness.flows.planned import order_needed
from harness.flows.policies import read_host_fields, read_host_policy, read_policy_fields
from harness.flows.recipes import read_recipe_bytes, read_recipe_named
from harness.flows.session import Session
from harness.model.files.recipe_file import read_recipe_parameters
from harness.model.files.recipe_parameters import Parameter
from harness.model.files.script import find_script
from harness.model.files.written import written_fields
from harness.model.limits import SPELLING, Isolation, spell_limit, stricter
from harness.model.recipe import Recipe
from harness.model.units import spell_amount

Source = Literal["recipe", "policy", "host", "default"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """One value as it would be sealed.

    Attributes:
        field: its name, as a recipe or a policy would have it: `limits.memory`.
        value: as a file would have it.
        source: who says so; `default` when nobody does.
        where: `file:line:column` of what is written; empty for a default.
    """

    field: str
    value: str
    source: Source
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptStep:
    """A step that is a script.

    Attributes:
        step: its position in the recipe, from 0.
        name: its name.
        reason: what makes it one.
    """

    step: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What a recipe comes to.

    Attributes:
        name: the recipe's.
        values: every effective value.
        operations: one for each cell of the matrix, in their order.
        order: recipes of a plan of this one, what is needed first.
        scripts: steps that are scripts, of any cell.
        files: which files would enter.
    """

    name: str
    values: tuple[Effective, ...]
    operations: tuple[str, ...]
    order: tuple[str, ...]
    scripts: tuple[ScriptStep, ...]
    files: Preview


def explain_recipe(session: Session, name: str) -> Explained:
    """Explain one recipe, with the defaults of its parameters.

    Raises:
        InputError: no such recipe, every mistake in it, in what it needs or in its policy, or
            files that may not enter.
    """
    order = order_needed(session, [name])
    cells, policy = read_recipe_named(session, name, None)
    recipe = cells[0]
    data, file = read_recipe_bytes(session, name)
    origin = _Origin(
        recipe=written_fields(data, file),
        policy=read_policy_fields(session, policy.name),
        host=_binding(read_host_fields(), read_host_policy()),
    )
    return Explained(
        name=name,
        values=(
            *_values(cells, policy.isolation, origin),
            *_parameters(read_recipe_parameters(data, file), origin),
        ),
        operations=tuple(cell.operation for cell in cells),
        order=order,
        scripts=tuple(dict.fromkeys(_scripts(cells))),
        files=preview_snapshot(
            session.project.root,
            state=session.state,
            project=session.project.id,
            include=recipe.include,
            exclude=recipe.exclude,
            admit_secrets=policy.isolation.admit_secrets,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """Where the fields of the three files stand, by name; of the host's only those that bind."""

    recipe: Mapping[str, str]
    policy: Mapping[str, str]
    host: Mapping[str, str]

    def of(self, field: str, value: str, *, below: str = "", above: str = "") -> Effective:
        """Return a value with its source: the lowest level that writes it.

        Args:
            field: its name.
            value: as a file would have it.
            below: the recipe's field that says it; the same name when empty.
            above: the field of policy and host policy that says it; none when empty.
        """
        levels: tuple[tuple[Source, Mapping[str, str], str], ...] = (
            ("recipe", self.recipe, below or field),
            ("policy", self.policy, above),
            ("host", self.host, above),
        )
        for source, written, name in levels:
            if name in written:
                return Effective(field=field, value=value, source=source, where=written[name])
        return Effective(field=field, value=value, source="default", where="")


def _binding(fields: Mapping[str, str], host: Isolation | None) -> dict[str, str]:
    """Return the fields of the host's policy that decide where nobody below says anything."""
    if host is None:
        return {}
    built_in = Isolation()
    left = stricter(host, built_in)
    decides = {
        f"isolation.limits.{word}"
        for name, (word, _) in SPELLING.items()
        if getattr(left.limits, name) != getattr(built_in.limits, name)
    }
    decides |= {
        f"isolation.{name}"
        for name in ("tmp_exec", "allow_scripts", "workspace")
        if getattr(left, name) != getattr(built_in, name)
    }
    return {field: where for field, where in fields.items() if field in decides}


def _values(cells: Sequence[Recipe], isolation: Isolation, origin: _Origin) -> Iterator[Effective]:
    recipe = cells[0]
    yield origin.of("image", ", ".join(dict.fromkeys(cell.image for cell in cells)))
    yield origin.of("policy", recipe.policy)
    yield from _limits(recipe, origin)
    yield from _isolation(recipe, isolation, origin)
    for number, step in enumerate(recipe.steps):
        label = f"steps[{number}]"
        timeout = spell_amount("time", step.timeout_ms) if step.timeout_ms else "none"
        yield origin.of(f"{label}.timeout", timeout)
        exits = ", ".join(map(str, step.allowed_exits))
        yield origin.of(f"{label}.allowed_exit_codes", exits)
    for number, output in enumerate(recipe.outputs):
        label, size = f"outputs[{number}]", spell_amount("size", output.max_bytes)
        is_own = f"{label}.max_size" in origin.recipe
        yield origin.of(
            f"{label}.max_size",
            size,
            below=f"{label}.max_size" if is_own else "limits.artifact",
            above="isolation.limits.artifact",
        )
        yield origin.of(f"{label}.type", output.type or "none")


def _parameters(parameters: Sequence[Parameter], origin: _Origin) -> Iterator[Effective]:
    for parameter in parameters:
        field = f"parameters.{parameter.name}"
        if parameter.default is None:
            yield origin.of(field, "to be chosen")
        else:
            yield origin.of(field, parameter.default, below=f"{field}.default")


def _limits(recipe: Recipe, origin: _Origin) -> Iterator[Effective]:
    for name, (word, _) in SPELLING.items():
        value = getattr(recipe.limits, name)
        shown = spell_limit(name, value) if value else "none"
        yield origin.of(f"limits.{word}", shown, above=f"isolation.limits.{word}")


def _isolation(recipe: Recipe, isolation: Isolation, origin: _Origin) -> Iterator[Effective]:
    above = "isolation.workspace"
    is_above = isolation.workspace != "auto"  # then a recipe can only repeat it
    yield origin.of(
        "workspace", recipe.workspace, below=above if is_above else "workspace", above=above
    )
    for name, value in (
        ("tmp_exec", _switch(isolation.tmp_exec)),
        ("allow_scripts", _switch(isolation.allow_scripts)),
        ("admit_secrets", ", ".join(isolation.admit_secrets) or "none"),
    ):
        yield origin.of(f"isolation.{name}", value, above=f"isolation.{name}")


def _switch(value: bool) -> str:  # noqa: FBT001 - the value itself, not a mode
    return "true" if value else "false"


def _scripts(cells: Sequence[Recipe]) -> Iterator[ScriptStep]:
    for cell in cells:
        for number, step in enumerate(cell.steps):
            script = find_script(step.argv)
            if script:
                yield ScriptStep(step=number, name=step.name, reason=script.reason)
