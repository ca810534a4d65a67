"""Install the packages of `.ci/packages` that are missing, on the record that `make undo` reads.

Needs an engine that answers. A user who is not root is told what to ask for; the tests that need
it fail by themselves. Exit codes are those of `harness`: 7 when a package can't be had.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness.errors import HarnessError
from harness.execution.host.packages import installed
from harness.execution.host.setup import SetupContext, Step, run_setup
from harness.store.state import find_state_root, open_state

LIST = Path(__file__).with_name("packages")


def missing() -> tuple[str, ...]:
    """Return the packages that are not there."""
    lines = (line.partition("#")[0].strip() for line in LIST.read_text("utf-8").splitlines())
    return tuple(sorted(set(filter(None, lines)) - installed(os.environ)))


def install(names: tuple[str, ...]) -> None:
    """Install packages as `harness setup --yes` would."""
    context = SetupContext(
        state=open_state(find_state_root(os.environ)),
        environment=os.environ,
        report=lambda text: print(f"- {text}", flush=True),
        consent=lambda _: True,
    )
    text = f"install {', '.join(names)} for the tests"
    run_setup((Step(kind="install", text=text, outside=True, packages=names),), context)


def main() -> int:
    """Return the exit code."""
    try:
        names = missing()
        if names and os.geteuid() != 0:
            print(f"tests: ask an administrator for: apt-get install {' '.join(names)}")
        elif names:
            install(names)
    except HarnessError as error:
        print(f"{error.message}\n{error.hint}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
