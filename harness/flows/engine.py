"""The engine this host uses, opened."""

from __future__ import annotations

import os

from harness.execution.engine.docker_registry import DockerRegistryEngine
from harness.execution.host.find import EngineAddress, find_engine
from harness.flows.session import Host


def open_engine(host: Host) -> DockerRegistryEngine:
    """Find the engine and open it.

    Raises:
        EngineUnreachableError: none answers; the issues say why for each place.
    """
    return open_engine_at(find_engine(os.environ, host.state))


def open_engine_at(address: EngineAddress) -> DockerRegistryEngine:
    """Open the engine at an address that answered."""
    return DockerRegistryEngine(address.url, tls=address.tls)
