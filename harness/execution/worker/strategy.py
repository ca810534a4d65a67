"""Which workspace strategy a run gets: the overlay where the engine can lay one, else a copy.

Rules:
    * What can be tried is tried: a small overlay, read and written through the engine. An engine
      behind a unix socket may well run in a virtual machine, or see another disk than we do.
    * A recipe or a policy that names a strategy gets it or a refusal, never the other one.
    * Why it was chosen is one of a few fixed texts, for the run's record.
    * Only a success is remembered, for one engine and one state folder.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EngineUnreachableError, ImageMissingError, SandboxUnavailableError
from harness.execution.engine.copies import CarrierSpec
from harness.execution.engine.ids import maps_ids, worker_ids
from harness.execution.engine.port import LABEL_RUN, LABEL_STATE, Engine, EngineInfo, VolumeSpec
from harness.execution.snapshot.contents import Content
from harness.execution.worker.archive_writer import write_archive
from harness.execution.worker.operation import Asked, Operation, Strategy
from harness.execution.worker.workspace import (
    SOURCE_DATE_EPOCH,
    Workspace,
    make_workspace,
    overlay_options,
    remove_workspace,
)
from harness.model.digest import digest_of
from harness.model.limits import MIB
from harness.model.seal import WORKSPACE
from harness.model.tree import Node
from harness.store.durable import state_error, write_durably

SEEN = "the engine can lay an overlay over the state folder"
UNSEEN = "the engine can't lay an overlay over the state folder"
REMOTE = "the engine is reached over the network"
MAPPED = "the engine maps user ids"
TOO_LARGE = "engines take no user id as large as the caller's"
ON_OVERLAY = "the state folder lies on an overlay file system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A strategy and why it is used.

    Attributes:
        strategy: overlay or copy.
        reason: a fixed text.
    """

    strategy: Strategy
    reason: str


def choose_strategy(engine: Engine, info: EngineInfo, operation: Operation) -> Choice:
    """Choose how a worker gets its files.

    Args:
        engine: where it will run.
        info: what the engine says of itself.
        operation: what will run; its folder is there.

    Raises:
        SandboxUnavailableError: not an engine for Linux, or the strategy that was sealed is
            impossible here.
        EngineUnreachableError: nobody answers.
        ImageMissingError: the image is not there.
        StateError: the state folder can't be written.
    """
    asked = operation.asked
    check_strategy(info, asked, operation.folder, (operation.uid, operation.gid))
    if asked.strategy == "copy":
        return Choice(strategy="copy", reason=f"the {asked.by} asks for it")
    obstacle = _find_obstacle(engine, info, operation)
    if not obstacle:
        reason = SEEN if asked.strategy == "auto" else f"the {asked.by} asks for it"
        return Choice(strategy="overlay", reason=reason)
    if asked.strategy == "overlay":
        raise _impossible(asked, obstacle)
    return Choice(strategy="copy", reason=obstacle)


def check_strategy(info: EngineInfo, asked: Asked, folder: Path, owner: tuple[int, int]) -> None:
    """Refuse what is known to be impossible without trying it.

    Args:
        info: what the engine says of itself.
        asked: the strategy that was sealed.
        folder: on the file system of the state folder.
        owner: user and group id of the files.

    Raises:
        SandboxUnavailableError: not an engine for Linux, or the overlay was sealed and can't be.
        StateError: the folder can't be looked at.
    """
    if info.os != "linux":
        raise SandboxUnavailableError(
            f"engine: expected one that runs Linux containers, got {info.os!r:.40}",
            hint="switch it to Linux containers, or use another engine",
        )
    if asked.strategy == "overlay" and (obstacle := _known_obstacle(info, folder, owner)):
        raise _impossible(asked, obstacle)


def _impossible(asked: Asked, obstacle: str) -> SandboxUnavailableError:
    return SandboxUnavailableError(
        f"workspace: the {asked.by} asks for the overlay, but {obstacle}",
        hint=f"choose `workspace: auto` or `copy` in the {asked.by}, then seal again",
    )


def _known_obstacle(info: EngineInfo, folder: Path, owner: tuple[int, int]) -> str:
    """Return why there can't be an overlay, as far as facts tell; empty when they don't."""
    if not info.local:
        return REMOTE
    if maps_ids(info):
        return MAPPED
    if worker_ids(info, *owner) != owner:
        return TOO_LARGE
    try:
        return ON_OVERLAY if file_system(folder) == "overlay" else ""
    except OSError as error:
        raise state_error("look at the state folder", error) from error


def _find_obstacle(engine: Engine, info: EngineInfo, operation: Operation) -> str:
    """Return why there can't be an overlay; empty when there can."""
    known = _known_obstacle(info, operation.folder, (operation.uid, operation.gid))
    if known:
        return known
    mark = {"engine": info.engine_id, "version": info.version, "state": operation.state}
    if info.engine_id and _read_mark(operation.probed) == mark:
        return ""
    if not _try_overlay(engine, operation):
        return UNSEEN
    write_durably(operation.probed, json.dumps(mark).encode())
    return ""


def file_system(folder: Path) -> str:
    """Return the type of the file system a folder lies on; empty when this host does not tell.

    Raises:
        OSError: the folder is not there.
    """
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    kinds = (line.partition(" - ")[2].split() for line in lines if line.split()[2:3] == [number])
    return next((kind[0] for kind in kinds if kind), "")


def _read_mark(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def _try_overlay(engine: Engine, operation: Operation) -> bool:
    """Lay an overlay over two folders of ours, and read and write through it."""
    folder = operation.folder / "probe"
    nonce = secrets.token_hex(16).encode()
    labels = {LABEL_RUN: operation.run, LABEL_STATE: operation.state}
    workspace = make_workspace(folder, uid=operation.uid, gid=operation.gid)
    try:
        lower = folder / "lower"
        lower.mkdir()
        (lower / "there").write_bytes(nonce)
        return _reads_and_writes(engine, operation, workspace, nonce, labels)
    except OSError as error:
        raise state_error("try an overlay", error) from error
    except (EngineUnreachableError, ImageMissingError):
        raise
    except SandboxUnavailableError:
        return False
    finally:
        remove_workspace(engine, folder, image_id=operation.image.image_id, labels=labels)


def _reads_and_writes(
    engine: Engine, operation: Operation, workspace: Workspace, nonce: bytes, labels: dict[str, str]
) -> bool:
    name = f"harness-probe-{secrets.token_hex(6)}"
    options = overlay_options([workspace.folder / "lower"], workspace)
    carrier = ""
    engine.create_volume(VolumeSpec(name=name, options=options, labels=labels))
    try:
        carrier = engine.create_carrier(
            CarrierSpec(name=name, image_id=operation.image.image_id, volume=name, labels=labels)
        )
        if nonce not in engine.copy_out(carrier, f"{WORKSPACE}/there", limit=MIB):
            return False
        node = Node("file", "100644", len(nonce), digest_of(nonce))
        archive = write_archive(
            [Content(b"back", node, iter((nonce,)))],
            root=b"probe",
            owner=(operation.uid, operation.gid),
            mtime=SOURCE_DATE_EPOCH,
        )
        engine.copy_in(carrier, WORKSPACE, archive)
        back = workspace.upper / "probe" / "back"
        return back.is_file() and back.read_bytes() == nonce
    finally:
        if carrier:
            engine.remove(carrier)
        engine.remove_volume(name)
