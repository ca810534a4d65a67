"""Docker contexts, as the docker command keeps them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.execution.engine.tls import TlsFiles
from harness.execution.host.contexts import read_context
from harness.execution.host.find import SYSTEM_SOCKET, engine_candidates
from harness.store.state import StateFolder


def make_context(config: Path, name: str, *, tls: bool = False, **endpoint: object) -> Path:
    """Write a context as `docker context create` does; return its TLS folder."""
    digits = hashlib.sha256(name.encode()).hexdigest()
    meta = config / "contexts" / "meta" / digits
    meta.mkdir(parents=True)
    value = {"Name": name, "Metadata": {}, "Endpoints": {"docker": endpoint}}
    (meta / "meta.json").write_text(json.dumps(value))
    keys = config / "contexts" / "tls" / digits / "docker"
    if tls:
        keys.mkdir(parents=True)
        for file in ("ca.pem", "cert.pem", "key.pem"):
            (keys / file).write_text("PEM")
    return keys


def choose(config: Path, name: str) -> None:
    config.mkdir(exist_ok=True)
    (config / "config.json").write_text(json.dumps({"currentContext": name}))


def test_the_current_context_is_the_engine_with_its_certificates(tmp_path: Path) -> None:
    config = tmp_path / ".docker"
    keys = make_context(config, "far", tls=True, Host="tcp://10.0.0.1:2376", SkipTLSVerify=False)
    choose(config, "far")
    (found,) = engine_candidates({"HOME": str(tmp_path)}, StateFolder(tmp_path))
    assert (found.url, found.origin) == ("tcp://10.0.0.1:2376", "Docker context far")
    assert found.tls == TlsFiles(ca=keys / "ca.pem", cert=keys / "cert.pem", key=keys / "key.pem")


def test_docker_context_comes_before_the_current_one_and_docker_host_before_both(
    tmp_path: Path,
) -> None:
    make_context(tmp_path, "one", Host="unix:///one.sock")
    make_context(tmp_path, "two", Host="unix:///two.sock")
    choose(tmp_path, "one")
    environment = {"DOCKER_CONFIG": str(tmp_path)}
    state = StateFolder(tmp_path)
    assert engine_candidates(environment, state)[0].url == "unix:///one.sock"
    environment["DOCKER_CONTEXT"] = "two"
    assert engine_candidates(environment, state)[0].url == "unix:///two.sock"
    environment["DOCKER_HOST"] = "unix:///three.sock"
    assert engine_candidates(environment, state)[0].url == "unix:///three.sock"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"currentContext": 3}', '{"currentContext": ""}'])
def test_a_configuration_that_chooses_nothing_leaves_the_choice_to_us(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "config.json").write_text(text)
    environment = {"DOCKER_CONFIG": str(tmp_path)}
    assert read_context(environment) is None
    assert engine_candidates(environment, StateFolder(tmp_path))[0].url == SYSTEM_SOCKET
    assert read_context({**environment, "DOCKER_CONTEXT": "default"}) is None
    assert read_context({}) is None


def test_a_context_that_is_not_there_is_refused_and_nothing_takes_its_place(tmp_path: Path) -> None:
    choose(tmp_path, "gone")
    with pytest.raises(InputError, match="docker context 'gone': can't be read") as caught:
        engine_candidates({"DOCKER_CONFIG": str(tmp_path)}, StateFolder(tmp_path))
    assert "docker context ls" in caught.value.hint


@pytest.mark.parametrize("value", ["[]", "{}", '{"Endpoints": 3}', '{"Endpoints": {"docker": 3}}'])
def test_a_damaged_context_is_refused(tmp_path: Path, value: str) -> None:
    make_context(tmp_path, "bad")
    (meta,) = tmp_path.rglob("meta.json")
    meta.write_text(value)
    with pytest.raises(InputError, match="docker context 'bad': can't be read"):
        read_context({"DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": "bad"})


def test_a_context_that_verifies_nothing_is_refused(tmp_path: Path) -> None:
    make_context(tmp_path, "lax", tls=True, Host="tcp://10.0.0.1:2376", SkipTLSVerify=True)
    with pytest.raises(InputError, match="skips the verification"):
        read_context({"DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": "lax"})


def test_a_context_without_certificates_is_refused_for_another_host(tmp_path: Path) -> None:
    make_context(tmp_path, "open", Host="tcp://10.0.0.1:2375")
    environment = {"DOCKER_CONFIG": str(tmp_path), "DOCKER_CONTEXT": "open"}
    with pytest.raises(InputError, match="Docker context open: expected TLS to another host"):
        engine_candidates(environment, StateFolder(tmp_path))
