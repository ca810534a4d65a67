"""A worker image built whole on a real engine: reproducible, offline, and never half there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.execution.engine.docker_images import DockerImageEngine
from harness.execution.host.mounts import mounts_below
from harness.execution.image.archive import ImageSource, layer_of
from harness.execution.image.build import ImageBuild, build_image
from harness.execution.image.definition import load_definition
from harness.execution.image.lock import find_locked, read_lock, resolve_image
from harness.execution.image.offline import run_offline
from harness.execution.image.verify import check_image, check_locked_init, hash_image
from harness.model.digest import Digest
from harness.model.image import Image
from harness.store.resources import find_resources
from harness.store.state import StateFolder, find_state_root, open_state
from tests.fakes.bench import real_engine

pytestmark = [pytest.mark.docker, pytest.mark.root, pytest.mark.timeout(600)]

NOW = "2026-01-31T12:00:00.000Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What the module's one whole build gave."""

    build: ImageBuild
    image: Image
    images_before: frozenset[Digest]


def images_of(engine: DockerImageEngine) -> frozenset[Digest]:
    """Return the images of our name; other tests may add some of other names meanwhile."""
    return frozenset(info.image_id for info in engine.list_images("harness.image=python"))


def locked_on_this_host() -> dict[str, Image]:
    """Return what the state folder of this host has locked: never removed by these tests."""
    lock = StateFolder(find_state_root(os.environ)).images_lock
    return {name: locked.image for name, locked in read_lock(lock).items()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    engine = real_engine()
    before = images_of(engine)
    build = ImageBuild(
        definition=load_definition(find_resources("images"), "python"),
        engine=engine,
        state=open_state(tmp_path_factory.mktemp("build") / "state"),
        environment=os.environ,
        report=print,
    )
    image = build_image(build, built_on=NOW).image
    yield Built(build=build, image=image, images_before=before)
    if image.image_id not in before:
        engine.remove_image(image.image_id)
    engine.close()


def run(built: Built, *argv: str) -> str:
    """Run a program in the image, offline, and return what it printed."""
    log = built.build.state.root / "out.log"
    log.unlink(missing_ok=True)
    run_offline(
        built.build.engine,
        built.image.image_id,
        argv,
        what="look",
        state=built.build.state,
        log=log,
        seconds=60,
    )
    return log.read_text(encoding="utf-8").removeprefix("$ look\n")


def test_nothing_but_the_image_and_the_cached_base_is_left(built: Built) -> None:
    state, engine = built.build.state, built.build.engine
    assert isinstance(engine, DockerImageEngine)
    assert images_of(engine) - built.images_before <= {built.image.image_id}
    assert mounts_below(state.root) == ()
    kinds = {path.name.split("-")[0] for path in state.images.iterdir()}
    assert kinds == {"base", "build.log", "init", "lock", "minimal"}


def test_every_byte_of_it_is_what_its_id_says(built: Built) -> None:
    engine, state = built.build.engine, built.build.state
    assert hash_image(engine, built.image) > 100_000_000
    locked = find_locked(state.images_lock, "python")
    assert check_locked_init(engine, locked, state) == locked.init


def test_a_second_build_has_the_same_id(built: Built) -> None:
    again = build_image(built.build, built_on="2027-01-31T12:00:00.000Z").image
    assert again == built.image


def test_a_build_from_nothing_has_the_id_that_this_host_locked(built: Built) -> None:
    mine = locked_on_this_host().get("python")
    if mine is None or mine.definition != built.image.definition:
        pytest.skip("this host has not locked an image of the same definition")
    assert mine.image_id == built.image.image_id


@pytest.mark.fault("L096")
def test_retagging_the_name_changes_nothing(built: Built) -> None:
    state, engine = built.build.state, built.build.engine
    name = "harness/python:latest"
    empty = layer_of(bytes(10240))
    other = ImageSource(architecture="amd64", layers=(empty,), labels={"harness.test": "retag"})
    engine.load_image(other.archive())
    try:
        engine.tag(other.image_id, name)
        assert name in engine.image(other.image_id).names
        assert resolve_image(state.images_lock, "python") == built.image
        assert check_image(engine, built.image).names == ()
    finally:
        engine.tag(built.image.image_id, name)
        engine.remove_image(other.image_id)


def test_it_holds_what_recipes_need_and_no_compiler_or_pip(built: Built) -> None:
    code = (
        "import shutil, sys, pytest\n"
        "names = ('git', 'ruff', 'pytest', 'gcc', 'pip', 'pip3')\n"
        "print([name for name in names if shutil.which(name)], sys.version_info[:2])\n"
        "import importlib.util; print(importlib.util.find_spec('pip'))\n"
    )
    assert run(built, "python3", "-c", code) == "['git', 'ruff', 'pytest'] (3, 11)\nNone\n"


def test_init_is_static_root_owned_and_read_only(built: Built) -> None:
    code = (
        "import os, struct\n"
        "s = os.stat('/.harness/init'); print(oct(s.st_mode), s.st_uid, s.st_gid)\n"
        "d = open('/.harness/init', 'rb').read()\n"
        "start, = struct.unpack_from('<Q', d, 32); size, count = struct.unpack_from('<HH', d, 54)\n"
        "kinds = [struct.unpack_from('<I', d, start + i * size)[0] for i in range(count)]\n"
        "print(d[:5] == b'\\x7fELF\\x02', 1 in kinds, 3 in kinds)\n"
    )
    # elf(5): 64 bit, a segment to load (PT_LOAD 1), and no dynamic loader asked for (PT_INTERP 3)
    assert run(built, "python3", "-c", code) == "0o100555 0 0\nTrue True False\n"


def test_no_file_gains_rights_and_nothing_of_the_build_host_is_in_it(built: Built) -> None:
    code = (
        "import os\n"
        "for top, folders, files in os.walk('/usr'):\n"
        "    for name in files:\n"
        "        s = os.lstat(os.path.join(top, name))\n"
        "        if s.st_mode & 0o6000: print(name)\n"
        "        if s.st_mtime != 315532800: print(name, s.st_mtime)\n"
        "print(os.path.exists('/etc/apt/sources.list'))\n"
        "print(os.listdir('/var/log'), os.listdir('/root'))\n"
    )
    assert run(built, "python3", "-c", code) == "False\n[] []\n"


def test_byte_code_is_there_and_stays_valid(built: Built) -> None:
    code = (
        "import sys, importlib.util, pytest, json\n"
        "for module in (pytest, json):\n"
        "    data = open(module.__cached__, 'rb').read(8)\n"
        "    print(int.from_bytes(data[4:], 'little'))\n"
    )
    assert run(built, "python3", "-c", code) == "1\n1\n"


CACHED = "images/work-*/tree/var/cache/apt/archives/*.deb"
"""There once apt, in a tree with a mount below it, has fetched packages."""

FRESH = "images/work-*/minimal/var/cache/apt/archives/*.deb"
"""There once debootstrap has begun to fetch packages."""


@pytest.mark.parametrize(
    ("number", "sign"), [(signal.SIGINT, CACHED), (signal.SIGKILL, CACHED), (signal.SIGKILL, FRESH)]
)
def test_a_build_that_is_ended_leaves_no_mount_no_process_and_no_name(
    built: Built, tmp_path: Path, number: signal.Signals, sign: str
) -> None:
    state = open_state(tmp_path / "state")
    if sign == CACHED:
        share_all_but_the_base(built.build.state, state)
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from harness.execution.image.build import ImageBuild, build_image\n"
        "from harness.execution.image.definition import load_definition\n"
        "from harness.store.resources import find_resources\n"
        "from harness.store.state import open_state\n"
        "from tests.fakes.bench import real_engine\n"
        "build_image(ImageBuild(definition=load_definition(find_resources('images'), 'python'),\n"
        "    engine=real_engine(), state=open_state(Path(sys.argv[1])), environment=os.environ,\n"
        "    report=print), built_on='2026-01-31T12:00:00.000Z')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, state.root],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 120  # a hang, not a slow minute beside another worker
        while not list(state.root.glob(sign)):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        process.wait(30)
    assert process.returncode != 0
    assert mounts_below(state.root) == ()
    assert_no_process_names(state.root)
    assert not state.images_lock.exists()
    if number == signal.SIGINT:
        assert list(state.root.glob("images/work-*")) == []


def share_all_but_the_base(source: StateFolder, target: StateFolder) -> None:
    """Give a state folder what another one cached, so that a build begins with the packages."""
    for record in (*source.images.glob("minimal-*.json"), *source.images.glob("init-*.json")):
        (target.images / record.name).write_bytes(record.read_bytes())
        blob = source.blobs.path_of(json.loads(record.read_bytes())["layer"])
        beside = target.blobs.root / blob.relative_to(source.blobs.root)
        beside.parent.mkdir(parents=True, exist_ok=True)
        beside.hardlink_to(blob)


def assert_no_process_names(folder: Path) -> None:
    """Require that no process with a folder in its command line is left, after a moment to die."""
    mark = str(folder).encode()
    deadline = time.monotonic() + 5
    while left := [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark in _read(path)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
