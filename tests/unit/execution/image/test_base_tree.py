from __future__ import annotations

from pathlib import Path

import pytest

from harness.execution.image.base import BaseSpec, base_layer
from harness.execution.image.contents import image_contents
from harness.execution.image.workshop import Workshop
from harness.model.digest import digest_of
from harness.store.state import StateFolder, open_state
from tests.fakes.debian_tree import INIT, DebianArchive

SPEC = BaseSpec(suite="bookworm", packages=("tool",), architecture="amd64", init=digest_of(INIT))


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> DebianArchive:
    return DebianArchive(monkeypatch)


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return open_state(tmp_path / "state")


def shop(folder: Path) -> Workshop:
    folder.mkdir()
    return Workshop(
        folder=folder, log=folder / "log", environment={}, mirror="", report=lambda _: None
    )


def test_what_depends_on_time_and_host_does_not_get_into_the_layer(
    archive: DebianArchive, state: StateFolder, tmp_path: Path
) -> None:
    first = base_layer(SPEC, INIT, state, shop(tmp_path / "one"))
    archive.day = "20365"
    again = base_layer(SPEC, INIT, state, shop(tmp_path / "two"), fresh=True)
    assert archive.made == 2
    assert again.digest == first.digest
    files = image_contents((first,), "base").files
    assert files[".harness/init"].startswith("0 555 0:0 ")
    assert files["usr/bin/tool"].startswith("0 755 0:0 ")  # no set-id bit
    assert files["home/worker"].startswith("5 700 0:0")
    assert "usr/share/doc/tool/copyright" in files
    gone = {
        *("etc/resolv.conf", "var/log/dpkg.log", "var/cache/apt", "var/lib/dpkg/status-old"),
        *("usr/share/doc/tool/changelog", "dev/null"),
    }
    assert gone & set(files) == set()


def test_a_cached_base_is_taken_unless_a_fresh_one_is_asked_for(
    archive: DebianArchive, state: StateFolder, tmp_path: Path
) -> None:
    first = base_layer(SPEC, INIT, state, shop(tmp_path / "one"))
    archive.version = "1.1"
    assert base_layer(SPEC, INIT, state, shop(tmp_path / "two")).digest == first.digest
    fresh = base_layer(SPEC, INIT, state, shop(tmp_path / "three"), fresh=True)
    assert fresh.digest != first.digest
    assert base_layer(SPEC, INIT, state, shop(tmp_path / "four")).digest == fresh.digest
    assert archive.made == 2
