"""`python -m tests.bench`: take the figures, print one line of JSON each, hold them to the bounds.

Needs an engine, the worker image `python`, docker and git. Exit code 1: a bound is passed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.execution.host.find import find_engine
from harness.flows.engine import open_engine_at
from harness.store.state import find_state_root, open_state
from tests.bench.change_figures import changeset_growth
from tests.bench.figure import Figure
from tests.bench.ground import Ground
from tests.bench.growth import measure_growth
from tests.bench.machine import describe_machine
from tests.bench.page import write_page
from tests.bench.run_figures import cold_run, copy_run
from tests.bench.snapshot_figures import seal_cold, seal_unchanged, second_snapshot

Measure = Callable[[Ground, int], list[Figure]]

MEASURES: Mapping[str, tuple[Measure, int]] = {
    "cold_run": (cold_run, 11),
    "seal_unchanged": (seal_unchanged, 15),
    "seal_cold": (seal_cold, 5),
    "copy_run": (copy_run, 5),
    "changeset_growth": (changeset_growth, 9),
    "second_snapshot": (second_snapshot, 7),
}
"""What is measured, and with how many pairs."""


def main(arguments: list[str]) -> int:
    """Take the figures that the arguments name; all of them without any."""
    options = _options(arguments)
    state = open_state(find_state_root(os.environ))
    if not state.images_lock.exists():
        raise SystemExit("bench: no worker image; run `harness image build python` first")
    address = find_engine(os.environ, state)
    os.environ["DOCKER_HOST"] = address.url
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.folder) as folder:
        ground = Ground(Path(folder), state.images_lock)
        figures = []
        for name in options.only or MEASURES:
            measure, count = MEASURES[name]
            for figure in measure(ground, options.pairs or count):
                figures.append(figure)
                print(figure.line(), flush=True)  # noqa: T201 - what it is for
        if options.page:
            machine = describe_machine(open_engine_at(address), Path(folder))
            write_page(options.page, figures, measure_growth(ground), machine)
    passed = [figure.name for figure in figures if not figure.holds]
    if passed:
        print(f"bench: over the bound: {', '.join(passed)}", file=sys.stderr)  # noqa: T201
    return 1 if passed else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("only", nargs="*", choices=[[], *MEASURES], help="figures to take")
    parser.add_argument("--pairs", type=int, default=0, help="pairs for each figure")
    parser.add_argument("--page", type=Path, help="folder to write speed.md and speed.svg into")
    parser.add_argument("--folder", type=Path, help="where projects and state go while it runs")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
