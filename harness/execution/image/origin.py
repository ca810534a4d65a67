"""Where an added image came from: what images.lock records of it, beside its own content id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from harness.errors import InputError
from harness.model.canonical import canonical_bytes
from harness.model.digest import Digest, digest_of, parse_digest

ADDED_KIND = "harness/added-image/v1"
"""To be raised when the same image is added in another way than before."""

OriginKind = Literal["engine", "archive", "registry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where an image came from.

    Attributes:
        kind: an engine had it, a `docker save` or OCI archive, or a registry.
        reference: its name there, or the archive's file name.
        digest: what the name meant: the manifest's digest at a registry, that of the archive's
            bytes, or the engine's id.
        content: digest of its config; as it was, before init was added.
    """

    kind: OriginKind
    reference: str
    digest: Digest
    content: Digest

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {
            "kind": self.kind,
            "reference": self.reference,
            "digest": self.digest,
            "content": self.content,
        }

    def __str__(self) -> str:
        return f"{self.kind} {self.reference} ({self.digest})"


def parse_origin(item: Mapping[str, Any]) -> Origin:
    """Read what `Origin.to_json` wrote.

    Raises:
        InputError: a member is missing or malformed.
    """
    try:
        kind, reference = item["kind"], item["reference"]
        digest, content = parse_digest(item["digest"]), parse_digest(item["content"])
    except (KeyError, TypeError) as error:
        raise InputError(f"image source: {error}") from error
    if kind not in get_args(OriginKind) or not isinstance(reference, str):
        raise InputError("image source: expected a kind and a reference")
    return Origin(kind=kind, reference=reference, digest=digest, content=content)


def added_definition(name: str, content: Digest, init: Digest) -> Digest:
    """Return what stands for a definition's digest in an added image: what it was made from.

    Args:
        name: of the image.
        content: digest of the config that was added.
        init: digest of init's program.
    """
    members = {"_type": ADDED_KIND, "name": name, "content": content, "init": init}
    return digest_of(canonical_bytes(members))
