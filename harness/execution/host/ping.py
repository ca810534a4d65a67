"""Ask an address whether a Docker Engine answers there: one request, a second at most.

Needs no SDK, so that a command that only wants to know stays fast.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from harness.errors import InputError
from harness.execution.engine.tls import TlsFiles

MIN_API = (1, 41)
"""Engine 20.10: the oldest one that all of a worker's limits were tried on."""

PING_SECONDS = 2.0
_API = re.compile(r"(\d{1,3})\.(\d{1,3})")

Answer = Literal["answers", "absent", "denied", "silent", "unverified", "other", "too-old"]


_FAILURES: Mapping[type[OSError], Answer] = {FileNotFoundError: "absent", PermissionError: "denied"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    Attributes:
        answer: `answers`; `absent` (no socket), `denied` (no permission), `silent` (nobody
            listens, or no reply in time), `unverified` (TLS found no trust, on either side),
            `other` (no Docker Engine), `too-old`.
        api_version: of an engine; empty otherwise.
    """

    answer: Answer
    api_version: str = ""


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PING_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PING_SECONDS)
        self.sock.connect(self._path)


def check_address(url: str) -> str:
    """Check the form of an engine's address.

    Raises:
        InputError: neither `unix:///path` nor `tcp://host:port`.
    """
    try:
        parts = urlsplit(url)
        usable = (parts.scheme == "unix" and not parts.netloc and parts.path.startswith("/")) or (
            parts.scheme == "tcp" and parts.hostname and parts.port
        )
    except ValueError:
        usable = None
    if not usable:
        raise InputError(
            f"engine address: expected unix:///path or tcp://host:port, got {url!r:.100}",
            hint="set DOCKER_HOST to such an address, or unset it",
        )
    return url


def ping(url: str, tls: TlsFiles | None = None) -> Reply:
    """Send `GET /_ping`.

    Args:
        url: `unix:///path` or `tcp://host:port`.
        tls: what both ends prove themselves with; None without TLS.

    Raises:
        InputError: the address is malformed, or the TLS material can't be used.
    """
    connection = _connection(urlsplit(check_address(url)), tls)
    try:
        connection.request("GET", "/_ping")
        response = connection.getresponse()
        return _judge(response.status, response.read(64), response.headers.get("Api-Version", ""))
    except ssl.SSLError:
        return Reply("unverified")
    except OSError as error:
        return Reply(_FAILURES.get(type(error), "silent"))
    except http.client.HTTPException:
        return Reply("other")
    finally:
        connection.close()


def _connection(parts: SplitResult, tls: TlsFiles | None) -> http.client.HTTPConnection:
    if parts.scheme == "unix":
        return _UnixConnection(parts.path)
    host, port = parts.hostname or "", parts.port
    if tls is None:
        return http.client.HTTPConnection(host, port, timeout=PING_SECONDS)
    try:
        context = tls.context()
    except OSError as error:
        raise InputError(
            f"engine: the TLS files beside {tls.ca} can't be used: {error.strerror or error}",
            hint="expected PEM: certificates in ca.pem and cert.pem, cert.pem's key in key.pem",
        ) from error
    return http.client.HTTPSConnection(host, port, timeout=PING_SECONDS, context=context)


def _judge(status: int, body: bytes, version: str) -> Reply:
    match = _API.fullmatch(version)
    if status != http.client.OK or body != b"OK" or not match:
        return Reply("other")
    if (int(match[1]), int(match[2])) < MIN_API:
        return Reply("too-old", version)
    return Reply("answers", version)
