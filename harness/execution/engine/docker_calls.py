"""The one door to a Docker Engine: every call passes a failpoint and a deadline here.

Knows: how the SDK and the network fail. Refuses: to let a foreign error through.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException, ImageNotFound
from docker.tls import TLSConfig

from harness.errors import EngineUnreachableError, ImageMissingError, SandboxUnavailableError
from harness.execution.engine.tls import TlsFiles
from harness.store.failpoints import pass_failpoint

CALL_SECONDS = 30
"""How long an engine may stay silent in one call; starting on a loaded host takes seconds."""

SLOW_SECONDS = 900
"""The same for calls that move a whole root file system."""

GONE, CONFLICT = 404, 409
"""HTTP status codes that say: not there (any more), and not in a state for this."""

T = TypeVar("T")


class RefusedError(SandboxUnavailableError):
    """The engine answered and refused.

    Args:
        message: one line.
        status: the HTTP status code.
    """

    code = "engine-refused"
    hint = "the engine's own reason is above"

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class DockerCalls:
    """Holds the SDK's low-level client.

    Args:
        url: `unix:///path` or `tcp://host:port`.
        tls: what both ends prove themselves with; None without TLS.
        seconds: deadline of an ordinary call.

    Raises:
        EngineUnreachableError: nobody answers there.
        SandboxUnavailableError: who answers is not a usable engine.
    """

    def __init__(
        self, url: str, *, tls: TlsFiles | None = None, seconds: int = CALL_SECONDS
    ) -> None:
        self.url = url
        self._seconds = seconds
        pass_failpoint("engine.connect.before")
        with translated("connect"):
            self._client = docker.APIClient(
                base_url=url, version="auto", timeout=seconds, tls=_tls_config(tls)
            )
        # An engine is never behind a proxy; looking for one takes a fifth of a quick call.
        self._client.trust_env = False

    def close(self) -> None:
        """Close the connections; the engine itself is left alone."""
        self._client.close()

    def _call(self, what: str, work: Callable[[Any], T], *, slow: bool = False) -> T:
        """Do one thing with the client; nothing else touches it.

        Args:
            what: names the call in failpoints and messages.
            work: gets the SDK's client; `Any`, since half of the SDK has no types.
            slow: the call moves a whole root file system.

        Raises:
            EngineUnreachableError: nobody answered in time.
            ImageMissingError: the engine has no such image.
            RefusedError: the engine refused.
        """
        pass_failpoint(f"engine.{what}.before")
        client = self._client
        client.timeout = SLOW_SECONDS if slow else self._seconds
        with translated(what):
            result = work(client)
        pass_failpoint(f"engine.{what}.after")
        return result

    def _create(self, what: str, request: dict[str, Any], name: str) -> str:
        made = self._call(
            what, lambda client: client.create_container_from_config(request, name=name)
        )
        return str(made["Id"])


class _DirectTls(TLSConfig):
    """TLS as the engine's own files say, whatever the environment says of the web's.

    With REQUESTS_CA_BUNDLE set, requests would verify against that file instead
    (psf/requests#3829), and with a proxy set, send the request there.
    """

    def configure_client(self, client: Any) -> None:
        super().configure_client(client)
        client.trust_env = False


def _tls_config(tls: TlsFiles | None) -> TLSConfig | Literal[False]:
    """Return the SDK's form; the other end is verified always, its name too."""
    if tls is None:
        return False
    client = (str(tls.cert), str(tls.key)) if tls.cert and tls.key else None
    return _DirectTls(client_cert=client, ca_cert=str(tls.ca), verify=True)


@contextlib.contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn the errors of the SDK and of HTTP into ours.

    Raises:
        EngineUnreachableError: nobody answered in time.
        ImageMissingError: the engine has no such image.
        RefusedError: the engine refused.
    """
    try:
        yield
    except ImageNotFound as error:
        raise ImageMissingError("image: the engine does not have it") from error
    except APIError as error:
        reason = " ".join(str(error.explanation or error).split())[:300]
        status = error.response.status_code if error.response is not None else 0
        raise RefusedError(f"engine: {what}: {reason}", status=status) from error
    except (
        DockerException,
        requests.RequestException,
        urllib3.exceptions.HTTPError,
        OSError,
    ) as error:
        raise EngineUnreachableError(
            f"engine: {what}: no answer ({type(error).__name__})"
        ) from error
