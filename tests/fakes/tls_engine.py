"""A second, private engine of the tests: `dockerd` over TCP on loopback, with TLS on both sides."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from harness.execution.engine.docker_images import DockerImageEngine
from harness.execution.engine.tls import TlsFiles

START_SECONDS = 60


@dataclass(frozen=True, slots=True)
class TlsEngine:
    """Where it is, and what proves each side to the other.

    Attributes:
        url: its address.
        certificates: a folder with ca.pem, cert.pem and key.pem, as DOCKER_CERT_PATH wants it.
        strangers: another one, whose authority the engine does not know.
    """

    url: str
    certificates: Path
    strangers: Path

    @property
    def tls(self) -> TlsFiles:
        return tls_files(self.certificates)

    def open(self) -> DockerImageEngine:
        return DockerImageEngine(self.url, tls=self.tls)


def tls_files(folder: Path) -> TlsFiles:
    return TlsFiles(ca=folder / "ca.pem", cert=folder / "cert.pem", key=folder / "key.pem")


@contextmanager
def tls_engine(folder: Path) -> Iterator[TlsEngine]:
    """Start one with all it has below a folder; end it, and all it started."""
    if os.geteuid() != 0 or not shutil.which("dockerd"):
        pytest.skip("starting a second engine needs root and dockerd")
    made = _make_certificates(folder)
    port = _free_port()
    (folder / "empty.json").write_text("{}")
    with (folder / "dockerd.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "dockerd",
                f"--config-file={folder / 'empty.json'}",
                f"--data-root={folder / 'data'}",
                f"--exec-root={folder / 'exec'}",
                f"--pidfile={folder / 'docker.pid'}",
                f"--host=tcp://127.0.0.1:{port}",
                "--tlsverify",
                f"--tlscacert={folder / 'ca.pem'}",
                f"--tlscert={folder / 'server' / 'cert.pem'}",
                f"--tlskey={folder / 'server' / 'key.pem'}",
                "--bridge=none",
                "--iptables=false",
                "--ip-forward=false",
                "--ip-masq=false",
            ],
            stdout=log,
            stderr=log,
        )
    engine = TlsEngine(f"tcp://127.0.0.1:{port}", *made)
    try:
        _wait(engine, process)
        yield engine
    finally:
        process.terminate()
        process.wait(timeout=60)


def _wait(engine: TlsEngine, process: subprocess.Popen[bytes]) -> None:
    context = engine.tls.context()
    until = time.monotonic() + START_SECONDS
    host, port = engine.url.removeprefix("tcp://").split(":")
    while time.monotonic() < until and process.poll() is None:
        try:
            with socket.create_connection((host, int(port)), 5) as plain:
                context.wrap_socket(plain, server_hostname=host).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail("the second engine did not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _make_certificates(folder: Path) -> tuple[Path, Path]:
    """Make an authority, the engine's certificate, a client's, and a stranger with his own."""
    key, authority = _authority("harness tests")
    (folder / "ca.pem").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    _issue(folder / "server", key, authority, ExtendedKeyUsageOID.SERVER_AUTH)
    _issue(folder / "client", key, authority, ExtendedKeyUsageOID.CLIENT_AUTH)
    other_key, other = _authority("strangers")
    _issue(folder / "strangers", other_key, other, ExtendedKeyUsageOID.CLIENT_AUTH)
    return folder / "client", folder / "strangers"


def _authority(name: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = _builder(name, name, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return key, builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())


def _issue(
    folder: Path,
    authority_key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    purpose: x509.ObjectIdentifier,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        _builder(folder.name, str(issuer), key.public_key())
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    folder.mkdir(parents=True)
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(authority.public_bytes(pem))
    (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )
