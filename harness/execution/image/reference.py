"""What a person names when an image is added: an archive, an engine's image, or a registry's.

Rules:
    * The form decides, never what happens to lie in the working folder: `/`, `.` or `~` at the
      start, or `.tar`, `.tar.gz`, `.tgz` at the end, is an archive; `sha256:HEX` is an id; a first
      part with a dot or a colon, or `localhost`, is a registry (distribution's grammar).
    * A short name, as `node:20`, is the engine's; where the engine has none, Docker Hub's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError
from harness.model.digest import PREFIX, Digest, parse_digest

HUB, HUB_FOLDER = "docker.io", "library"
DEFAULT_TAG = "latest"
MAX_NAME = 255

_ENDINGS = (".tar", ".tar.gz", ".tgz")
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_PATH = re.compile(rf"{_PART}(?:/{_PART})*")
_HOST = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_HINT = (
    "name an archive (./image.tar), an id (sha256:HEX), an image of the engine (name:tag) or one "
    "of a registry (host:port/name:tag, host/name@sha256:HEX)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A named image, at a registry or an engine.

    Attributes:
        host: of the registry; empty for a short name.
        path: of the repository.
        tag: empty when there is a digest alone.
        digest: of the manifest; None for a tag.
    """

    host: str
    path: str
    tag: str
    digest: Digest | None

    @property
    def repository(self) -> str:
        """Return host and path; Docker Hub's for a short name."""
        if self.host:
            return f"{self.host}/{self.path}"
        folder = "" if "/" in self.path else f"{HUB_FOLDER}/"
        return f"{HUB}/{folder}{self.path}"

    def __str__(self) -> str:
        name = f"{self.host}/{self.path}" if self.host else self.path
        tag = f":{self.tag}" if self.tag else ""
        return f"{name}{tag}{f'@{self.digest}' if self.digest else ''}"


def parse_image_source(text: str) -> Path | Digest | Reference:
    """Tell what a text names.

    Returns:
        The path of an archive, an engine's image id, or a reference.

    Raises:
        InputError: none of them, or a malformed one.
    """
    if text.startswith(("/", ".", "~")) or text.endswith(_ENDINGS):
        return Path(text).expanduser()
    if text.startswith(PREFIX):
        return parse_digest(text)
    return parse_reference(text)


def parse_reference(text: str) -> Reference:
    """Read a reference by distribution's grammar; a tag that is not given is `latest`.

    Raises:
        InputError: malformed.
    """
    name, at, digest = text.partition("@")
    first, slash, rest = name.partition("/")
    named_host = slash and (first == "localhost" or "." in first or ":" in first)
    host, path = (first, rest) if named_host else ("", name)
    path, colon, tag = path.partition(":")
    fine = (
        _PATH.fullmatch(path)
        and len(f"{host}/{path}") <= MAX_NAME
        and (not host or _HOST.fullmatch(host))
        and (not colon or _TAG.fullmatch(tag))
    )
    if not fine:
        raise InputError(f"image reference: expected host/name:tag, got {text!r:.120}", hint=_HINT)
    return Reference(
        host=host,
        path=path,
        tag=tag or ("" if at else DEFAULT_TAG),
        digest=parse_digest(digest) if at else None,
    )
