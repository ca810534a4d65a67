"""How a plan reads to the person who is asked to approve it: everything that is sealed, no less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from harness.cli.amounts import count, show_size
from harness.cli.plain import plain
from harness.flows.gates import SealedOperation
from harness.flows.plans import PlanView
from harness.model.clock import show_duration
from harness.model.plan import DisclosedOperation
from harness.model.recipe import PASSING, Output, Step, sealed_outputs, sealed_steps
from harness.model.seal import FIXED_ENV

INDENT = 12
LEFT_OUT_SHOWN = 20


def print_plan(view: PlanView) -> None:
    """Print a plan with the state of its gate."""
    plan = view.plan
    click.secho(f"plan {plan.digest}", bold=True)
    _line("project", f"{plan.project_name}  (run {plan.run}, asked for by {plan.requester})")
    _line("why", plan.disclosure.why)
    several = len(view.operations) > 1
    if several:
        _line("runs", f"{len(view.operations)} operations, in this order, one after the other")
    for operation, told in zip(view.operations, plan.disclosure.operations, strict=True):
        if several:
            click.echo()
        _print_operation(operation, told)
    if several:
        click.echo()
    _line("without it", "the same commands would run here, with your rights and your network")
    _line("policy", f"{plan.policy_name}  {plan.policy}")
    _line("state", f"{view.status}; {view.tally}" if view.tally else view.status)
    _line("good until", plan.not_after)


def _print_operation(operation: SealedOperation, told: DisclosedOperation) -> None:
    seal = operation.seal
    recipe = seal.recipe
    _line("recipe", f"{operation.name} ({recipe['kind']})")
    if operation.needs:
        _line("needs", f"{', '.join(operation.needs)} to pass first")
    _line("seal", operation.digest)
    _line("image", f"{seal.image.name}  {seal.image.image_id}  {seal.image.platform}")
    _print_steps(sealed_steps(recipe), told.alternative)
    _print_settings(recipe, seal.env)
    _line("may write", ", ".join(recipe["writable"]) or "nothing that could land")
    for output in sealed_outputs(recipe):
        _line("leaves", _leaves(output))
    _print_isolation(seal.isolation)
    _print_files(told, seal.snapshot)
    _line("takes", _expectation(told, seal.isolation["limits"]["wall_ms"]))


def plan_json(view: PlanView) -> dict[str, Any]:
    """Return the JSON form of `harness plan show`."""
    plan = view.plan
    return {
        "plan": plan.digest,
        "run": plan.run,
        "project": {"id": plan.project, "name": plan.project_name},
        "requester": plan.requester,
        "created": plan.created,
        "notAfter": plan.not_after,
        "policy": {"name": plan.policy_name, "digest": plan.policy, "reviewers": plan.reviewers},
        "why": plan.disclosure.why,
        "operations": [
            {
                "name": operation.name,
                "needs": list(operation.needs),
                "disclosure": told.to_json(),
                "seal": {
                    "digest": operation.digest,
                    "recipe": dict(operation.seal.recipe),
                    "snapshot": operation.seal.snapshot,
                    "image": operation.seal.image.to_json(),
                    "isolation": dict(operation.seal.isolation),
                    "env": dict(operation.seal.env),
                },
            }
            for operation, told in zip(view.operations, plan.disclosure.operations, strict=True)
        ],
        "status": view.status,
        "approvals": view.tally,
    }


def _line(label: str, text: str) -> None:
    click.echo(click.style(f"{label:<{INDENT}}", dim=True) + plain(text).replace("\n", "\\n"))


def _print_steps(steps: Sequence[Step], alternative: Sequence[str]) -> None:
    for number, (step, command) in enumerate(zip(steps, alternative, strict=True), 1):
        script = click.style("  [script]", fg="yellow") if step.script else ""
        label = click.style(f"{'runs' if number == 1 else '':<{INDENT}}", dim=True)
        click.echo(f"{label}{number}. {plain(command)}{script}{_own_rules(step)}")


def _own_rules(step: Step) -> str:
    """Return what holds for this step alone: its timeout and its exit codes."""
    rules = []
    if step.timeout_ms:
        rules.append(f"at most {show_duration(step.timeout_ms)}")
    if step.allowed_exits != PASSING:
        rules.append(f"exit {' or '.join(map(str, step.allowed_exits))} is allowed")
    return f"  ({', '.join(rules)})" if rules else ""


def _leaves(output: Output) -> str:
    about = f", {output.type}" if output.type else ""
    most = f", at most {show_size(output.max_bytes)}" if output.max_bytes else ""
    return f"{output.path} as artifact {output.name}{about}{most}"


def _print_settings(recipe: Mapping[str, Any], env: Mapping[str, str]) -> None:
    own = {name: value for name, value in env.items() if name not in FIXED_ENV}
    if own:
        _line("env", "  ".join(f"{name}={value}" for name, value in sorted(own.items())))
    if recipe["parameters"]:
        chosen = sorted(recipe["parameters"].items())
        _line("parameters", "  ".join(f"{name}={value}" for name, value in chosen))


def _print_isolation(isolation: Mapping[str, Any]) -> None:
    limits = isolation["limits"]
    amounts = [
        f"{limits['cpu_millis'] / 1000:g} cpu",
        f"{show_size(limits['memory_bytes'])} memory, no swap",
        f"{limits['pids']} pids",
        f"{limits['open_files']} open files",
        f"{show_size(limits['file_bytes'])} a file",
        f"{show_size(limits['tmp_bytes'])} /tmp",
        f"{show_size(limits['shm_bytes'])} /dev/shm",
        f"{show_size(limits['workspace_bytes'])} of new files",
        f"{show_size(limits['output_bytes'])} of output",
    ]
    amounts.append(f"{show_duration(limits['wall_ms'])} wall clock")
    if limits["idle_ms"]:
        amounts.append(f"{show_duration(limits['idle_ms'])} of silence")
    _line("limits", ", ".join(amounts))
    _line(
        "box",
        f"network {isolation['network']}, read-only root, no capabilities, no new privileges, "
        f"seccomp {isolation['seccomp']}, /tmp {'exec' if isolation['tmpExec'] else 'noexec'}, "
        f"workspace {isolation['workspace']}",
    )


def _print_files(told: DisclosedOperation, snapshot: str) -> None:
    _line("files", f"{count(told.files, 'file')}, {show_size(told.bytes)}  {snapshot}")
    for path, reason in told.left_out[:LEFT_OUT_SHOWN]:
        _line("left out", f"{path}: {reason}")
    if len(told.left_out) > LEFT_OUT_SHOWN:
        _line("left out", f"{len(told.left_out) - LEFT_OUT_SHOWN} more; `--json` lists all")


def _expectation(told: DisclosedOperation, wall_ms: int) -> str:
    most = f"at most {show_duration(wall_ms)}"
    runs = told.expected_from
    if not runs:
        return f"{most}; it has not passed here before"
    what = "one earlier run" if runs == 1 else f"the median of {runs} earlier runs"
    return f"about {show_duration(told.expected_ms)} by {what}; {most}"
