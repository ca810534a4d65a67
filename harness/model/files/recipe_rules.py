"""What a recipe may not name: credentials, host paths, what the harness itself sets.

Every rule is a function from one text to what is wrong with it, or None. Nothing here knows about
files or places.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.errors import InputError
from harness.model.relpath import parse_path, touches_git
from harness.model.seal import FIXED_ENV
from harness.model.secrets import find_secret


class Problem(NamedTuple):
    """What is wrong with a text, and what to write instead."""

    message: str
    fix: str


_CREDENTIAL = re.compile(
    r"""(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PWD|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY
        |SIGNING_?KEY|ENCRYPTION_?KEY|SECRET_?KEY|SSH_?KEY|CREDENTIALS?|CREDS?|AUTH|COOKIE|DSN
        |BEARER|PAT|SESSION_?KEY|CONNECTION_?STRING)S?(?:_|$)
      | (?:TOKEN|SECRET|PASSWORD|PASSWD|APIKEY|CREDENTIALS?)$
      | ^(?:AWS|AZURE|GITHUB|GH|GITLAB|GOOGLE|GCP|CLOUDSDK|VAULT|TWINE|CI_JOB
          |PIP_INDEX|UV_INDEX)_""",
    re.VERBOSE,
)
_ENGINE = re.compile(r"^(?:DOCKER|CONTAINER|PODMAN|BUILDKIT|KUBE|KUBERNETES)_|^KUBECONFIG$")
_AGENT = re.compile(r"^(?:SSH_|GPG_|GNUPGHOME$|DBUS_)")
_LOADER = re.compile(r"^(?:LD_PRELOAD|LD_AUDIT|BASH_ENV|BASH_FUNC_.*)$")

_HOST_PATH = re.compile(
    r"""(?:^|[=:,])(?: ~[A-Za-z0-9_-]*(?:/|$)
        | /home/(?!worker(?:/|$)) | /Users/ | /root(?:/|$) | [A-Za-z]:\\
        | /mnt/[a-z]/ | file:///?(?:home|Users|root)/ )""",
    re.VERBOSE,
)
_ENGINE_SOCKET = re.compile(r"(?:docker|podman|containerd|crio)\.sock")
_HOME_VARIABLE = re.compile(r"\$(?:HOME|USER|PWD)\b|\$\{(?:HOME|USER|PWD)\}")
_RELATIVE = "name it from the project's root, as src/**"


def env_name_problem(name: str) -> Problem | None:
    """Tell why an environment variable may not be set by a recipe."""
    upper = name.upper()
    if upper in FIXED_ENV:
        return Problem(
            f"env {name} is fixed to {FIXED_ENV[upper]!r} for every run",
            "remove it: results do not depend on it",
        )
    if upper.startswith("HARNESS_"):
        return Problem(f"env {name}: names that start with HARNESS_ are taken", "choose another")
    if _ENGINE.search(upper) or _AGENT.search(upper):
        return Problem(
            f"env {name} points to an engine, an agent or a cluster",
            "remove it: a worker reaches none of them",
        )
    if _LOADER.search(upper):
        return Problem(
            f"env {name} loads code that the argv does not show",
            "name the code in a step",
        )
    if _CREDENTIAL.search(upper):
        return Problem(
            f"env {name} looks like a credential",
            "remove it: a worker is offline and needs none; choose another name if it is none",
        )
    return None


def value_problem(value: str) -> Problem | None:
    """Tell why a text may not be an argument or the value of a variable."""
    reason = find_secret(b"value", value.encode("utf-8", "surrogatepass"))
    if reason:
        return Problem(f"the text looks like a secret ({reason})", "remove it, and revoke it")
    if _ENGINE_SOCKET.search(value):
        return Problem("the text names an engine's socket", "a worker never has one")
    host = _HOST_PATH.search(value)
    if host:
        return Problem(
            f"{value!r:.80} names a path of the host",
            "use a path inside the worker: the project lies in /workspace",
        )
    return None


def argument_problem(value: str) -> Problem | None:
    """Tell why a text may not be an argument that no shell reads."""
    variable = _HOME_VARIABLE.search(value)
    if variable:
        return Problem(
            f"{value!r:.80}: no shell replaces {variable[0]} here",
            "write the value; the project lies in /workspace, the home in /home/worker",
        )
    return value_problem(value)


def pattern_problem(pattern: str, *, git_matters: bool) -> Problem | None:
    """Tell why a text is not a gitignore pattern below the project's root.

    Args:
        pattern: the text.
        git_matters: also refuse a pattern that names `.git`.
    """
    body = pattern.removeprefix("!")
    if "\n" in pattern or pattern != pattern.strip() or not body.strip("/"):
        return Problem(f"{pattern!r:.80} is not a pattern", "one pattern a line, no blanks around")
    if pattern.startswith("#"):
        return Problem(f"{pattern!r:.80} is a comment to gitignore", f'write "\\\\{pattern:.60}"')
    if git_matters and touches_git(body.strip("/").encode("utf-8", "surrogatepass")):
        return Problem(f"{pattern!r:.80} names .git", "remove it: .git never enters a worker")
    if "[" in body and "]" not in body[body.index("[") + 2 :]:
        return Problem(f"{pattern!r:.80}: the bracket is never closed", 'write "\\\\[" or close it')
    return _outside_problem(pattern, body)


def _outside_problem(pattern: str, body: str) -> Problem | None:
    if _HOST_PATH.search(body) or body.startswith(("~", "/workspace/")):
        return Problem(f"{pattern!r:.80} names a path of the host or worker", _RELATIVE)
    if body.startswith("/") and "/" in body.strip("/"):
        # with a slash inside, a gitignore pattern starts at the root anyway
        return Problem(f"{pattern!r:.80} is an absolute path", f"write {body.lstrip('/')!r:.80}")
    names = body.strip("/").split("/")
    if ".." in names or "." in names or "" in names:
        return Problem(f"{pattern!r:.80} holds an empty name, '.' or '..'", _RELATIVE)
    return None


def path_problem(path: str) -> Problem | None:
    """Tell why a text is not one path inside the workspace."""
    if path.startswith("/workspace/"):
        return Problem(f"{path!r:.80} is absolute", f"write {path.removeprefix('/workspace/')!r}")
    if path.startswith("/") or _HOST_PATH.search(path):
        return Problem(f"{path!r:.80} is not inside the workspace", "name it from the root of it")
    if "*" in path or "?" in path or "[" in path or "\n" in path:
        return Problem(f"{path!r:.80}: expected one path, not a pattern", "name one file")
    try:
        parse_path(path.encode("utf-8", "surrogatepass"))
    except InputError as error:
        return Problem(error.message, "name it from the root of the workspace")
    if touches_git(path.encode("utf-8", "surrogatepass")):
        return Problem(f"{path!r:.80} names .git", "write it elsewhere")
    return None
