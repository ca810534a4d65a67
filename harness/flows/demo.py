"""The demonstration's project: an upstream release, as people know it, with two recipes beside it.

The release is click's, pinned by hash and obtained with pip. pip asks the release's build backend
for metadata; that backend is pinned by hash too, and click's own code is never run on the host.

The project lies in a folder of its own that holds a mark of ours; each demonstration makes it anew.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import AcquisitionError, InputError, SandboxUnavailableError, VerificationError
from harness.execution.host.command import host_environment, read_command, run_command
from harness.execution.image.dependencies import pip_environment
from harness.flows.starter import schema_files
from harness.model.approval import NAMESPACES
from harness.model.digest import digest_of
from harness.store.durable import remove_folder, rename, state_error
from harness.store.resources import find_resources

RELEASE = "click-8.1.8.tar.gz"
RELEASE_DIGEST = "sha256:ed53c9d8990d83c2a27deae68e4ee337473f6330c040a31d4225c9574d16096a"
BACKEND = "flit_core-3.12.0-py3-none-any.whl"
BACKEND_DIGEST = "sha256:e7a0304069ea895172e3c7bb703292e992c5d1555dd1233ab7b5621b5b69e62c"
REVIEWER = "demo"

_MARK = ".made-by-harness-demo"
_SECONDS = 300
_PROJECT = """\
# yaml-language-server: $schema=.harness/schemas/project-v1.json
version: 1
name: click
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoProject:
    """What the demonstration works on.

    Attributes:
        root: the upstream project, in a git repository of its own.
        key: the throw-away private key, beside the project.
    """

    root: Path
    key: Path


def make_demo_project(
    folder: Path, *, environment: Mapping[str, str], report: Callable[[str], None]
) -> DemoProject:
    """Make the demonstration's project, or make it anew.

    Args:
        folder: takes the release, the project, the key and a log; it must be missing, empty, or
            one that an earlier demonstration made.
        environment: of the caller.
        report: is told what happens now.

    Raises:
        InputError: the folder holds something else.
        AcquisitionError: the release can't be had, or is not the pinned one.
        SandboxUnavailableError: git or ssh-keygen is missing.
        StateError: the folder can't be written.
    """
    _claim(folder)
    log = folder / "demo.log"
    release = _acquire(folder, environment, log, report)
    root = folder / "click"
    report("unpack the release and commit it to a git repository")
    remove_folder(root)
    _unpack(release, folder)
    key = folder / "throwaway-key"
    _make_key(key, environment, log)
    make_demo_files(root, key)
    _commit(root, environment, log)
    return DemoProject(root=root, key=key)


def git_diff(project: DemoProject, *, environment: Mapping[str, str]) -> str:
    """Return what git says has changed in the project, in the form of our patches."""
    flags = ("--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff")
    return read_command(
        _git(project.root, "diff", *flags),
        what="git diff",
        environment=_git_environment(environment),
        seconds=_SECONDS,
    )


def _claim(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()) and not (folder / _MARK).exists():
            raise InputError(
                f"{folder}: expected an empty folder, or one that a demonstration made",
                hint="give another one: `harness demo --folder FOLDER`",
            )
        (folder / _MARK).touch()
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from error


def _acquire(
    folder: Path, environment: Mapping[str, str], log: Path, report: Callable[[str], None]
) -> Path:
    release, backend = folder / RELEASE, folder / BACKEND
    if not release.exists():
        report(f"obtain {RELEASE} with pip, pinned by hash")
        _pip(folder, ("flit_core==3.12.0", BACKEND_DIGEST), environment, log, "--only-binary=:all:")
        _check(backend, BACKEND_DIGEST)
        _pip(
            folder,
            ("click==8.1.8", RELEASE_DIGEST),
            {**environment, "PYTHONPATH": str(backend)},
            log,
            "--no-binary=:all:",
            "--no-build-isolation",
        )
    _check(release, RELEASE_DIGEST)
    return release


def _pip(
    folder: Path,
    pin: tuple[str, str],
    environment: Mapping[str, str],
    log: Path,
    *options: str,
) -> None:
    pins = folder / "pins.txt"
    try:
        pins.write_text(f"{pin[0]} --hash={pin[1]}\n", "ascii")
    except OSError as error:
        raise state_error("write the demo's pins", error) from error
    python_path = environment.get("PYTHONPATH", "")
    run_command(
        (
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"),
            *("--disable-pip-version-check", "--require-hashes", *options),
            *("--dest", str(folder), "--requirement", str(pins)),
        ),
        what=f"pip download {pin[0]}",
        environment={**pip_environment(environment), "PYTHONPATH": python_path},
        seconds=_SECONDS,
        log=log,
        error=AcquisitionError,
    )


def _check(path: Path, expected: str) -> None:
    try:
        found = digest_of(path.read_bytes())
    except OSError as error:
        raise AcquisitionError(f"{path.name}: pip did not bring it") from error
    if found != expected:
        raise VerificationError(
            f"{path.name}: expected {expected}, got {found}", hint=f"remove {path} and try again"
        )


def _unpack(release: Path, folder: Path) -> None:
    """Unpack an archive whose digest was just checked; it is nobody's hostile input."""
    try:
        with tarfile.open(release) as archive:
            archive.extractall(folder, filter="data")
        rename(folder / RELEASE.removesuffix(".tar.gz"), folder / "click")
    except (OSError, tarfile.TarError) as error:
        raise AcquisitionError(f"{release.name}: can't be unpacked: {error}") from error


def _make_key(key: Path, environment: Mapping[str, str], log: Path) -> None:
    if key.exists():
        return
    run_command(
        ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "throw-away", "-f", str(key)),
        what="ssh-keygen",
        environment=host_environment(environment),
        seconds=_SECONDS,
        log=log,
    )


def make_demo_files(root: Path, key: Path) -> None:
    """Write the demonstration's recipes, policy, reviewers and schemas beside the project.

    Args:
        root: the project's folder.
        key: the throw-away key; its public half lies beside it.

    Raises:
        InputError: a file can't be written.
    """
    namespaces = ",".join(NAMESPACES.values())
    try:
        for kind in ("recipes", "policies"):
            shutil.copytree(find_resources(kind) / "demo", root / kind)
        public = key.with_name(f"{key.name}.pub").read_text("ascii").strip()
        (root / "policies" / "reviewers").write_text(
            f'{REVIEWER} namespaces="{namespaces}" {public}\n', "ascii"
        )
        (root / "harness.yaml").write_text(_PROJECT, "ascii")
        for name, data in schema_files().items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        (root / ".gitignore").write_text("__pycache__/\nreports/\n", "ascii")
    except (OSError, ValueError) as error:
        raise InputError(f"{root}: can't write the demo's recipes: {error}") from error


def _commit(root: Path, environment: Mapping[str, str], log: Path) -> None:
    who = ("-c", "user.name=harness demo", "-c", "user.email=demo@localhost")
    for command in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        (*who, "commit", "--quiet", "--message=click 8.1.8 as released, with two recipes"),
    ):
        run_command(
            _git(root, *command),
            what=f"git {command[0] if command[0] != '-c' else 'commit'}",
            environment=_git_environment(environment),
            seconds=_SECONDS,
            log=log,
            error=SandboxUnavailableError,
        )


def _git(root: Path, *command: str) -> tuple[str, ...]:
    return ("git", "-C", os.fspath(root), *command)


def _git_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which git follows no configuration but the repository's own."""
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return {**host_environment(environment), **own}
