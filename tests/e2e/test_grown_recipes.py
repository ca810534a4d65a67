"""Matrix, step timeouts, allowed exit codes, and artifacts with sizes and types, in one plan."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import At
from tests.e2e.driver import Bed, refused, untouched
from tests.e2e.project import approve, write

pytestmark = pytest.mark.docker

MAKE = b"""\
import os, pathlib, sys
pathlib.Path("out").mkdir(exist_ok=True)
pathlib.Path("out/data.bin").write_bytes(os.environ["WORD"].encode() * int(sys.argv[1]))
print("made", sys.argv[1])
sys.exit(5)
"""

GROWN = """\
version: 1
kind: experiment
description: Make data of some sizes.
image: python
matrix:
  times: ["2", "4", "9"]
  mode: [fast, full]
  exclude: [{times: "4"}, {mode: full, times: "9"}, {mode: full, times: "2"}]
parameters:
  word: {default: ab}
steps:
  - name: make
    run: [python3, make.py, "${matrix.times}"]
    timeout: 20s
    allowed_exit_codes: [0, 5]
  - run: [ls, out]
env: {WORD: "${param.word}", MODE: "${matrix.mode}"}
outputs:
  - {name: data, path: out/data.bin, type: application/octet-stream, max_size: 8B}
  - {name: log, path: out/log.txt}
"""

LATE = """\
version: 1
kind: test
description: Take too long.
image: python
steps:
  - name: nap
    run: [sleep, "30"]
    timeout: 300ms
  - run: [echo, never]
"""


@pytest.fixture
def grown(at: At) -> tuple[Bed, dict[str, Any]]:
    """Return a bed on which the recipes ran, and the run's JSON."""
    bed = at("begun")
    if not bed.has("grown"):
        write(bed.project / "make.py", MAKE)
        write(bed.project / "recipes/grown.yaml", GROWN.encode())
        write(bed.project / "recipes/late.yaml", LATE.encode())
        bed.facts["plan"] = bed("seal", "grown", "late", "-p", "word=xy", "--json").json()["plan"]
        approve(bed, bed.facts["plan"])
        ran = bed("run", bed.facts["plan"], "--json", code=1).json()
        bed.facts["run"] = ran["run"]
        bed.keep("grown")
    bed.come_back("grown")
    shown = bed("runs", "show", bed.facts["run"], "--json").json()
    return bed, {item["operation"]: item for item in shown["records"]}


def test_each_cell_is_an_operation_with_its_own_end(grown: tuple[Bed, dict[str, Any]]) -> None:
    bed, records = grown
    assert {name: record["outcome"]["text"] for name, record in records.items()} == {
        "grown:times=2,mode=fast": "passed",
        "grown:times=9,mode=fast": "failed(output data: 18 bytes, over 8B)",
        "late": "timeout(step 1: nap)",
    }
    two = records["grown:times=2,mode=fast"]
    assert [step["exit"] for step in two["steps"]] == [5, 0]
    assert bed("runs", "logs", f"{bed.facts['run']}/grown:times=2,mode=fast").out == (
        "made 2\ndata.bin\n"
    )
    (nap,) = records["late"]["steps"]
    assert nap["timedOut"]
    assert 300 <= nap["durationMs"] < 10_000
    sealed = bed("plan", "show", bed.facts["plan"], "--json").json()["operations"][0]["seal"]
    assert sealed["recipe"]["cell"] == {"times": "2", "mode": "fast"}
    assert sealed["recipe"]["steps"][0]["argv"] == ["python3", "make.py", "2"]
    assert (sealed["env"]["WORD"], sealed["env"]["MODE"]) == ("xy", "fast")


def test_what_was_run_can_be_explained(grown: tuple[Bed, dict[str, Any]]) -> None:
    bed, _ = grown
    with untouched(bed):
        (checked,) = bed("recipe", "check", "grown", "--explain", "--json").json()
    explained = checked["explained"]
    assert explained["operations"] == ["grown:times=2,mode=fast", "grown:times=9,mode=fast"]
    told = {item["field"]: (item["value"], item["source"]) for item in explained["values"]}
    assert told["steps[0].timeout"] == ("20s", "recipe")
    assert told["limits.memory"] == ("512MiB", "policy")
    assert told["limits.tmp"] == ("512MiB", "default")
    assert (
        explained["files"]
        == bed("plan", "show", bed.facts["plan"], "--json").json()["operations"][0]["disclosure"][
            "files"
        ]
    )
    shown = bed("recipe", "check", "grown", "--explain").out
    assert "recipes/grown.yaml:" in shown
    assert "enters" in shown
    shown = bed("plan", "show", bed.facts["plan"]).out
    assert "(at most 20 s, exit 0 or 5 is allowed)" in shown
    assert "out/data.bin as artifact data, application/octet-stream, at most 8 B" in shown


def test_an_artifact_is_listed_and_comes_back_byte_for_byte(
    grown: tuple[Bed, dict[str, Any]], tmp_path: Path
) -> None:
    bed, _ = grown
    run = bed.facts["run"]
    (found,) = bed("artifacts", "list", run, "--json").json()
    digest = "sha256:" + hashlib.sha256(b"xyxy").hexdigest()
    assert (found["operation"], found["name"]) == ("grown:times=2,mode=fast", "data")
    assert (found["path"], found["size"], found["digest"]) == ("out/data.bin", 4, digest)
    assert found["type"] == "application/octet-stream"
    assert bed("artifacts", "get", run, "data").raw == b"xyxy"
    where = f"{run}/grown:times=2,mode=fast"
    target = tmp_path / "data"
    told = bed("artifacts", "get", where, "data", "-o", str(target))
    assert digest in told.err
    assert target.read_bytes() == b"xyxy"
    target.write_bytes(b"mine")
    refused(
        bed, "artifacts", "get", run, "data", "-o", str(target), code=2, says="is there already"
    )
    assert target.read_bytes() == b"mine"
    bed("artifacts", "get", run, "data", "-o", str(target), "--force")
    assert target.read_bytes() == b"xyxy"
    refused(bed, "artifacts", "get", run, "date", code=2, says="did you mean 'data'?")
    refused(bed, "artifacts", "get", run, "log", code=2, says="left none of this name")
    refused(bed, "artifacts", "get", f"{run}/late", "data", code=2, says="it left no artifact")


def test_an_artifact_whose_bytes_changed_is_not_handed_out(
    grown: tuple[Bed, dict[str, Any]], tmp_path: Path
) -> None:
    bed, _ = grown
    run, digits = bed.facts["run"], hashlib.sha256(b"xyxy").hexdigest()
    stored = bed.state / "objects" / digits[:2] / digits[2:]
    stored.chmod(0o600)
    stored.write_bytes(b"yxyx")
    target = tmp_path / "data"
    refused(bed, "artifacts", "get", run, "data", code=3, says="another digest")
    refused(bed, "artifacts", "get", run, "data", "-o", str(target), code=3, says="another digest")
    assert list(tmp_path.iterdir()) == []
