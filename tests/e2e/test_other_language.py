"""Nothing is Python-only: in `nodec`, without Python, C is compiled and Node.js runs; it lands."""

from __future__ import annotations

import pytest

from harness.execution.image.lock import read_lock
from tests.e2e.driver import Bed, git
from tests.e2e.project import approve, run, seal, write

pytestmark = pytest.mark.docker

FILES = {
    "native/Makefile": "build/answer: answer.c\n\tmkdir -p build\n\tgcc -Wall -Werror -o $@ $<\n",
    "native/answer.c": '#include <stdio.h>\nint main(void) { return printf("%d", 6 * 7) < 0; }\n',
    "native/report.js": """\
const { execFileSync } = require("node:child_process");
const { existsSync, writeFileSync } = require("node:fs");
const answer = Number(execFileSync("native/build/answer"));
if (answer !== 42) process.exit(1);
const node = process.version.split(".")[0];
const python = existsSync("/usr/bin/python3");
writeFileSync("native/answer.json", JSON.stringify({ answer, node, python }));
""",
    "recipes/native.yaml": """\
version: 1
kind: build
description: Compile C and run Node.js.
image: nodec
steps:
  - run: [make, -C, native]
  - run: [node, native/report.js]
writable: [native/answer.json]
""",
}


@pytest.fixture
def native(bed: Bed) -> Bed:
    """Return a bed whose project has sources in two other languages."""
    if "nodec" not in read_lock(bed.state / "images.lock"):
        pytest.skip("no image nodec; run `harness image build nodec`")
    for path, text in FILES.items():
        write(bed.project / path, text.encode())
    git(bed.project, "add", "-A")
    return bed


def test_c_and_node_make_a_change_that_lands(native: Bed) -> None:
    plan = seal(native, "native")
    approve(native, plan)
    diff = run(native, plan)
    shown = native("diff", diff, "--json").json()
    assert [change["path"] for change in shown["changes"]] == ["native/answer.json"]
    assert {item["path"] for item in shown["byProducts"]["items"]} >= {"native/build/answer"}
    approve(native, diff)
    native("apply", diff)
    landed = (native.project / "native/answer.json").read_text()
    assert landed == '{"answer":42,"node":"v18","python":false}'
    assert not (native.project / "native/build").exists()
