"""What one run has on an engine: a volume and one or two containers, all to be removed.

Rule: removed by id, each call with a deadline; a failed removal is noted and left to the sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.errors import HarnessError
from harness.execution.engine.port import (
    LABEL_RUN,
    LABEL_STATE,
    Connection,
    Engine,
    VolumeSpec,
)


class Made:
    """Makes things on an engine and knows what to remove.

    Args:
        engine: where.
        name: of the volume and the worker, unique.
        labels: say whose it is.

    Attributes:
        connection: the worker's streams, once there are any.
        problems: what went wrong on the way out.
    """

    def __init__(self, engine: Engine, name: str, labels: Mapping[str, str]) -> None:
        self._engine = engine
        self._volume = False
        self._containers: list[str] = []
        self._is_one_lost = False
        self.name = name
        self.labels = labels
        self.connection: Connection | None = None
        self.problems: list[str] = []

    def volume(self, options: Mapping[str, str]) -> None:
        """Make the volume.

        Raises:
            HarnessError: as `Engine.create_volume`.
        """
        self._volume = True
        self._engine.create_volume(VolumeSpec(name=self.name, options=options, labels=self.labels))

    def container(self, make: Callable[[], str]) -> str:
        """Make a container and return its id.

        Raises:
            HarnessError: as `make`; the engine may have made it all the same.
        """
        self._is_one_lost = True
        container = make()
        self._is_one_lost = False
        self._containers.append(container)
        return container

    def remove(self) -> None:
        """Remove everything. Never raises."""
        if self.connection:
            self.connection.close()
        try:
            for container in (*self._containers, *self._lost()):
                self._engine.remove(container)
        except HarnessError as error:
            self.problems.append(f"cleanup: {error}")
        try:
            if self._volume:
                self._engine.remove_volume(self.name)
        except HarnessError as error:
            self.problems.append(f"cleanup: {error}")

    def _lost(self) -> list[str]:
        """Return containers whose creation was cut: the engine made them, we never got the id."""
        if not self._is_one_lost:
            return []
        state = self.labels[LABEL_STATE]
        owned = self._engine.owned(state).containers
        return [container for container, run in owned.items() if run == self.labels[LABEL_RUN]]
