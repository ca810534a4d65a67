"""Run a recipe in a sealed worker, look at what it changed, and land it.

    python land_a_change.py RECIPE KEY [PROJECT]

KEY is the SSH key of a reviewer: its private file, or the .pub file when an agent holds it. Who may
approve, and how many must, is up to the project's policy: this script can't land what it refuses.
"""

import sys

import harness


def land(recipe: str, key: str, folder: str) -> int:
    """Seal, approve, run, look, approve, apply; return the exit code."""
    project = harness.open_project(folder)
    plan = project.seal(recipe, why="a scripted run")
    print(f"plan {plan.hash} runs {', '.join(plan.operations)}")
    project.approve(plan.hash, key=key)

    run = project.run(plan.hash, output=show)
    for operation in run.operations:
        print(f"{operation.name}: {operation.outcome}")
    if not run.passed:
        return 1

    for diff in map(project.diff, run.diffs):
        for change in diff.changes:
            print(f"  {change.op} {change.path}")
        if diff.flags or diff.obstacles:
            print(f"this needs a person: harness diff {diff.hash}")
            return 1
        project.approve(diff.hash, key=key, comment="nothing to look at closely")
        project.apply(diff.hash)
        print(f"landed; to take it back: harness undo {diff.hash}")
    return 0


def show(stream: str, data: bytes) -> None:
    """Pass on what the worker writes, as it comes."""
    del stream
    sys.stderr.buffer.write(data)


if __name__ == "__main__":
    try:
        sys.exit(land(sys.argv[1], sys.argv[2], *(sys.argv[3:] or ["."])))
    except harness.HarnessError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        sys.exit(error.exit_code)
