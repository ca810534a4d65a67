"""Images added from Debian's registry, an engine and archives; through the command line, for real.

The images are tiny: our own init, taken from the worker image, is also their program.
"""

from __future__ import annotations

import dataclasses
import io
import socket
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.errors import AcquisitionError
from harness.execution.engine.docker_registry import DockerRegistryEngine
from harness.execution.image.cache import store_layer
from harness.execution.image.compare import compare_images
from harness.execution.image.definition import load_init
from harness.execution.image.init_binary import init_key
from harness.execution.image.lock import LockedImage, read_lock
from harness.execution.image.offline import look_inside
from harness.flows.session import open_host
from harness.model.digest import Digest
from harness.store.resources import find_resources
from harness.store.state import StateFolder, open_state
from tests.e2e.described import require_described
from tests.e2e.driver import Done, borrowed_environment, run_here
from tests.fakes.bench import Bench, real_engine, real_image
from tests.fakes.debian_registry import DebianRegistry, debian_registry
from tests.fakes.image_archives import HOSTILE_CONFIG, Entry, TestImage, docker_archive, layer

pytestmark = pytest.mark.docker

_HOSTILE: tuple[Entry, ...] = (
    ("evil", None),
    ("evil/init", b"#!/evil\n"),
    (".harness", "evil"),
    ("workspace", "/evil"),
    ("home", b"no folder"),
    ("tmp", "evil"),
)
"""An init of its own behind a symlink, and no folder where a worker's folders are mounted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A state folder of its own, an engine, and the program that images here are made of."""

    engine: DockerRegistryEngine
    state: StateFolder
    folder: Path
    init: bytes
    architecture: str

    def image(self, name: str, *entries: Entry, hostile: bool = False) -> TestImage:
        """Return an image with the program in it; another name makes another image."""
        return TestImage(
            name=f"{name}:1",
            layers=[layer(("prog", self.init), (f"{name}.txt", b"name"), *entries)],
            architecture=self.architecture,
            settings=HOSTILE_CONFIG if hostile else None,
        )

    def load(self, image: TestImage) -> Digest:
        self.engine.load_image([docker_archive(image)])
        return Digest(image.image_id)

    def harness(self, *words: str, code: int = 0) -> Done:
        """Run one command; its JSON, or its error, is as its schema says."""
        environment = {
            "HARNESS_STATE": str(self.state.root),
            "DOCKER_HOST": self.engine.url,
            "HOME": str(self.folder),
        }
        with borrowed_environment(environment, self.folder):
            done = run_here(*words)
        assert done.code == code, f"{words}: {done.code}\n{done.out}\n{done.err}"
        require_described(words, done.out, done.err)
        return done

    def locked(self, name: str) -> LockedImage:
        return read_lock(self.state.images_lock)[name]

    def refused(self, *words: str, code: int, says: str) -> Done:
        """Run a command that must be refused: what it says, and that nothing was written."""
        names = self._there()
        lock = self.state.images_lock
        before = lock.read_bytes() if lock.exists() else b""
        done = self.harness(*words, code=code)
        assert says in done.err
        assert done.out == ""
        assert (lock.read_bytes() if lock.exists() else b"") == before
        assert self._there() == names
        assert list(self.state.images.glob("work-*")) == []
        return done

    def _there(self) -> list[Digest]:
        return [
            info.image_id
            for info in self.engine.list_images("harness.image")
            if any(name.startswith("harness/added-") for name in info.names)
        ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    source = real_engine()
    engine = DockerRegistryEngine(source.url)
    source.close()
    folder = tmp_path_factory.mktemp("added")
    state = open_state(folder / "state")
    shown = look_inside(engine, real_image(), ".harness/init", limit=1 << 24, state=state)
    with tarfile.open(fileobj=io.BytesIO(shown)) as archive:
        content = archive.extractfile("init")
        assert content is not None
        init = content.read()
    architecture = engine.info().architecture
    key = init_key(load_init(find_resources("images")), architecture)
    store_layer(state, "init", key, lambda sink: sink.write(init))
    made = Place(engine=engine, state=state, folder=folder, init=init, architecture=architecture)
    yield made
    for locked in read_lock(state.images_lock).values():
        engine.remove_image(locked.image.image_id)
    engine.close()


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebianRegistry]:
    with debian_registry(tmp_path_factory.mktemp("registry")) as started:
        yield started


# ---- a registry ----


def test_a_hostile_image_of_a_registry_becomes_a_plain_worker(
    place: Place, registry: DebianRegistry, tmp_path: Path
) -> None:
    image = place.image("hostile", *_HOSTILE, hostile=True)
    digest = registry.publish(image, "team/hostile", "1")
    name = f"{registry.host}/team/hostile:1"
    done = place.harness("image", "add", "added-hostile", name)
    assert "left out of its config: Entrypoint, Cmd, User" in done.err
    locked = place.locked("added-hostile")
    assert locked.origin
    assert (locked.origin.reference, locked.origin.digest) == (name, digest)
    assert locked.origin.content == image.image_id
    assert place.engine.find_image(f"{registry.host}/team/hostile@{digest}") is None
    info = place.engine.image(locked.image.image_id)
    assert info.env == ()
    assert set(info.labels) == {"harness.image", "harness.definition"}

    bench = Bench(place.engine, locked.image.image_id, tmp_path, real=True)
    ran = bench.run_operation(bench.operation(("/prog", "--hold-ms", "none")))
    assert (ran.outcome.kind, ran.outcome.code) == ("failed", 64)
    assert ran.err == b"init: expected a number\n"
    verified = place.harness("image", "verify", "added-hostile", "--source", "--json").json()
    assert verified["init"] == locked.init
    entry = open_host({"HARNESS_STATE": str(place.state.root)}).ledger.entries()[-1]
    assert (entry.verb, entry.body["source"]) == ("add", locked.origin.to_json())


@pytest.mark.fault("L096")
def test_a_moved_tag_is_refused_and_the_lock_still_names_the_old_digest(
    place: Place, registry: DebianRegistry
) -> None:
    name = f"{registry.host}/moving:1"
    old = registry.publish(place.image("moving"), "moving", "1")
    place.harness("image", "add", "added-moving", name)
    new = registry.publish(place.image("moving", ("more", b"more")), "moving", "1")
    says = f"{name}: expected the locked {old}, got {new}: the tag was moved"
    place.refused("image", "add", "added-moving", name, code=3, says=says)
    place.refused("image", "verify", "added-moving", "--source", "--json", code=3, says=says)
    place.harness("image", "verify", "added-moving")
    before = place.locked("added-moving").image.image_id
    moved = place.harness("image", "add", "added-moving", name, "--replace", "--json").json()
    assert moved["source"]["digest"] == new
    place.engine.remove_image(before)


def test_a_digest_is_fetched_from_its_own_repository_only(
    place: Place, registry: DebianRegistry
) -> None:
    digest = registry.publish(place.image("mine"), "mine", "1")
    registry.publish(place.image("theirs"), "theirs", "1")
    words = ("image", "add", "added-digest")
    place.refused(*words, f"{registry.host}/theirs@{digest}", code=7, says="manifest unknown")
    place.harness(*words, f"{registry.host}/mine@{digest}")
    # Also where the engine has the very image by now, and every byte of it.
    other = ("image", "add", "added-other")
    place.refused(*other, f"{registry.host}/theirs@{digest}", code=7, says="manifest unknown")


def test_what_a_registry_does_not_have_is_refused(place: Place, registry: DebianRegistry) -> None:
    name = f"{registry.host}/nothing:1"
    place.refused("image", "add", "added-nothing", name, "--json", code=7, says="manifest unknown")


def test_a_registry_that_is_down_is_an_acquisition_error(place: Place, tmp_path: Path) -> None:
    with debian_registry(tmp_path) as registry:
        name = f"{registry.host}/down:1"
        registry.publish(place.image("down"), "down", "1")
        place.harness("image", "add", "added-down", name)
        registry.stop()
        says = f"registry: {name}: "
        place.refused("image", "add", "added-down", name, code=7, says=says)
        place.refused("image", "verify", "added-down", "--source", code=7, says=says)
        place.harness("image", "verify", "added-down")


def test_a_registry_that_says_nothing_is_blamed_and_not_the_engine(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        name = f"127.0.0.1:{silent.getsockname()[1]}/silent:1"
        hasty = DockerRegistryEngine(place.engine.url, seconds=2)
        with pytest.raises(AcquisitionError, match=f"registry: {name}: no answer in time"):
            hasty.resolve(name)
        hasty.close()


def test_the_engines_platform_is_taken_of_several(place: Place, registry: DebianRegistry) -> None:
    images = [foreign(place, "wide"), place.image("wide")]
    index = registry.publish_index(images, "wide", "1")
    place.harness("image", "add", "added-wide", f"{registry.host}/wide:1")
    origin = place.locked("added-wide").origin
    assert origin
    assert (origin.digest, origin.content) == (index, images[1].image_id)


@pytest.mark.parametrize("docker", [False, True])
def test_another_platform_is_refused(place: Place, registry: DebianRegistry, docker: bool) -> None:
    image = foreign(place, "foreign")
    digest = registry.publish(image, "foreign", "1", docker=docker)
    name = f"{registry.host}/foreign:1"
    says = f"linux/{place.architecture}, the engine's platform, got 'linux/{image.architecture}'"
    place.refused("image", "add", "added-foreign", name, code=2, says=says)
    assert place.engine.find_image(f"{registry.host}/foreign@{digest}") is None


def foreign(place: Place, name: str) -> TestImage:
    """Return an image of the platform that the engine is not."""
    other = "arm64" if place.architecture == "amd64" else "amd64"
    return dataclasses.replace(place.image(name, (other, b"")), architecture=other)


# ---- the engine, archives ----


def test_an_image_of_the_engine_and_its_archive_give_one_id(place: Place) -> None:
    image = place.image("local", *_HOSTILE, hostile=True)
    image_id = place.load(image)
    place.engine.tag(image_id, "added-source:1")
    try:
        place.harness("image", "add", "added-local", "added-source:1")
        by_name = place.locked("added-local")
        (place.folder / "local.tar").write_bytes(b"".join(place.engine.save_image(image_id)))
        place.harness("image", "verify", "added-local", "--source")
        place.engine.untag("added-source:1")
        place.refused(
            *("image", "verify", "added-local", "--source"),
            code=6,
            says="the engine has no added-source:1 any more",
        )
    finally:
        place.engine.remove_image(image_id)
    place.harness("image", "add", "added-local", "./local.tar")
    assert place.locked("added-local") == by_name
    listed = place.harness("image", "list", "--json").json()
    (line,) = (item for item in listed if item["name"] == "added-local")
    assert (line["platform"], line["present"]) == (f"linux/{place.architecture}", True)
    assert line["source"]["kind"] == "engine"


def test_an_image_of_ours_can_be_brought_from_another_host(place: Place) -> None:
    """It has an init of its own already; ours is laid over it, and the id is another one."""
    place.harness("image", "add", "added-first", _archive(place, "first"))
    first = place.locked("added-first").image.image_id
    (place.folder / "ours.tar").write_bytes(b"".join(place.engine.save_image(first)))
    place.harness("image", "add", "added-second", "./ours.tar")
    assert place.locked("added-second").init == place.locked("added-first").init


def test_a_bad_archive_leaves_nothing(place: Place) -> None:
    whole = docker_archive(place.image("whole"))
    cases = {
        "climbing.tar": (layer(("../evil", b"evil")), "expected names inside it, got '../evil'"),
        "cut.tar": (whole[: len(whole) // 2], "is not a whole tar archive"),
        "text.tar": (b"no image\n" * 200, "is not a whole tar archive"),
        "several.tar": (
            docker_archive(place.image("one"), place.image("two")),
            "expected one image, got 2; say which with --image",
        ),
    }
    for name, (data, says) in cases.items():
        (place.folder / name).write_bytes(data)
        place.refused("image", "add", "added-bad", f"./{name}", code=2, says=says)
    place.harness("image", "add", "added-two", "./several.tar", "--image", "two:1")


def test_a_name_of_a_definition_and_a_name_that_is_taken_are_refused(place: Place) -> None:
    archive = _archive(place, "taken")
    place.refused("image", "add", "python", archive, code=2, says="has a definition of this name")
    place.refused("image", "add", "Bad/Name", archive, code=2, says="image name: expected")
    place.harness("image", "add", "added-taken", archive)
    other = _archive(place, "other")
    place.refused("image", "add", "added-taken", other, code=2, says="is locked to sha256:")


def test_a_changed_package_is_named_by_comparing_two_images(place: Place, tmp_path: Path) -> None:
    def debian(version: bytes) -> TestImage:
        status = b"Package: git\nStatus: install ok installed\nVersion: " + version + b"\n"
        owned = ("var/lib/dpkg/info/git.list", b"/usr/bin/git\n")
        program = ("usr/bin/git", b"git " + version)
        return place.image("debian", ("var/lib/dpkg/status", status), owned, program)

    before, after = place.load(debian(b"1:2.39.2-1")), place.load(debian(b"1:2.39.5-0"))
    try:
        found = compare_images(place.engine, before, after, tmp_path)
    finally:
        place.engine.remove_image(before)
        place.engine.remove_image(after)
    assert [str(change) for change in found.packages] == ["git 1:2.39.2-1 -> 1:2.39.5-0"]
    assert found.files == ()


def _archive(place: Place, name: str) -> str:
    (place.folder / f"{name}.tar").write_bytes(docker_archive(place.image(name)))
    return f"./{name}.tar"
