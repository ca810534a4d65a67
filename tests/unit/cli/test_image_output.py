"""What the image commands print is described; here because real builds take minutes."""

from __future__ import annotations

import jsonschema
import pytest

from harness.cli.outputs.kinds import schema_of_command
from harness.execution.image.compare import Difference, PackageChange
from harness.execution.image.lock import LockedImage
from harness.execution.image.origin import Origin
from harness.flows.images import BuiltImage, VerifiedImage
from harness.model.digest import digest_of
from harness.model.image import Image
from tests.e2e.driver import run_here

DIGEST = digest_of(b"")
IMAGE = Image(name="python", image_id=DIGEST, platform="linux/amd64", definition=DIGEST)
OLD = LockedImage(image=IMAGE, built_on="2026-11-30T10:00:00Z")
ADDED = LockedImage(
    image=IMAGE,
    built_on="2026-11-30T10:00:00Z",
    init=DIGEST,
    origin=Origin(kind="registry", reference="r:5000/node:20", digest=DIGEST, content=DIGEST),
)
DIFFERENCE = Difference(
    packages=(PackageChange(name="zlib1g", before="1", after=""),), files=("etc/motd",)
)


@pytest.mark.parametrize(
    ("command", "flow", "found"),
    [
        ("image build", "build_named_image", BuiltImage(locked=OLD, difference=None)),
        ("image build", "build_named_image", BuiltImage(locked=ADDED, difference=DIFFERENCE)),
        ("image add", "add_named_image", ADDED),
        ("image verify", "verify_image", VerifiedImage(locked=OLD, size=12, init=DIGEST)),
        ("image verify", "verify_image", VerifiedImage(locked=ADDED, size=12, init=DIGEST)),
    ],
)
def test_the_answer_is_described(
    command: str, flow: str, found: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.cli.image.open_host", lambda: None)
    monkeypatch.setattr(f"harness.cli.image.{flow}", lambda *_, **__: found)
    source = ["r:5000/node:20"] if command == "image add" else []
    done = run_here(*command.split(), "python", *source, "--json")
    assert (done.code, done.err) == (0, "")
    jsonschema.Draft202012Validator(schema_of_command(command)).validate(done.json())
