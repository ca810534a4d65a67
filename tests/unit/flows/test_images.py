from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ImageMissingError, InputError, VerificationError
from harness.execution.image import add as add_module
from harness.flows import images
from harness.flows.session import Host, open_host
from harness.model.digest import Digest
from tests.fakes.debian_tree import INIT, DebianArchive
from tests.fakes.image_archives import TestImage, docker_archive, layer
from tests.fakes.image_engine import FakeImageEngine

APP = TestImage(name="app:1", layers=[layer(("app", b"app"))])


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeImageEngine:
    engine = FakeImageEngine()
    monkeypatch.setattr(images, "open_engine", lambda _: engine)
    monkeypatch.setattr(add_module, "init_binary", lambda *_, **__: INIT)
    return engine


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> DebianArchive:
    return DebianArchive(monkeypatch)


@pytest.fixture
def host(tmp_path: Path, engine: FakeImageEngine) -> Host:
    del engine
    return open_host({"HARNESS_STATE": str(tmp_path / "state")})


def verbs(host: Host) -> list[str]:
    return [entry.verb for entry in host.ledger.entries()]


def say(_: str) -> None:
    """Take a report."""


def test_an_image_that_is_built_already_is_left_as_it_is(
    host: Host, archive: DebianArchive
) -> None:
    first = images.build_named_image(host, "nodec", say)
    again = images.build_named_image(host, "nodec", say)
    assert again == images.BuiltImage(locked=first.locked, difference=None)
    assert (archive.made, verbs(host)) == (1, ["build"])


def test_a_fresh_build_of_the_same_packages_gives_the_same_id(
    host: Host, archive: DebianArchive
) -> None:
    first = images.build_named_image(host, "nodec", say)
    archive.day = "20365"
    again = images.build_named_image(host, "nodec", say, fresh=True)
    assert archive.made == 2
    assert again.locked.image == first.locked.image
    assert again.difference is None


def test_a_fresh_build_of_other_packages_says_what_differs(
    host: Host, archive: DebianArchive
) -> None:
    first = images.build_named_image(host, "nodec", say)
    archive.version = "1.1"
    again = images.build_named_image(host, "nodec", say, fresh=True)
    assert again.locked.image.image_id != first.locked.image.image_id
    assert again.difference
    assert again.difference.to_json() == {
        "packages": [{"name": "tool", "before": "1.0", "after": "1.1"}],
        "files": [],
    }
    assert verbs(host) == ["build", "build"]
    assert list(host.state.images.glob("work-*")) == []


def test_an_addition_is_on_the_ledger_once(host: Host, engine: FakeImageEngine) -> None:
    engine.load_image([docker_archive(APP)])
    engine.names["app:1"] = Digest(APP.image_id)
    added = images.add_named_image(host, "app", "app:1", say)
    assert images.add_named_image(host, "app", "app:1", say) == added
    (entry,) = host.ledger.entries()
    assert (entry.verb, entry.phase, entry.body) == ("add", "done", added.to_json())


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("python", "app:1", "has a definition of this name"),
        ("App", "app:1", "image name: expected"),
        ("app", "App:1", "image reference: expected"),
    ],
)
def test_a_name_or_a_source_that_can_not_be_is_refused(
    host: Host, engine: FakeImageEngine, name: str, source: str, message: str
) -> None:
    calls = list(engine.calls)
    with pytest.raises(InputError, match=message):
        images.add_named_image(host, name, source, say)
    assert engine.calls == calls
    assert verbs(host) == []
    assert not host.state.images_lock.exists()


def test_its_source_is_asked_only_where_there_is_one(
    host: Host, engine: FakeImageEngine, archive: DebianArchive
) -> None:
    images.build_named_image(host, "nodec", say)
    with pytest.raises(InputError, match="came from its definition: nobody to ask"):
        images.verify_image(host, "nodec", source=True)
    engine.load_image([docker_archive(APP)])
    engine.names["app:1"] = Digest(APP.image_id)
    added = images.add_named_image(host, "app", "app:1", say)
    assert images.verify_image(host, "app", source=True).locked == added
    engine.names["app:1"] = archive_id = images.verify_image(host, "nodec").locked.image.image_id
    with pytest.raises(VerificationError, match=f"got {archive_id}: the name was moved"):
        images.verify_image(host, "app", source=True)
    del engine.names["app:1"]
    with pytest.raises(ImageMissingError, match="the engine has no app:1 any more"):
        images.verify_image(host, "app", source=True)
    assert archive.made == 1
