"""A seal: the hash of what would be executed.

It holds recipe, parameters, snapshot, image id and isolation, and nothing of the host, the user or
the time: the same inputs give the same seal on any machine.

v2 added the cell of a matrix, step timeouts, allowed exit codes, and types and sizes of outputs to
the recipe, and the limit `artifact`. `harness.model.recipe` reads the recipe of either version. A
seal keeps the version it was written in, so that its hash never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import InputError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.digest import Digest, digest_of, parse_digest
from harness.model.image import Image, parse_image

SEAL_KIND = "harness/seal/v2"
SEAL_KIND_V1 = "harness/seal/v1"

FIXED_ENV: Mapping[str, str] = {
    "HOME": "/home/worker",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "LOGNAME": "worker",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONHASHSEED": "0",
    "SHELL": "/bin/sh",
    "SOURCE_DATE_EPOCH": "315532800",
    "TERM": "dumb",
    "TMPDIR": "/tmp",  # noqa: S108 - inside the worker, a private sized tmpfs
    "TZ": "UTC",
    "USER": "worker",
}
"""What every step sees; a recipe may set others and override none of these. Part of the seal."""

WORKSPACE = "/workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """What would be executed.

    Attributes:
        recipe: `Recipe.to_json()`.
        snapshot: digest of the project's root folder object.
        image: name, content id, platform.
        isolation: `Isolation.to_json()` with the recipe's effective limits.
        env: the whole environment of a step.
        kind: the version it was written in.
    """

    recipe: Mapping[str, Any]
    snapshot: Digest
    image: Image
    isolation: Mapping[str, Any]
    env: Mapping[str, str]
    kind: str = SEAL_KIND

    def to_bytes(self) -> bytes:
        """Return the canonical bytes; their digest is the seal."""
        return canonical_bytes(
            {
                "_type": self.kind,
                "recipe": dict(self.recipe),
                "snapshot": self.snapshot,
                "image": self.image.to_json(),
                "isolation": dict(self.isolation),
                "env": dict(self.env),
                "workspace": WORKSPACE,
            }
        )

    @property
    def digest(self) -> Digest:
        """Return the seal."""
        return digest_of(self.to_bytes())


def parse_seal(data: bytes) -> Seal:
    """Read a seal of any version.

    Raises:
        InputError: not canonical or malformed.
    """
    value = parse_canonical(data, SEAL_KIND, SEAL_KIND_V1)
    try:
        seal = Seal(
            recipe=value["recipe"],
            snapshot=parse_digest(value["snapshot"]),
            image=parse_image(value["image"]),
            isolation=value["isolation"],
            env=value["env"],
            kind=value["_type"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"seal: malformed: {error}") from error
    if seal.to_bytes() != data:
        raise InputError("seal: has unknown or missing members")
    return seal
