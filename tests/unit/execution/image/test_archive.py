from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping

from harness.execution.image.archive import ImageSource, layer_of


def source(labels: Mapping[str, str] | None = None) -> ImageSource:
    layers = (layer_of(b"one" * 700), layer_of(b"two"))
    return ImageSource(architecture="amd64", layers=layers, labels=labels or {"a": "b"})


def test_the_archive_is_a_tar_whose_manifest_names_config_and_layers() -> None:
    archive = b"".join(source().archive())
    assert len(archive) % 512 == 0
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {}
        for member in tar.getmembers():
            content = tar.extractfile(member)
            assert content is not None
            files[member.name] = content.read()
    (entry,) = json.loads(files["manifest.json"])
    assert entry["RepoTags"] is None
    config = json.loads(files[entry["Config"]])
    hashes = [f"sha256:{hashlib.sha256(files[name]).hexdigest()}" for name in entry["Layers"]]
    assert config["rootfs"]["diff_ids"] == hashes
    assert source().image_id == f"sha256:{hashlib.sha256(files[entry['Config']]).hexdigest()}"


def test_the_id_follows_from_content_alone() -> None:
    assert source().image_id == source().image_id
    assert source().image_id != source({"a": "c"}).image_id
