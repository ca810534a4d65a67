from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.errors import (
    AcquisitionError,
    HarnessError,
    ImageMissingError,
    SandboxUnavailableError,
    StateError,
    VerificationError,
)
from harness.execution.engine.port import BuildSpec
from harness.execution.image import build as build_module
from harness.execution.image.base import BaseSpec
from harness.execution.image.build import ImageBuild, build_image
from harness.execution.image.cache import store_layer
from harness.execution.image.definition import load_definition
from harness.execution.image.layer import write_tree_layer
from harness.execution.image.lock import read_lock, resolve_image
from harness.execution.image.verify import check_image, hash_image, list_images
from harness.model.digest import digest_of
from harness.store.lock import hold_lock
from harness.store.resources import find_resources
from harness.store.state import StateFolder, open_state
from tests.fakes.engine import FAKE_IMAGE
from tests.fakes.image_engine import FakeImageEngine, Made, all_well

INIT = b"init"
NOW = "2026-01-31T12:00:00.000Z"


def download(requirements: tuple[Path, ...], folder: Path, **_: object) -> None:
    """Stand in for pip: one wheel whose bytes are the pinned lines."""
    folder.mkdir(exist_ok=True)
    (folder / "pip-1-py3-none-any.whl").write_bytes(requirements[1].read_bytes())


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    """Give a state folder whose base is cached, and a pip that needs no network."""
    state = open_state(tmp_path / "state")
    definition = load_definition(find_resources("images"), "python")
    spec = BaseSpec(
        suite=definition.file.suite,
        packages=definition.file.packages,
        architecture="amd64",
        init=digest_of(INIT),
    )
    tree = tmp_path / "tree"
    (tree / "usr").mkdir(parents=True)
    (tree / "usr" / "file").write_text("base")
    store_layer(state, "base", spec.key, lambda sink: write_tree_layer(tree, sink))
    monkeypatch.setattr(build_module, "init_binary", lambda *_, **__: INIT)
    monkeypatch.setattr(build_module, "download_wheels", download)
    return state


def make_build(state: StateFolder, engine: FakeImageEngine) -> ImageBuild:
    return ImageBuild(
        definition=load_definition(find_resources("images"), "python"),
        engine=engine,
        state=state,
        environment={},
        report=lambda _: None,
    )


def assert_nothing_is_left(state: StateFolder, engine: FakeImageEngine) -> None:
    assert set(engine.images) == {FAKE_IMAGE}
    assert engine.builds == {}
    assert engine.names == {}
    assert list(state.images.glob("work-*")) == []
    assert not state.images_lock.exists()


def test_a_build_gives_a_name_that_is_checked_and_hashed(state: StateFolder) -> None:
    engine = FakeImageEngine()
    locked = build_image(make_build(state, engine), built_on=NOW)
    image = resolve_image(state.images_lock, "python")
    assert image == locked.image
    assert engine.names == {"harness/python:latest": image.image_id}
    assert set(engine.images) == {FAKE_IMAGE, image.image_id}
    assert check_image(engine, image).labels["harness.definition"] == image.definition
    assert hash_image(engine, image) > 0
    assert engine.builds == {}
    assert list(state.images.glob("work-*")) == []


def test_the_same_build_gives_the_same_id_elsewhere(state: StateFolder) -> None:
    ids = set()
    for day in ("2026-01-31", "2027-01-31"):
        locked = build_image(make_build(state, FakeImageEngine()), built_on=f"{day}T12:00:00.000Z")
        ids.add(locked.image.image_id)
    assert len(ids) == 1


def test_the_container_gets_the_wheels_and_the_pinned_lines(state: StateFolder) -> None:
    seen: dict[str, bytes] = {}

    def look(spec: BuildSpec, files: Mapping[str, bytes]) -> tuple[int, Made]:
        seen.update(files)
        return all_well(spec, files)

    build_image(make_build(state, FakeImageEngine(look)), built_on=NOW)
    assert sorted(seen) == ["build/install.py", "build/lock", "build/wheels/pip-1-py3-none-any.whl"]
    assert b"pip==" not in seen["build/lock"]
    assert b"--hash=sha256:" in seen["build/lock"]


def fail_at(number: int) -> Callable[[BuildSpec, Mapping[str, bytes]], tuple[int, Made]]:
    calls = []

    def program(spec: BuildSpec, files: Mapping[str, bytes]) -> tuple[int, Made]:
        calls.append(spec)
        code, made = all_well(spec, files)
        return (7 if len(calls) == number else code), made

    return program


@pytest.mark.parametrize(
    ("number", "what"), [(1, "install of the wheels"), (2, "check of the image")]
)
def test_a_program_that_fails_leaves_no_name(state: StateFolder, number: int, what: str) -> None:
    engine = FakeImageEngine(fail_at(number))
    with pytest.raises(SandboxUnavailableError, match=f"{what}: expected exit 0, got 7") as caught:
        build_image(make_build(state, engine), built_on=NOW)
    assert "build.log" in caught.value.hint
    assert b"what the program printed" in (state.images / "build.log").read_bytes()
    assert_nothing_is_left(state, engine)


@pytest.mark.parametrize("call", ["load_image", "create_build_container", "copy_in", "start"])
def test_an_engine_that_refuses_leaves_no_name(state: StateFolder, call: str) -> None:
    engine = FakeImageEngine()
    engine.failing[call] = SandboxUnavailableError("engine: refused")
    with pytest.raises(SandboxUnavailableError, match="refused"):
        build_image(make_build(state, engine), built_on=NOW)
    assert_nothing_is_left(state, engine)


def test_a_name_that_can_not_be_tagged_is_not_locked(state: StateFolder) -> None:
    engine = FakeImageEngine()
    engine.failing["tag"] = SandboxUnavailableError("engine: refused")
    with pytest.raises(SandboxUnavailableError):
        build_image(make_build(state, engine), built_on=NOW)
    assert_nothing_is_left(state, engine)


@pytest.mark.parametrize("number", [1, 2])
def test_an_interrupt_leaves_no_name(state: StateFolder, number: int) -> None:
    calls = []

    def interrupted(spec: BuildSpec, files: Mapping[str, bytes]) -> tuple[int, Made]:
        calls.append(spec)
        if len(calls) == number:
            raise KeyboardInterrupt
        return all_well(spec, files)

    engine = FakeImageEngine(interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_image(make_build(state, engine), built_on=NOW)
    assert_nothing_is_left(state, engine)


def test_wheels_that_can_not_be_had_leave_no_name(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AcquisitionError("pip download: expected exit 0, got 1")

    monkeypatch.setattr(build_module, "download_wheels", refuse)
    engine = FakeImageEngine()
    with pytest.raises(AcquisitionError):
        build_image(make_build(state, engine), built_on=NOW)
    assert_nothing_is_left(state, engine)


def test_a_failed_rebuild_leaves_the_locked_image_usable(state: StateFolder) -> None:
    engine = FakeImageEngine()
    image = build_image(make_build(state, engine), built_on=NOW).image
    before = state.images_lock.read_bytes()
    engine.program = fail_at(2)
    with pytest.raises(SandboxUnavailableError):
        build_image(make_build(state, engine), built_on=NOW)
    assert state.images_lock.read_bytes() == before
    check_image(engine, image)


def test_two_builds_exclude_each_other(state: StateFolder) -> None:
    engine = FakeImageEngine()
    with (
        hold_lock(state.images / "lock", wait_seconds=0, busy="busy"),
        pytest.raises(StateError, match="another build is at work"),
    ):
        build_image(make_build(state, engine), built_on=NOW)
    assert engine.calls == ["info"]


def test_what_a_killed_build_left_is_cleared(state: StateFolder) -> None:
    (state.images / "work-dead" / "tree").mkdir(parents=True)
    build_image(make_build(state, FakeImageEngine()), built_on=NOW)
    assert not (state.images / "work-dead").exists()


def test_a_damaged_base_is_refused(state: StateFolder) -> None:
    (record,) = state.images.glob("base-*.json")
    record.write_bytes(record.read_bytes().replace(b'"size"', b'"sise"'))
    engine = FakeImageEngine()
    with pytest.raises(VerificationError, match="not as a build wrote it"):
        build_image(make_build(state, engine), built_on=NOW)
    assert_nothing_is_left(state, engine)


def test_a_base_whose_bytes_changed_is_refused(state: StateFolder) -> None:
    (blob,) = (path for path in state.blobs.root.glob("??/*") if path.is_file())
    blob.chmod(0o600)
    blob.write_bytes(blob.read_bytes().replace(b"base", b"evil"))
    engine = FakeImageEngine()
    with pytest.raises(VerificationError, match="another digest"):
        build_image(make_build(state, engine), built_on=NOW)
    assert_nothing_is_left(state, engine)


def test_retagging_a_name_changes_nothing(state: StateFolder) -> None:
    engine = FakeImageEngine()
    image = build_image(make_build(state, engine), built_on=NOW).image
    engine.tag(FAKE_IMAGE, "harness/python:latest")
    assert resolve_image(state.images_lock, "python") == image
    assert check_image(engine, image).image_id == image.image_id


def test_an_image_that_is_gone_is_listed_as_gone_and_refused(state: StateFolder) -> None:
    engine = FakeImageEngine()
    image = build_image(make_build(state, engine), built_on=NOW).image
    engine.remove_image(image.image_id)
    (status,) = list_images(engine, read_lock(state.images_lock))
    assert status.info is None
    assert status.locked.image == image
    for look in (check_image, hash_image):
        with pytest.raises(ImageMissingError):
            look(engine, image)


@pytest.mark.parametrize(
    ("member", "wrong", "message"),
    [("platform", "linux/arm64", "platform: expected"), ("name", "other", "name: expected other")],
)
def test_an_image_that_is_not_the_locked_one_is_refused(
    state: StateFolder, member: str, wrong: str, message: str
) -> None:
    engine = FakeImageEngine()
    image = build_image(make_build(state, engine), built_on=NOW).image
    changed = {"name": image.name, "platform": image.platform, member: wrong}
    other = type(image)(image_id=image.image_id, definition=image.definition, **changed)
    with pytest.raises(VerificationError, match=message):
        check_image(engine, other)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"base", b"evil", "layer 1 of 2"),
        (b'"os":"linux"', b'"os":"linuz"', "config has another digest"),
    ],
)
def test_bytes_that_the_engine_changed_are_found(
    state: StateFolder, old: bytes, new: bytes, message: str
) -> None:
    engine = FakeImageEngine()
    image = build_image(make_build(state, engine), built_on=NOW).image
    engine.archives[image.image_id] = engine.archives[image.image_id].replace(old, new)
    with pytest.raises(VerificationError, match=message):
        hash_image(engine, image)


def test_an_archive_that_is_cut_is_refused(state: StateFolder) -> None:
    engine = FakeImageEngine()
    image = build_image(make_build(state, engine), built_on=NOW).image
    engine.archives[image.image_id] = engine.archives[image.image_id][:900]
    with pytest.raises(HarnessError):
        hash_image(engine, image)
