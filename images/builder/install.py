# ruff: noqa: INP001 - a program for build containers, no part of a package
"""Install wheels offline, inside a build container.

    python3 -I install.py WHEELS REQUIREMENTS ROOT

Every wheel in the folder WHEELS is checked against the hashes in REQUIREMENTS again and installed
below ROOT by the pip whose wheel lies there too. Nothing is fetched: the container has no
network. Byte code is marked unchecked-hash, so that it stays valid whatever the files' times are
(PEP 552), and names the place where the files will be.
"""

from __future__ import annotations

import compileall
import py_compile
import runpy
import sys
from pathlib import Path


def main(wheels: str, requirements: str, root: str) -> None:
    """Install, then compile."""
    (pip,) = Path(wheels).glob("pip-*.whl")
    sys.path.insert(0, str(pip))
    sys.argv = [
        "pip",
        "--isolated",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-index",
        "--no-cache-dir",
        "--no-compile",
        "--require-hashes",
        f"--find-links={wheels}",
        f"--root={root}",
        "--root-user-action=ignore",
        f"--requirement={requirements}",
    ]
    try:
        runpy.run_module("pip", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    for folder in sorted(Path(root).glob("usr/local/lib/python3*")):
        compiled = compileall.compile_dir(
            folder,
            quiet=1,
            stripdir=root,
            prependdir="/",
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        if not compiled:
            sys.exit("byte code could not be made")


if __name__ == "__main__":
    main(*sys.argv[1:])
