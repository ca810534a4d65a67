"""A container in our words becomes an engine's create request. Pure.

Rules: no network, read-only root, no capability, no new privileges, no swap, no core file, no
log on the engine's disk, no device, no host path; every size and count has a bound.
Refuses: a read-back that differs from what was asked for (a limit that is not enforced).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import Issue, SandboxUnavailableError
from harness.execution.engine.copies import CarrierSpec
from harness.execution.engine.port import BuildSpec, ContainerSpec
from harness.model.seal import WORKSPACE

INIT_PATH = "/.harness/init"
"""Where init lies in every worker image."""

HOME = "/home/worker"
HOSTNAME = "worker"

ENGINE_ENV = ("HOSTNAME", "HOME", "PATH", "TERM", "container")
"""Names that an engine may add by itself; one that the seal does not set is taken out."""

CPU_PERIOD_US = 100_000
"""The kernel's own period. A quota may exceed the host's cpus; `NanoCpus` would be refused."""


def container_request(spec: ContainerSpec) -> dict[str, Any]:
    """Return the body of `POST /containers/create` for a worker.

    A name without `=` in `Env` takes a variable of the image's or the engine's own away (Docker
    Engine API, ContainerConfig.Env).
    """
    unset = sorted({*spec.unset_env, *ENGINE_ENV} - set(spec.env))
    return {
        "Image": spec.image_id,
        "Entrypoint": [INIT_PATH],
        "Cmd": list(spec.argv),
        "Env": [f"{name}={value}" for name, value in sorted(spec.env.items())] + unset,
        "User": f"{spec.uid}:{spec.gid}",
        "WorkingDir": WORKSPACE,
        "Hostname": HOSTNAME,
        "Labels": dict(spec.labels),
        "Healthcheck": {"Test": ["NONE"]},
        **_streams(stdin=True),
        "HostConfig": _worker_host_config(spec),
    }


def build_request(spec: BuildSpec) -> dict[str, Any]:
    """Return the body of `POST /containers/create` for one step of an image build."""
    return {
        "Image": spec.image_id,
        "Entrypoint": list(spec.argv),
        "Cmd": [],
        "Env": [f"{name}={value}" for name, value in sorted(spec.env.items())],
        "User": "0:0",
        "WorkingDir": "/",
        "Hostname": "build",
        "Labels": dict(spec.labels),
        **_streams(stdin=False),
        "HostConfig": {
            "NetworkMode": "none",
            "IpcMode": "private",
            "SecurityOpt": ["no-new-privileges:true"],
            "CapDrop": ["ALL"],
            "CapAdd": ["CHOWN", "DAC_OVERRIDE", "FOWNER"],
            "LogConfig": {"Type": "none", "Config": {}},
        },
    }


def carrier_request(spec: CarrierSpec) -> dict[str, Any]:
    """Return the body of `POST /containers/create` for a carrier, which is never started."""
    return {
        "Image": spec.image_id,
        "Entrypoint": [INIT_PATH],
        "Cmd": [],
        "Labels": dict(spec.labels),
        **_streams(stdin=False),
        "HostConfig": {
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true"],
            "LogConfig": {"Type": "none", "Config": {}},
            "Mounts": [_workspace_mount(spec.volume)],
        },
    }


def _streams(*, stdin: bool) -> dict[str, Any]:
    return {
        "Tty": False,
        "OpenStdin": stdin,
        "StdinOnce": stdin,
        "AttachStdin": stdin,
        "AttachStdout": True,
        "AttachStderr": True,
    }


def _worker_host_config(spec: ContainerSpec) -> dict[str, Any]:
    limits = spec.limits
    exec_flag = "exec" if spec.tmp_exec else "noexec"
    scratch = f"rw,nosuid,nodev,{exec_flag},size={limits.tmp_bytes}"
    return {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true"],
        "Privileged": False,
        "IpcMode": "private",
        "Init": False,
        "OomKillDisable": False,
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no"},
        "LogConfig": {"Type": "none", "Config": {}},
        "ExtraHosts": [f"{HOSTNAME}:127.0.0.1"],
        # Nobody listens there, so a look-up fails at once; the host's servers stay unknown.
        "Dns": ["127.0.0.1"],
        "DnsSearch": ["."],
        "PidsLimit": limits.pids,
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,
        "CpuPeriod": CPU_PERIOD_US,
        "CpuQuota": limits.cpu_millis * CPU_PERIOD_US // 1000,
        "ShmSize": limits.shm_bytes,
        "Ulimits": [
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "fsize", "Soft": limits.file_bytes, "Hard": limits.file_bytes},
            {"Name": "nofile", "Soft": limits.open_files, "Hard": limits.open_files},
        ],
        "Tmpfs": {
            "/tmp": f"{scratch},mode=1777",  # noqa: S108 - inside the worker
            HOME: f"{scratch},mode=0700,uid={spec.uid},gid={spec.gid}",
        },
        "Mounts": [_workspace_mount(spec.volume)] if spec.volume else [],
    }


def _workspace_mount(volume: str) -> dict[str, Any]:
    return {
        "Type": "volume",
        "Source": volume,
        "Target": WORKSPACE,
        "VolumeOptions": {"NoCopy": True},
    }


OBSERVED: Mapping[str, str] = {
    "networkMode": "NetworkMode",
    "readonlyRootfs": "ReadonlyRootfs",
    "capDrop": "CapDrop",
    "securityOpt": "SecurityOpt",
    "privileged": "Privileged",
    "ipcMode": "IpcMode",
    "pidsLimit": "PidsLimit",
    "memory": "Memory",
    "memorySwap": "MemorySwap",
    "cpuPeriod": "CpuPeriod",
    "cpuQuota": "CpuQuota",
    "shmSize": "ShmSize",
    "ulimits": "Ulimits",
    "tmpfs": "Tmpfs",
}
"""What is read back: our name, and the engine's name in HostConfig."""


def observed_limits(host_config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits as an engine says they are; `unavailable` for what it does not say."""
    return {ours: host_config.get(theirs, "unavailable") for ours, theirs in OBSERVED.items()}


def check_read_back(spec: ContainerSpec, host_config: Mapping[str, Any]) -> None:
    """Compare what the engine made with what was asked for.

    An engine that can't enforce a limit creates the container all the same, with a warning and
    another value (swap accounting switched off in the kernel, say).

    Raises:
        SandboxUnavailableError: every limit that differs.
    """
    asked = observed_limits(_worker_host_config(spec))
    found = observed_limits(host_config)
    issues = tuple(
        Issue(message=f"{name}: expected {_plain(asked[name])}, got {_plain(found[name])}")
        for name in OBSERVED
        if _plain(asked[name]) != _plain(found[name])
    )
    if issues:
        raise SandboxUnavailableError(
            "engine: does not enforce every limit of the worker",
            hint="its kernel can't (swap accounting is off, say); use a host that can",
            issues=issues,
        )


def _plain(value: Any) -> str:
    """Return a value in one spelling; engines reorder lists."""
    if isinstance(value, list):
        return f"[{', '.join(sorted(_plain(item) for item in value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_plain(value[key])}' for key in sorted(value))}}}"
    return str(value)
