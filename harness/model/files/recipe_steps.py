"""The field `steps` of a recipe: argv lists, parameters filled in, scripts recognised."""

from __future__ import annotations

from harness.errors import InputError
from harness.model.clock import parse_duration
from harness.model.files.fields import child, items, text, texts
from harness.model.files.mistakes import Mistakes, Place
from harness.model.files.recipe_rules import argument_problem, value_problem
from harness.model.files.references import Substitution, refers
from harness.model.files.script import Script, find_script
from harness.model.files.strict_yaml import Node
from harness.model.limits import FLOOR
from harness.model.recipe import PASSING, Step
from harness.model.units import spell_amount

MAX_ARGUMENT = 128 * 1024 - 1
"""Longest argument in bytes: Linux's MAX_ARG_STRLEN without its NUL, execve(2)."""

MAX_ARGUMENTS = 1024 * 1024
"""All arguments of a step in bytes; Linux allows 2 MiB with the environment at an 8 MiB stack."""

SHOWN = 60


def read_steps(
    node: Node | None, filler: Substitution, *, allow_scripts: bool, wall_ms: int
) -> tuple[Step, ...]:
    """Read the steps.

    Args:
        node: the field; None when it was wrong as a whole.
        filler: puts values in; its mistakes take those found here.
        allow_scripts: whether the policy lets a step be a script.
        wall_ms: the limit `wall` of the recipe: no step may take longer.
    """
    return tuple(
        _read_step(item, filler, f"steps[{number}]", allow_scripts=allow_scripts, wall_ms=wall_ms)
        for number, item in enumerate(items(node))
        if not item.broken
    )


def _read_step(
    item: Node, filler: Substitution, label: str, *, allow_scripts: bool, wall_ms: int
) -> Step:
    run = child(item, "run")
    written = texts(run)
    places = [place for _, place in written]
    argv = tuple(
        filler.fill(value, place, f"{label}.run[{number}]")
        for number, (value, place) in enumerate(written)
    )
    # with a broken item the positions would be wrong, and the file is refused anyway
    whole = run is not None and len(written) == len(items(run)) and bool(written)
    script = find_script(argv) if whole else None
    if whole:
        _check_program(argv[0], places[0], filler, label)
        _check_arguments(argv, places, script, filler, label)
    if script:
        if not allow_scripts:
            filler.mistakes.add(
                places[0],
                f"{label}: is a script ({script.reason}), and the policy allows none",
                "run a program with its arguments, or set isolation.allow_scripts in the policy",
            )
        for position in sorted(script.sources):
            if refers(written[position][0]):
                filler.mistakes.add(
                    places[position],
                    f"{label}.run[{position}]: a reference inside source text would be code",
                    "pass it as an argument after the source, or in env",
                )
    shown = " ".join(argv).replace("\n", " ")[:SHOWN]
    return Step(
        name=text(child(item, "name")) or shown,
        argv=argv,
        script=script is not None,
        timeout_ms=_read_timeout(child(item, "timeout"), wall_ms, label, filler.mistakes),
        allowed_exits=_read_exits(child(item, "allowed_exit_codes")),
    )


def _read_timeout(node: Node | None, wall_ms: int, label: str, mistakes: Mistakes) -> int:
    if node is None:
        return 0
    try:
        value = parse_duration(text(node))
    except InputError as error:
        mistakes.add(node.place, f"{label}.timeout: {error.message}", error.hint)
        return 0
    if not FLOOR["wall_ms"] <= value <= wall_ms:
        least, most = spell_amount("time", FLOOR["wall_ms"]), spell_amount("time", wall_ms)
        message = f"{label}.timeout: expected {least} to {most}, got {text(node)}"
        late = "the limit `wall` ends the whole run before it"
        mistakes.add(node.place, message, late if value > wall_ms else "")
    return value


def _read_exits(node: Node | None) -> tuple[int, ...]:
    codes = {item.value for item in items(node) if isinstance(item.value, int)}
    return tuple(sorted(codes)) or PASSING


def _check_program(program: str, place: Place, filler: Substitution, label: str) -> None:
    if not program.strip() or program.startswith("-") or "\n" in program:
        message = f"{label}.run[0]: expected a program, got {program!r:.60}"
        filler.mistakes.add(place, message, "its name, or its path in the worker")
    elif " " in program and "/" not in program:
        message = f"{label}.run[0]: {program!r:.60} holds blanks, and no shell splits it"
        filler.mistakes.add(place, message, "make every argument an item of its own")


def _check_arguments(
    argv: tuple[str, ...],
    places: list[Place],
    script: Script | None,
    filler: Substitution,
    label: str,
) -> None:
    total = 0
    for number, (value, place) in enumerate(zip(argv, places, strict=True)):
        size = len(value.encode("utf-8", "surrogatepass"))
        total += size + 1
        if size > MAX_ARGUMENT:
            message = f"expected at most {MAX_ARGUMENT} bytes, got {size}"
            filler.mistakes.add(place, f"{label}.run[{number}]: {message}")
        is_source = script is not None and number in script.sources
        problem = value_problem(value) if is_source else argument_problem(value)
        if problem:
            filler.mistakes.add(place, f"{label}.run[{number}]: {problem.message}", problem.fix)
    if total > MAX_ARGUMENTS:
        message = f"{label}.run: expected at most {MAX_ARGUMENTS} bytes together, got {total}"
        filler.mistakes.add(places[0], message)
