"""An image as a seal sees it: a name for people and a content id that decides.

`image_id` is what the engine calls the image's Id: the config digest with the classic store. A
tag or a name never selects what runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import InputError
from harness.model.digest import Digest, parse_digest

LABEL_IMAGE = "harness.image"
LABEL_DEFINITION = "harness.definition"
"""Labels of every worker image: its name, and what it was made from."""

IMAGE_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One locked worker image.

    Attributes:
        name: what recipes call it.
        image_id: the engine's content id.
        platform: `linux/amd64` or `linux/arm64`.
        definition: digest of what it was made from: the files of its definition, or the content
            and the init of an added image.
    """

    name: str
    image_id: Digest
    platform: str
    definition: Digest

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members of this image."""
        return {
            "name": self.name,
            "imageId": self.image_id,
            "platform": self.platform,
            "definition": self.definition,
        }


def parse_image_name(text: str) -> str:
    """Check the form of an image name.

    Raises:
        InputError: upper case, a slash, a tag or a digest.
    """
    if not IMAGE_NAME.fullmatch(text):
        raise InputError(
            f"image name: expected lower-case letters, digits, '.', '_', '-', got {text!r:.80}",
            hint="a recipe names a locked image; `harness image list` shows them",
        )
    return text


def parse_image(item: Mapping[str, Any]) -> Image:
    """Read what `Image.to_json` wrote.

    Raises:
        InputError: a member is missing or malformed.
    """
    try:
        return Image(
            name=parse_image_name(str(item["name"])),
            image_id=parse_digest(item["imageId"]),
            platform=str(item["platform"]),
            definition=parse_digest(item["definition"]),
        )
    except KeyError as error:
        raise InputError(f"image: expected the member {error}") from error
