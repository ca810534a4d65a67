"""The `harness` command: the version at once, everything else through the command line."""

from __future__ import annotations

import signal
import sys

from harness.cli.streams import prepare_streams
from harness.errors import HarnessError


def main() -> None:
    """Run the command line and exit with its code."""
    prepare_streams()
    if sys.argv[1:] == ["--version"]:
        from harness import __version__  # noqa: PLC0415 - nothing else is needed here

        try:
            sys.stdout.write(f"harness {__version__}\n")
            sys.stdout.flush()
        except HarnessError as error:
            sys.stderr.write(f"error: {error.message}\n")
            sys.exit(error.exit_code)
        return
    _end_as_ctrl_c_does()
    from harness.cli.main import run_command_line  # noqa: PLC0415 - keeps --version quick

    sys.exit(run_command_line(sys.argv[1:]))


def _end_as_ctrl_c_does() -> None:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt: what was begun is rolled back or put away.

    One that the parent had us ignore (nohup(1)) stays ignored.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


if __name__ == "__main__":
    main()
