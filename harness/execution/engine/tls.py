"""What proves an engine to us, and us to it.

Rule: an engine's certificate is always verified, by name, against the authority named here; who
holds the engine's port holds its host. Sources: Docker docs, "Protect the Docker daemon socket".
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The three PEM files of a connection.

    Attributes:
        ca: certificates of the authorities that may have signed the engine's.
        cert: our own certificate; None when the engine asks for none.
        key: its private key; None without a certificate.
    """

    ca: Path
    cert: Path | None
    key: Path | None

    def context(self) -> ssl.SSLContext:
        """Return the same as Python's own TLS settings.

        Raises:
            OSError: a file is missing, or is not what it should be (`ssl.SSLError`).
        """
        context = ssl.create_default_context(cafile=str(self.ca))
        if self.cert and self.key:
            context.load_cert_chain(self.cert, self.key)
        return context
