"""Who gave the command: a name for the record, and where that person's own files are.

Rules:
    * The name is what the operating system calls the effective user. `LOGNAME` and `USER` are
      words of the caller's and decide nothing.
    * A user that no list of users knows (a numeric id in a container, say) has a name all the
      same: `uid-4242`.
    * `HOME` decides when it is absolute; without it the list of users does.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path


def caller_name() -> str:
    """Return the caller's account name, or `uid-N` for an id without an account."""
    account = _account()
    return account.pw_name if account else f"uid-{os.geteuid()}"


def caller_home(environment: Mapping[str, str]) -> Path | None:
    """Return the caller's home; None when neither `HOME` nor the list of users names one."""
    named = environment.get("HOME", "")
    if os.path.isabs(named):  # noqa: PTH117 - Path("") is the working directory
        return Path(named)
    account = _account()
    return Path(account.pw_dir) if account and account.pw_dir else None


def caller_config(environment: Mapping[str, str]) -> Path | None:
    """Return `$XDG_CONFIG_HOME`, else `~/.config`; None without a home.

    A relative path is ignored (XDG Base Directory Specification): it would be another folder for
    each working directory.
    """
    named = environment.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(named):  # noqa: PTH117
        return Path(named)
    home = caller_home(environment)
    return home / ".config" if home else None


def _account() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(os.geteuid())
    except KeyError:
        return None
