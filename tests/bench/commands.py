"""The baselines: what people would use instead, with the same image, mounts and flags.

A command is kept as a template: what it is compared under is printed and committed, and the places
of one run (`$IMAGE`, `$LAYER` and so on) are put in when it is run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from typing import Any

from harness.execution.engine.spec import container_request
from harness.execution.worker.operation import Operation
from harness.execution.worker.run_operation import _container_spec
from harness.model.seal import WORKSPACE

STATUS = ("status", "--porcelain")
ADD = ("add", "-A")

OVERLAY = (
    f"type=volume,dst={WORKSPACE},volume-nocopy,volume-driver=local,volume-opt=type=overlay,"
    'volume-opt=device=overlay,"volume-opt=o=lowerdir=$LAYER,upperdir=$UPPER,workdir=$WORK,'
    'userxattr,nosuid,nodev"'
)


def spelled(words: tuple[str, ...]) -> str:
    """Return a command as one types it."""
    return " ".join(word if "$" in word else shlex.quote(word) for word in words)


def fill(words: tuple[str, ...], places: Mapping[str, str]) -> list[str]:
    """Return a command with the places of one run."""
    return [re.sub(r"\$[A-Z]+", lambda found: places[found[0]], word) for word in words]


def call(*commands: list[str]) -> None:
    """Run commands, one after the other; what they say is shown when one fails."""
    for words in commands:
        done = subprocess.run(words, env=dict(os.environ), check=False, capture_output=True)
        if done.returncode:
            raise SystemExit(
                f"bench: {' '.join(words[:2])}: {done.stderr.decode(errors='replace')}"
            )


def remove_container(name: str) -> None:
    """Remove what a baseline that failed has left; what is not there is fine."""
    for words in (("rm", "--force", name), ("volume", "rm", "--force", name)):
        subprocess.run(["docker", *words], check=False, capture_output=True)


def hardened(operation: Operation) -> tuple[str, ...]:
    """Return the options of `docker run` and `docker create` that make our worker of a container.

    They come from the request that we send for the same operation; what is left out is our init,
    and the labels by which we find what is ours.
    """
    request = container_request(_container_spec(operation, "bench", ()))
    host = request["HostConfig"]
    return (
        *_process_options(request),
        *_isolation_options(host),
        *_limit_options(host),
        *(f"--tmpfs={path}:{options}" for path, options in host["Tmpfs"].items()),
    )


def _process_options(request: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"--user={request['User']}",
        f"--workdir={request['WorkingDir']}",
        f"--hostname={request['Hostname']}",
        "--no-healthcheck",
        *(f"--env={item}" for item in request["Env"] if "=" in item),
    )


def _isolation_options(host: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"--network={host['NetworkMode']}",
        "--read-only",
        *(f"--cap-drop={name}" for name in host["CapDrop"]),
        *(f"--security-opt={option}" for option in host["SecurityOpt"]),
        f"--ipc={host['IpcMode']}",
        f"--log-driver={host['LogConfig']['Type']}",
        *(f"--add-host={item}" for item in host["ExtraHosts"]),
        *(f"--dns={item}" for item in host["Dns"]),
        *(f"--dns-search={item}" for item in host["DnsSearch"]),
    )


def _limit_options(host: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"--pids-limit={host['PidsLimit']}",
        f"--memory={host['Memory']}",
        f"--memory-swap={host['MemorySwap']}",
        f"--cpu-period={host['CpuPeriod']}",
        f"--cpu-quota={host['CpuQuota']}",
        f"--shm-size={host['ShmSize']}",
        *(f"--ulimit={item['Name']}={item['Soft']}:{item['Hard']}" for item in host["Ulimits"]),
    )
