"""The `harness` command: the version at once, everything else through the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:] == ["--version"]:
        from harness import __version__  # noqa: PLC0415 - nothing else is needed here

        sys.stdout.write(f"harness {__version__}\n")
        return
    from harness.cli.main import run_command_line  # noqa: PLC0415 - keeps --version quick

    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
