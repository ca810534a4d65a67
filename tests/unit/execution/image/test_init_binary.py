from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import SandboxUnavailableError
from harness.execution.image import init_binary as module
from harness.execution.image.cache import store_layer
from harness.execution.image.definition import InitSource
from harness.execution.image.init_binary import init_binary, init_key, is_static_program
from harness.execution.image.workshop import Workshop
from harness.model.digest import digest_of
from harness.store.state import StateFolder, open_state

SOURCE = InitSource(file=Path("init.c"), digest=digest_of(b"sources"))


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    """Give the state folder of a plain user on a host without a compiler."""
    state = open_state(tmp_path / "state")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(module, "find_program", lambda _: None)
    return state


def make(state: StateFolder, *, fresh: bool = False) -> bytes:
    shop = Workshop(
        folder=state.root, log=state.root / "log", environment={}, mirror="", report=lambda _: None
    )
    return init_binary(SOURCE, architecture="amd64", state=state, shop=shop, fresh=fresh)


def test_a_plain_user_without_a_compiler_is_told_what_to_ask_for(state: StateFolder) -> None:
    with pytest.raises(SandboxUnavailableError, match="expected user 0, or a gcc") as caught:
        make(state)
    assert "ask an administrator for gcc and libc6-dev" in caught.value.hint
    assert list(state.images.glob("init-*")) == []


def test_a_cached_program_needs_no_compiler_unless_a_fresh_one_is_asked_for(
    state: StateFolder,
) -> None:
    store_layer(state, "init", init_key(SOURCE, "amd64"), lambda sink: sink.write(b"init"))
    assert make(state) == b"init"
    with pytest.raises(SandboxUnavailableError):
        make(state, fresh=True)


def test_other_sources_another_platform_and_another_compiler_have_other_keys(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    del state
    other = InitSource(file=SOURCE.file, digest=digest_of(b"other"))
    keys = {init_key(SOURCE, "amd64"), init_key(SOURCE, "arm64"), init_key(other, "amd64")}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert len({*keys, init_key(SOURCE, "amd64")}) == 4


def elf(*kinds: int) -> bytes:
    """Return the head of a 64-bit ELF program with segments of some kinds."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    head[32:40] = (64).to_bytes(8, "little")
    head[54:58] = (56).to_bytes(2, "little") + len(kinds).to_bytes(2, "little")
    return bytes(head) + b"".join(kind.to_bytes(4, "little") + bytes(52) for kind in kinds)


def test_only_a_static_program_can_be_init() -> None:
    assert is_static_program(elf(1, 1, 2))
    assert not is_static_program(elf(1, 3))  # asks for a dynamic loader
    assert not is_static_program(elf())
    assert not is_static_program(elf(1)[:66])
    assert not is_static_program(b"#!/bin/sh\n")
    assert not is_static_program(b"")
