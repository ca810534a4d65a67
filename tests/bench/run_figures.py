"""What a run costs beside a plain hardened `docker run` of the same container."""

from __future__ import annotations

import secrets

from harness.execution.snapshot.view import SnapshotView
from harness.execution.worker.operation import Operation, operation_from_seal
from harness.execution.worker.workspace import make_workspace
from harness.flows.worker_identity import worker_owner
from tests.bench.commands import OVERLAY, call, fill, hardened, remove_container, spelled
from tests.bench.figure import Figure, take_pairs, timed
from tests.bench.ground import Bed, Ground

FILES = 100
COPIED_FILES = 10_000


def sealed_operation(bed: Bed) -> Operation:
    """Return what a run of the bed's recipe would ask of the engine."""
    seal = bed.seal().seals[0]
    uid, gid = worker_owner()
    return operation_from_seal(
        seal,
        run="bench",
        state=bed.session.state,
        snapshot=SnapshotView(bed.session.state, seal.snapshot),
        folder=bed.state,
        uid=uid,
        gid=gid,
    )


def cold_run(ground: Ground, count: int) -> list[Figure]:
    """Measure one run in this process, and as a whole command, against `docker run --rm`."""
    bed = ground.bed(ground.tree(FILES))
    operation = sealed_operation(bed)
    words = (
        "docker", "run", "--rm", *hardened(operation), f"--mount={OVERLAY}",
        "--entrypoint=python3", "$IMAGE", "tool.py",
    )  # fmt: skip
    layers = [str(layer) for layer in operation.snapshot.layers]

    def docker_run() -> float:
        workspace = make_workspace(
            bed.state / f"bench-{secrets.token_hex(4)}", uid=operation.uid, gid=operation.gid
        )
        places = {
            "$IMAGE": operation.image.image_id,
            "$LAYER": ":".join(layers),
            "$UPPER": str(workspace.upper),
            "$WORK": str(workspace.work),
        }
        return timed(lambda: call(fill(words, places)))

    def in_process() -> float:
        digest = bed.approve(bed.seal())
        return timed(lambda: bed.run(digest))

    def as_command() -> float:
        digest = bed.approve(bed.seal())
        return timed(lambda: bed.command("run", digest))

    baseline = spelled(words)
    return [
        Figure(name=name, pairs=take_pairs(count, ours, docker_run), baseline=baseline, bound=bound)
        for name, ours, bound in (
            ("cold_run", in_process, 1.15),
            ("cold_command", as_command, 1.6),
        )
    ]


def copy_run(ground: Ground, count: int) -> list[Figure]:
    """Measure one run by the copy strategy against `docker cp` in and out."""
    bed = ground.bed(ground.tree(COPIED_FILES, strategy="copy"))
    operation = sealed_operation(bed)
    (layer,) = operation.snapshot.layers
    mount = "type=volume,src=$NAME,dst=/workspace"
    commands = (
        ("docker", "create", "--name=$NAME", *hardened(operation), f"--mount={mount}",
         "--entrypoint=python3", "$IMAGE", "tool.py"),
        ("docker", "cp", "$FILES/.", "$NAME:/workspace"),
        ("docker", "start", "--attach", "$NAME"),
        ("docker", "cp", "$NAME:/workspace", "$OUT"),
        ("docker", "rm", "$NAME"),
        ("docker", "volume", "rm", "$NAME"),
    )  # fmt: skip

    def docker_cp() -> float:
        name = f"harness-bench-{secrets.token_hex(4)}"
        places = {
            "$NAME": name,
            "$IMAGE": operation.image.image_id,
            "$FILES": str(layer),  # the project's files, with the worker's owner
            "$OUT": str(bed.state / name),
        }
        try:
            return timed(lambda: call(*(fill(words, places) for words in commands)))
        except SystemExit:
            remove_container(name)
            raise

    def ours() -> float:
        digest = bed.approve(bed.seal())
        return timed(lambda: bed.run(digest))

    return [
        Figure(
            name="copy_run",
            pairs=take_pairs(count, ours, docker_cp),
            baseline=" && ".join(map(spelled, commands)),
            bound=1.2,
        )
    ]
