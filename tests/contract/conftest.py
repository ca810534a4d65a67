"""One suite, several engines: the fake and a real one; and on real ones, each kind of workspace."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.execution.worker.operation import Asked
from tests.fakes.bench import Bench, fake_bench, real_engine, real_image
from tests.fakes.tls_engine import TlsEngine, tls_engine


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.docker)])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Return a bench; what it made on a real engine is removed."""
    if request.param == "fake":
        yield fake_bench(tmp_path)
        return
    made = Bench(real_engine(), real_image(), tmp_path, real=True)
    with cleared(made):
        yield made


@contextmanager
def cleared(bench: Bench) -> Iterator[None]:
    """Remove what a bench leaves on its engine."""
    engine = bench.engine
    try:
        yield
    finally:
        owned = engine.owned(bench.state)
        for container in owned.containers:
            engine.remove(container)
        for volume in owned.volumes:
            engine.remove_volume(volume)


@pytest.fixture(scope="session")
def second_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsEngine]:
    """Return a private engine over TCP with TLS that has the worker image."""
    image = real_image()
    with tls_engine(tmp_path_factory.mktemp("engine")) as second:
        engine, source = second.open(), real_engine()
        engine.load_image(source.save_image(image))
        source.close()
        engine.close()
        yield second


@contextmanager
def overlay_mount(folder: Path) -> Iterator[Path]:
    """Mount a real overlay for the block."""
    for name in ("lower", "upper", "work", "merged"):
        (folder / name).mkdir()
    options = ",".join(f"{n}dir={folder / n}" for n in ("lower", "upper", "work"))
    merged = folder / "merged"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, merged], check=True)
    try:
        yield merged
    finally:
        subprocess.run(["umount", merged], check=True)


PLACES = ("overlay", "copy", "copy-on-overlay", "copy-over-tls")


@pytest.fixture(
    params=[
        pytest.param("overlay", marks=pytest.mark.docker),
        pytest.param("copy", marks=pytest.mark.docker),
        pytest.param("copy-on-overlay", marks=[pytest.mark.docker, pytest.mark.root]),
        pytest.param("copy-over-tls", marks=[pytest.mark.docker, pytest.mark.root]),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Return a bench with one kind of workspace; only the plain copy has to be asked for."""
    if request.param == "copy-over-tls":
        second: TlsEngine = request.getfixturevalue("second_engine")
        made = Bench(second.open(), real_image(), tmp_path, real=True)
        with cleared(made):
            yield made
    elif request.param == "copy-on-overlay":
        with overlay_mount(tmp_path) as merged:
            made = Bench(real_engine(), real_image(), merged, real=True)
            with cleared(made):
                yield made
    else:
        made = Bench(real_engine(), real_image(), tmp_path, real=True)
        made.asked = Asked("copy" if request.param == "copy" else "auto")
        with cleared(made):
            yield made
