"""The engine this host uses, opened."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from harness.execution.host.find import EngineAddress, find_engine
from harness.flows.session import Host

if TYPE_CHECKING:
    from harness.execution.engine.docker_registry import DockerRegistryEngine


def open_engine(host: Host) -> DockerRegistryEngine:
    """Find the engine and open it.

    Raises:
        EngineUnreachableError: none answers; the issues say why for each place.
    """
    return open_engine_at(find_engine(os.environ, host.state))


def open_engine_at(address: EngineAddress) -> DockerRegistryEngine:
    """Open the engine at an address that answered."""
    # The SDK takes longer to import than many commands take; most of them need no engine.
    from harness.execution.engine.docker_registry import (  # noqa: PLC0415 - as said
        DockerRegistryEngine,
    )

    return DockerRegistryEngine(address.url, tls=address.tls)
