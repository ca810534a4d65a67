from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import (
    AcquisitionError,
    HarnessError,
    ImageMissingError,
    InputError,
    SandboxUnavailableError,
    StateError,
    VerificationError,
)
from harness.execution.engine.registry import RemoteImage
from harness.execution.image import acquire
from harness.execution.image import add as add_module
from harness.execution.image.add import ImageAddition, add_image
from harness.execution.image.definition import InitSource
from harness.execution.image.lock import read_lock
from harness.execution.image.reference import parse_image_source
from harness.execution.image.verify import check_image, check_locked_init, hash_image
from harness.model.digest import Digest, digest_of
from harness.store.lock import hold_lock
from harness.store.state import StateFolder, open_state
from tests.fakes.engine import FAKE_IMAGE
from tests.fakes.image_archives import HOSTILE_CONFIG, TestImage, docker_archive, layer
from tests.fakes.image_engine import FakeImageEngine

NOW = "2026-01-31T12:00:00.000Z"
LATER = "2026-02-28T12:00:00.000Z"
INIT = b"our init"
APP = TestImage(name="app:1", layers=[layer(("app", b"app"))], settings=HOSTILE_CONFIG)
MOVED = TestImage(name="app:1", layers=[layer(("app", b"moved"))])
ARM = TestImage(layers=APP.layers, architecture="arm64")
NAME = "127.0.0.1:5000/app:1"

Add = Callable[..., ImageAddition]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    monkeypatch.setattr(add_module, "init_binary", lambda *_, **__: INIT)
    return open_state(tmp_path / "state")


@pytest.fixture
def engine() -> FakeImageEngine:
    return FakeImageEngine()


@pytest.fixture
def add(state: StateFolder, engine: FakeImageEngine, tmp_path: Path) -> Add:
    """Give an addition of an archive, `./app.tar`, or of another source."""
    (tmp_path / "app.tar").write_bytes(docker_archive(APP))

    def make(source: str = "", name: str = "app", **changed: object) -> ImageAddition:
        return dataclasses.replace(
            ImageAddition(
                name=name,
                source=parse_image_source(source or str(tmp_path / "app.tar")),
                chosen="",
                replace=False,
                init=InitSource(file=Path("init.c"), digest=digest_of(b"sources")),
                engine=engine,
                state=state,
                environment={},
                report=lambda _: None,
            ),
            **changed,  # type: ignore[arg-type]
        )

    return make


def publish(engine: FakeImageEngine, image: TestImage, name: str = NAME) -> Digest:
    """Put an image at a registry, under a tag and its digest."""
    archive = docker_archive(image)
    digest = digest_of(b"manifest of " + archive)
    remote = RemoteImage(digest=digest, platforms=(f"linux/{image.architecture}",))
    repository = name.rpartition(":")[0]
    engine.registry.update({name: remote, f"{repository}@{digest}": remote})
    engine.stored[digest] = archive
    return digest


def assert_nothing_is_left(
    state: StateFolder,
    engine: FakeImageEngine,
    *,
    names: set[str] = frozenset(),  # type: ignore[assignment]
) -> None:
    assert set(engine.images) == {FAKE_IMAGE}
    assert engine.builds == {}
    assert set(engine.names) == names
    assert list(state.images.glob("work-*")) == []
    assert not state.images_lock.exists()


def test_an_archive_becomes_an_image_with_our_init_and_our_config(
    add: Add, engine: FakeImageEngine, state: StateFolder
) -> None:
    said: list[str] = []
    locked = add_image(add(report=said.append), added_on=NOW)
    image = locked.image
    assert read_lock(state.images_lock) == {"app": locked}
    assert engine.names == {"harness/app:latest": image.image_id}
    assert hash_image(engine, image) > 0
    assert check_locked_init(engine, locked, state) == digest_of(INIT) == locked.init
    saved = json.loads(
        next(
            line
            for line in engine.archives[image.image_id].split(b"\0")
            if line.startswith(b'{"architecture"')
        )
    )
    assert saved["config"] == {
        "Labels": {"harness.image": "app", "harness.definition": image.definition}
    }
    assert saved["rootfs"]["diff_ids"][:-1] == [digest_of(APP.layers[0])]
    assert any("left out of its config: Entrypoint" in line for line in said)
    assert engine.builds == {}
    assert list(state.images.glob("work-*")) == []


def test_it_says_where_an_archive_came_from(add: Add, tmp_path: Path) -> None:
    origin = add_image(add(), added_on=NOW).origin
    assert origin
    data = (tmp_path / "app.tar").read_bytes()
    assert (origin.kind, origin.reference) == ("archive", "app.tar")
    assert (origin.digest, origin.content) == (digest_of(data), APP.image_id)


def test_the_same_image_has_the_same_id_from_anywhere(add: Add, engine: FakeImageEngine) -> None:
    publish(engine, APP)
    archive = add_image(add(), added_on=NOW)
    registry = add_image(add(NAME), added_on=LATER)
    assert registry == archive  # nothing is new: the line stays as it is
    other = add_image(add(NAME, name="other"), added_on=LATER)
    assert other.image.image_id != archive.image.image_id  # the name is part of it


def test_an_image_that_the_engine_lost_is_added_again(add: Add, engine: FakeImageEngine) -> None:
    first = add_image(add(), added_on=NOW)
    engine.remove_image(first.image.image_id)
    again = add_image(add(), added_on=LATER)
    assert again.image == first.image
    assert check_image(engine, again.image).image_id == first.image.image_id


def test_an_image_of_the_engine_is_taken_by_name_or_id(add: Add, engine: FakeImageEngine) -> None:
    engine.load_image([docker_archive(APP)])
    engine.names["app:1"] = Digest(APP.image_id)
    by_name = add_image(add("app:1"), added_on=NOW)
    assert by_name.origin
    assert (by_name.origin.kind, by_name.origin.digest) == ("engine", APP.image_id)
    by_id = add_image(add(APP.image_id), added_on=LATER)
    assert by_id == by_name
    assert APP.image_id in engine.images  # it was there before, and stays


def test_an_id_that_the_engine_does_not_have_is_no_registrys(
    add: Add, engine: FakeImageEngine, state: StateFolder
) -> None:
    with pytest.raises(ImageMissingError, match="the engine does not have it"):
        add_image(add(APP.image_id), added_on=NOW)
    assert "resolve" not in engine.calls
    assert_nothing_is_left(state, engine)


# ---- registries ----


def test_a_tag_is_resolved_fetched_by_digest_and_both_are_locked(
    add: Add, engine: FakeImageEngine
) -> None:
    digest = publish(engine, APP)
    locked = add_image(add(NAME), added_on=NOW)
    assert locked.origin
    assert (locked.origin.reference, locked.origin.digest) == (NAME, digest)
    assert locked.origin.content == APP.image_id
    assert set(engine.images) == {FAKE_IMAGE, locked.image.image_id}  # the fetched one is gone
    assert set(engine.names) == {"harness/app:latest"}


def test_an_image_that_was_fetched_before_stays(add: Add, engine: FakeImageEngine) -> None:
    digest = publish(engine, APP)
    engine.load_image([docker_archive(APP)])
    engine.names[f"127.0.0.1:5000/app@{digest}"] = Digest(APP.image_id)
    add_image(add(NAME), added_on=NOW)
    assert APP.image_id in engine.images


def test_a_moved_tag_is_refused_and_says_what_moved(
    add: Add, engine: FakeImageEngine, state: StateFolder
) -> None:
    old = publish(engine, APP)
    locked = add_image(add(NAME), added_on=NOW)
    new = publish(engine, MOVED)
    before = state.images_lock.read_bytes()
    pulls = engine.calls.count("pull")
    with pytest.raises(VerificationError, match=f"expected the locked {old}, got {new}") as caught:
        add_image(add(NAME), added_on=LATER)
    assert "--replace" in caught.value.hint
    assert state.images_lock.read_bytes() == before
    assert engine.calls.count("pull") == pulls
    assert check_image(engine, locked.image).image_id == locked.image.image_id
    replaced = add_image(add(NAME, replace=True), added_on=LATER)
    assert replaced.origin
    assert replaced.origin.digest == new


def test_a_digest_of_another_repository_is_refused(
    add: Add, engine: FakeImageEngine, state: StateFolder
) -> None:
    digest = publish(engine, APP)
    with pytest.raises(AcquisitionError, match="manifest unknown"):
        add_image(add(f"127.0.0.1:5000/other@{digest}"), added_on=NOW)
    assert_nothing_is_left(state, engine)


def test_a_registry_that_answers_with_another_digest_is_refused(
    add: Add, engine: FakeImageEngine, state: StateFolder
) -> None:
    asked, got = publish(engine, APP), digest_of(b"another")
    name = f"127.0.0.1:5000/app@{asked}"
    engine.registry[name] = RemoteImage(digest=got, platforms=("linux/amd64",))
    with pytest.raises(VerificationError, match=f"expected {asked}, got {got}"):
        add_image(add(name), added_on=NOW)
    assert_nothing_is_left(state, engine)


@pytest.mark.parametrize("call", ["resolve", "pull"])
def test_a_registry_that_is_down_leaves_nothing(
    add: Add, engine: FakeImageEngine, state: StateFolder, call: str
) -> None:
    publish(engine, APP)
    engine.failing[call] = AcquisitionError("registry: connection refused")
    with pytest.raises(AcquisitionError, match="connection refused"):
        add_image(add(NAME), added_on=NOW)
    assert_nothing_is_left(state, engine)


def test_a_registry_that_is_down_names_the_id_of_what_the_engine_has(
    add: Add, engine: FakeImageEngine
) -> None:
    engine.load_image([docker_archive(APP)])
    engine.names[NAME] = Digest(APP.image_id)
    with pytest.raises(AcquisitionError) as caught:
        add_image(add(NAME), added_on=NOW)
    assert APP.image_id in caught.value.hint


def test_another_platform_is_refused_before_it_is_fetched(
    add: Add, engine: FakeImageEngine, state: StateFolder, tmp_path: Path
) -> None:
    publish(engine, ARM)
    with pytest.raises(InputError, match=r"expected linux/amd64.*'linux/arm64'"):
        add_image(add(NAME), added_on=NOW)
    assert "pull" not in engine.calls
    (tmp_path / "arm.tar").write_bytes(docker_archive(ARM))
    with pytest.raises(InputError, match=r"expected an image for linux/amd64.*'linux/arm64'"):
        add_image(add(str(tmp_path / "arm.tar")), added_on=NOW)
    assert_nothing_is_left(state, engine)


def test_a_registry_whose_config_is_of_another_platform_than_it_said_is_refused(
    add: Add, engine: FakeImageEngine, state: StateFolder
) -> None:
    digest = publish(engine, ARM)
    engine.registry[NAME] = RemoteImage(digest=digest, platforms=("linux/amd64",))
    with pytest.raises(InputError, match="expected an image for linux/amd64"):
        add_image(add(NAME), added_on=NOW)
    assert_nothing_is_left(state, engine)


# ---- names, failures ----


def test_a_name_that_means_another_image_keeps_its_meaning(
    add: Add, state: StateFolder, tmp_path: Path
) -> None:
    first = add_image(add(), added_on=NOW)
    before = state.images_lock.read_bytes()
    (tmp_path / "moved.tar").write_bytes(docker_archive(MOVED))
    other = add(str(tmp_path / "moved.tar"))
    with pytest.raises(InputError, match=f"is locked to {first.image.image_id}, from archive"):
        add_image(other, added_on=LATER)
    assert state.images_lock.read_bytes() == before
    replaced = add_image(dataclasses.replace(other, replace=True), added_on=LATER)
    assert read_lock(state.images_lock) == {"app": replaced}


@pytest.mark.parametrize("call", ["load_image", "create_build_container", "start", "tag"])
def test_an_engine_that_refuses_leaves_nothing(
    add: Add, engine: FakeImageEngine, state: StateFolder, call: str
) -> None:
    engine.failing[call] = SandboxUnavailableError("engine: refused")
    with pytest.raises(SandboxUnavailableError, match="refused"):
        add_image(add(), added_on=NOW)
    assert_nothing_is_left(state, engine)


def test_an_image_whose_init_does_not_start_is_refused(
    add: Add, engine: FakeImageEngine, state: StateFolder
) -> None:
    engine.program = lambda *_: (127, {})
    with pytest.raises(SandboxUnavailableError, match="start of init: expected exit 64, got 127"):
        add_image(add(), added_on=NOW)
    assert_nothing_is_left(state, engine)


def test_an_engine_that_shows_another_init_is_refused(
    add: Add, engine: FakeImageEngine, state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(add_module, "init_inside", lambda *_: digest_of(b"evil"))
    with pytest.raises(VerificationError, match="image app: init: expected sha256"):
        add_image(add(), added_on=NOW)
    assert_nothing_is_left(state, engine)


def test_an_interrupt_leaves_nothing(add: Add, engine: FakeImageEngine, state: StateFolder) -> None:
    def interrupted(*_: object) -> tuple[int, dict[str, bytes]]:
        raise KeyboardInterrupt

    engine.program = interrupted
    publish(engine, APP)
    with pytest.raises(KeyboardInterrupt):
        add_image(add(NAME), added_on=NOW)
    assert_nothing_is_left(state, engine)


@pytest.mark.fault("L090")
def test_a_disk_that_fills_up_leaves_nothing(
    add: Add, engine: FakeImageEngine, state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acquire, "MIN_FREE_BYTES", 1 << 62)
    with pytest.raises(StateError, match="to stay free"):
        add_image(add(), added_on=NOW)
    assert_nothing_is_left(state, engine)


def test_an_addition_waits_for_no_build(add: Add, state: StateFolder) -> None:
    with (
        hold_lock(state.images / "lock", wait_seconds=0, busy="busy"),
        pytest.raises(StateError, match="another build is at work"),
    ):
        add_image(add(), added_on=NOW)


def test_an_init_that_was_changed_in_the_engine_is_found(
    add: Add, engine: FakeImageEngine, state: StateFolder
) -> None:
    locked = add_image(add(), added_on=NOW)
    archive = engine.archives[locked.image.image_id]
    engine.archives[locked.image.image_id] = archive.replace(INIT, b"bad init")
    with pytest.raises(VerificationError, match="layer 2 of 2"):
        hash_image(engine, locked.image)
    with pytest.raises(VerificationError, match=f"init: expected {digest_of(INIT)}, got"):
        check_locked_init(engine, locked, state)


def test_a_cut_archive_leaves_nothing(
    add: Add, engine: FakeImageEngine, state: StateFolder, tmp_path: Path
) -> None:
    whole = (tmp_path / "app.tar").read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[: len(whole.rstrip(b"\0")) - 600])
    with pytest.raises(HarnessError):
        add_image(add(str(tmp_path / "cut.tar")), added_on=NOW)
    assert_nothing_is_left(state, engine)
