"""One suite, two engines: every contract test runs on the fake and on a real engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.bench import Bench, fake_bench, real_engine, real_image


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.docker)])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Return a bench; what it made on a real engine is removed."""
    if request.param == "fake":
        yield fake_bench(tmp_path)
        return
    engine = real_engine()
    made = Bench(engine, real_image(), tmp_path, real=True)
    try:
        yield made
    finally:
        owned = engine.owned(made.state)
        for container in owned.containers:
            engine.remove(container)
        for volume in owned.volumes:
            engine.remove_volume(volume)
        engine.close()
