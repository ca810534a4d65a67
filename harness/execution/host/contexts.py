"""The Docker context that a user chose, as the docker command keeps it.

Rules: `DOCKER_CONTEXT` first, then `currentContext` of the client's configuration; `default` is
none. A context that is named and can't be read is refused: the engine that it hides must not be
replaced by another one. An unreadable configuration chooses nothing, as for the docker command.
Source: docker/cli, `cli/context/store` (a context's folder is the SHA-256 of its name).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError
from harness.execution.engine.tls import TlsFiles
from harness.store.bounded import read_bounded

_MOST = 1 << 20
_FIX = "`docker context ls` shows them; or set DOCKER_HOST"


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerContext:
    """One context.

    Attributes:
        name: what the user calls it.
        host: the engine's address; empty for the system's own.
        tls: its TLS material; None without any.
    """

    name: str
    host: str
    tls: TlsFiles | None


def config_folder(environment: Mapping[str, str]) -> Path | None:
    """Return the folder of the docker command's configuration; None without a home."""
    named, home = environment.get("DOCKER_CONFIG", ""), environment.get("HOME", "")
    if named:
        return Path(named)
    return Path(home) / ".docker" if home else None


def read_context(environment: Mapping[str, str]) -> DockerContext | None:
    """Return the context that the user chose; None for the default one.

    Raises:
        InputError: it can't be read, has no address for an engine, or skips the verification.
    """
    folder = config_folder(environment)
    if folder is None:
        return None
    name = environment.get("DOCKER_CONTEXT") or _current(folder)
    if name in ("", "default"):
        return None
    digits = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
    meta = folder / "contexts" / "meta" / digits / "meta.json"
    try:
        endpoint = json.loads(read_bounded(meta, _MOST))["Endpoints"]["docker"]
        host, skips = endpoint.get("Host", ""), endpoint.get("SkipTLSVerify", False)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"docker context {name!r:.60}: can't be read", hint=_FIX) from error
    if not isinstance(host, str):
        raise InputError(f"docker context {name!r:.60}: expected an address as text", hint=_FIX)
    if skips:
        raise InputError(
            f"docker context {name!r:.60}: skips the verification of the engine's certificate",
            hint="make it again with `ca`, `cert` and `key`, and without `skip-tls-verify`",
        )
    keys = folder / "contexts" / "tls" / digits / "docker"
    tls = find_tls(keys) if (keys / "ca.pem").is_file() else None
    return DockerContext(name=name, host=host, tls=tls)


def find_tls(folder: Path) -> TlsFiles:
    """Return the TLS material of a folder, under the names that the docker command gives it.

    Raises:
        InputError: it has no ca.pem, or only one of cert.pem and key.pem.
    """
    ca, cert, key = (folder / name for name in ("ca.pem", "cert.pem", "key.pem"))
    if not ca.is_file():
        raise InputError(
            f"engine: no ca.pem in {folder}",
            hint="set DOCKER_CERT_PATH to the folder with ca.pem, cert.pem and key.pem",
        )
    if cert.is_file() != key.is_file():
        raise InputError(
            f"engine: expected cert.pem and key.pem in {folder}, got one of them",
            hint="a certificate is of no use without its key",
        )
    has_own = cert.is_file()
    return TlsFiles(ca=ca, cert=cert if has_own else None, key=key if has_own else None)


def _current(folder: Path) -> str:
    try:
        value = json.loads(read_bounded(folder / "config.json", _MOST))
    except (OSError, ValueError):
        return ""
    name = value.get("currentContext", "") if isinstance(value, dict) else ""
    return name if isinstance(name, str) else ""
