"""Image archives for tests: sound ones and hostile ones, in both formats, without an engine."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HOSTILE_CONFIG: Mapping[str, Any] = {
    "Entrypoint": ["/evil"],
    "Cmd": ["evil"],
    "Env": ["LD_PRELOAD=/evil.so", "PATH=/evil", "bad name=1"],
    "User": "1000",
    "WorkingDir": "/evil",
    "Volumes": {"/workspace": {}, "/.harness": {}},
    "OnBuild": ["RUN evil"],
    "Healthcheck": {"Test": ["CMD", "/evil"], "Interval": 1000000000},
    "StopSignal": "SIGHUP",
    "Labels": {"harness.run": "evil", "harness.state": "evil"},
}

Entry = tuple[str, bytes | str | None]
"""Name in a layer, with a file's bytes, a symlink's target, or None for a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestImage:
    """One image of an archive.

    Attributes:
        name: its tag; empty for none.
        layers: tar archives.
        architecture: of its config.
        settings: the config's `config`.
    """

    __test__ = False

    name: str = ""
    layers: Sequence[bytes]
    architecture: str = "amd64"
    settings: Mapping[str, Any] | None = None

    @property
    def config(self) -> bytes:
        members = {
            "os": "linux",
            "architecture": self.architecture,
            "config": dict(self.settings or {}),
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer) for layer in self.layers]},
        }
        return json.dumps(members).encode()

    @property
    def image_id(self) -> str:
        return _digest(self.config)


def layer(*entries: Entry) -> bytes:
    """Return a layer."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, what in entries:
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            if what is None:
                member.type = tarfile.DIRTYPE
            elif isinstance(what, str):
                member.type, member.linkname = tarfile.SYMTYPE, what
            else:
                member.size = len(what)
            tar.addfile(member, io.BytesIO(what) if isinstance(what, bytes) else None)
    return out.getvalue()


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """Return a tar archive of files, in their order."""
    return layer(*files.items())


def docker_files(*images: TestImage) -> dict[str, bytes]:
    """Return the files of a `docker save` archive."""
    files: dict[str, bytes] = {}
    manifest = []
    for image in images:
        names = [f"{_hex(item)}/layer.tar" for item in image.layers]
        config_name = f"{image.image_id.removeprefix('sha256:')}.json"
        files[config_name] = image.config
        files.update(zip(names, image.layers, strict=True))
        tags = [image.name] if image.name else None
        manifest.append({"Config": config_name, "RepoTags": tags, "Layers": names})
    return {**files, "manifest.json": json.dumps(manifest).encode()}


def docker_archive(*images: TestImage) -> bytes:
    """Return a `docker save` archive."""
    return tar_of(docker_files(*images))


def layout_files(*images: TestImage, nested: bool = False) -> dict[str, bytes]:
    """Return the files of an OCI image layout; its layers are packed with gzip.

    Args:
        images: of it.
        nested: the images are listed in an index of their own, with an attestation beside them.
    """
    files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
    listed = []
    for image in images:
        manifest, blobs = oci_manifest(image)
        files.update({f"blobs/sha256/{_hex(blob)}": blob for blob in (*blobs, manifest)})
        notes = {"org.opencontainers.image.ref.name": image.name} if image.name else {}
        listed.append({**_descriptor(manifest, "manifest"), "annotations": notes})
    if nested:
        platform = {"os": "unknown", "architecture": "unknown"}
        beside = {**_descriptor(b"{}", "manifest"), "platform": platform}
        index = json.dumps({"schemaVersion": 2, "manifests": [*listed, beside]}).encode()
        files[f"blobs/sha256/{_hex(index)}"] = index
        listed = [_descriptor(index, "index")]
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": listed}).encode()
    return files


def docker_manifest(image: TestImage) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the same as `oci_manifest`, in the types of Docker's own format."""
    manifest, blobs = oci_manifest(image)
    for oci, docker in (
        (f"{_OCI}.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"),
        (f"{_OCI}.config.v1+json", "application/vnd.docker.container.image.v1+json"),
        (f"{_OCI}.layer.v1.tar+gzip", "application/vnd.docker.image.rootfs.diff.tar.gzip"),
    ):
        manifest = manifest.replace(oci.encode(), docker.encode())
    return manifest, blobs


def oci_index(*images: TestImage) -> bytes:
    """Return an index of the images' manifests, each with its platform."""
    listed = [
        {
            **_descriptor(oci_manifest(image)[0], "manifest"),
            "platform": {"os": "linux", "architecture": image.architecture},
        }
        for image in images
    ]
    kind = f"{_OCI}.index.v1+json"
    return json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": listed}).encode()


def oci_manifest(image: TestImage) -> tuple[bytes, tuple[bytes, ...]]:
    """Return a manifest and the blobs it names: config, then packed layers."""
    packed = [gzip.compress(item, mtime=0) for item in image.layers]
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": _descriptor(image.config, "config"),
        "layers": [
            {**_descriptor(item, "layer"), "mediaType": f"{_OCI}.layer.v1.tar+gzip"}
            for item in packed
        ],
    }
    return json.dumps(manifest).encode(), (image.config, *packed)


_OCI = "application/vnd.oci.image"


def _descriptor(data: bytes, kind: str) -> dict[str, Any]:
    return {"mediaType": f"{_OCI}.{kind}.v1+json", "digest": _digest(data), "size": len(data)}


def _hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest(data: bytes) -> str:
    return f"sha256:{_hex(data)}"
