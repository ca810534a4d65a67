"""An engine over TCP with TLS: how it is found, who is turned away, and the main job on it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import EngineUnreachableError
from harness.execution.engine.docker_images import DockerImageEngine
from harness.execution.engine.tls import TlsFiles
from harness.execution.host.find import find_engine
from harness.execution.host.ping import ping
from harness.execution.worker.strategy import REMOTE
from harness.execution.worker.sweep import state_id
from harness.store.state import StateFolder
from tests.e2e.driver import Bed
from tests.e2e.project import approve, make_project, recipe, run, seal, write
from tests.fakes.tls_engine import TlsEngine, tls_files

pytestmark = [pytest.mark.docker, pytest.mark.root]


def test_each_side_verifies_the_other(second_engine: TlsEngine) -> None:
    ours, url = second_engine.tls, second_engine.url
    strangers = tls_files(second_engine.strangers)
    assert ping(url, ours).answer == "answers"
    unknown_client = TlsFiles(ca=ours.ca, cert=strangers.cert, key=strangers.key)
    no_client = TlsFiles(ca=ours.ca, cert=None, key=None)
    unknown_engine = TlsFiles(ca=strangers.ca, cert=ours.cert, key=ours.key)
    for tls in (unknown_client, no_client, unknown_engine):
        assert ping(url, tls).answer == "unverified"
        with pytest.raises(EngineUnreachableError, match="engine: connect: no answer"):
            DockerImageEngine(url, tls=tls)
    assert ping(url).answer == "other"
    elsewhere = url.replace("127.0.0.1", "localhost")  # the certificate names the number only
    assert ping(elsewhere, ours).answer == "unverified"


def test_the_environment_of_the_web_has_no_say(
    second_engine: TlsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(second_engine.strangers / "ca.pem"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    engine = second_engine.open()
    assert not engine.info().local
    engine.close()


def test_it_is_found_by_docker_host_and_its_certificates(
    second_engine: TlsEngine, tmp_path: Path
) -> None:
    environment = {
        "DOCKER_HOST": second_engine.url,
        "DOCKER_TLS_VERIFY": "1",
        "DOCKER_CERT_PATH": str(second_engine.certificates),
    }
    assert find_engine(environment, StateFolder(tmp_path)).tls == second_engine.tls
    environment["DOCKER_CERT_PATH"] = str(second_engine.strangers)
    with pytest.raises(EngineUnreachableError, match="none that can be used") as caught:
        find_engine(environment, StateFolder(tmp_path))
    assert "DOCKER_HOST: TLS could not verify one of the two ends" in str(caught.value.issues[0])


@pytest.fixture
def bed(second_engine: TlsEngine, tmp_path: Path) -> Iterator[Bed]:
    """Return a bed whose Docker context is the second engine."""
    bed = Bed(home=tmp_path, engine="")
    for folder in (bed.project, bed.state):
        folder.mkdir(mode=0o700)
    shutil.copy(Path(os.environ["HARNESS_STATE"]) / "images.lock", bed.state)
    make_project(bed)
    contexts = tmp_path / ".docker" / "contexts"
    digits = hashlib.sha256(b"far").hexdigest()
    endpoint = {"Host": second_engine.url, "SkipTLSVerify": False}
    value = {"Name": "far", "Metadata": {}, "Endpoints": {"docker": endpoint}}
    write(contexts / "meta" / digits / "meta.json", json.dumps(value).encode())
    shutil.copytree(second_engine.certificates, contexts / "tls" / digits / "docker")
    write(tmp_path / ".docker" / "config.json", b'{"currentContext": "far"}')
    yield bed
    engine = second_engine.open()
    owned = engine.owned(state_id(bed.state))
    engine.close()
    assert (owned.containers, owned.volumes) == ({}, {})


def test_the_main_job_through_a_docker_context(bed: Bed) -> None:
    plan = seal(bed)
    approve(bed, plan)
    diff = run(bed, plan)
    shown = bed("runs", "show", bed.facts["run"]).out
    assert f"a copy, because {REMOTE}" in shown
    assert "passed" in shown
    approve(bed, diff)
    bed("apply", diff)
    assert (bed.project / "README.md").read_bytes() == b"# Changed\n"
    assert not (bed.project / "gone").exists()
    bed("ledger", "verify")


def test_an_overlay_that_is_asked_for_is_refused_and_the_approval_stays_good(bed: Bed) -> None:
    text = recipe("few", more="workspace: overlay\n")
    write(bed.project / "recipes" / "few.yaml", text.encode())
    plan = seal(bed)
    approve(bed, plan)
    before = bed.verbs()
    done = bed("run", plan, code=6)
    assert f"workspace: the recipe asks for the overlay, but {REMOTE}" in done.err
    assert "then seal again" in done.err
    assert bed.verbs() == before
