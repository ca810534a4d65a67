"""Names and content that look like secrets, and those that only seem to."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.secrets import SCANNED_HEAD, find_secret

# Spelled in two halves, so that no scanner takes this file for a leak.
PEM = "-----BEGIN {}PRIVATE " + "KEY-----"
BASE64 = "MC4CAQAwBQYDK2VwBCIEIFf0nGkV4eZtq8Yw3cB7m5aTj9hLx1Rr2Uo6Ks0DpQvE"
MIXED = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"


@pytest.mark.parametrize(
    "path",
    [
        b".env",
        b"deep/er/.ENV",
        b".env.production",
        b".env.local",
        b"id_rsa",
        b"keys/id_ed25519",
        b".netrc",
        b".pypirc",
        b"home/.aws/credentials",
        b".aws/credentials",
        b".docker/config.json",
        b"release.p12",
        b"Release.PFX",
        b"android/app.keystore",
        b"\xff/.git-credentials",
    ],
)
def test_a_credential_file_is_known_by_its_name(path: bytes) -> None:
    assert find_secret(path, b"")


@pytest.mark.parametrize(
    "path",
    [
        b".env.example",
        b".env.sample",
        b".env.local.template",
        b"id_rsa.pub",
        b"environment",
        b".envrc",
        b"my.env.py",
        b"credentials",
        b"aws/credentials",
        b"x.aws/credentials",
        b"secrets.py",
        b"cert.pem",
        b"server.key",
        b".npmrc",
        b".p12",
        b"docs/netrc.md",
    ],
)
def test_a_name_that_only_resembles_one_is_not(path: bytes) -> None:
    assert find_secret(path, b"nothing to see") == ""


@pytest.mark.parametrize(
    "text",
    [
        PEM.format("") + "\n" + BASE64,
        PEM.format("RSA ") + "\r\n" + BASE64,
        PEM.format("OPENSSH ") + "\n" + BASE64,
        PEM.format("ENCRYPTED ") + "\n" + BASE64,
        PEM.format("RSA ") + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\n" + BASE64,
        '{"private_key": "' + PEM.format("") + "\\n" + BASE64 + '"}',
        "-----BEGIN PGP PRIVATE " + "KEY BLOCK-----\nVersion: x\n\n" + BASE64,
        "PuTTY-User-" + "Key-File-3: ssh-ed25519",
        "AGE-SECRET-" + "KEY-1" + (MIXED.upper() * 2)[:58],
        "key = AKIA" + "QWERTZUIOPASDFGH",
        "gh" + "p_" + MIXED,
        "github" + "_pat_" + MIXED[:22] + "_" + (MIXED * 2)[:59],
        "gl" + "pat-" + MIXED[:20],
        "xox" + "b-123456789012-" + MIXED[:24],
        "sk" + "_live_" + MIXED[:24],
        "AI" + "za" + MIXED[:35],
        "py" + "pi-AgEI" + MIXED * 2,
        "np" + "m_" + MIXED[:36],
        "S" + "G." + MIXED[:22] + "." + (MIXED * 2)[:43],
        "h" + "f_" + MIXED[:34],
        "sk-" + "ant-api03-" + MIXED * 3,
    ],
)
def test_keys_and_tokens_are_known_by_their_form(text: str) -> None:
    assert find_secret(
        b"src/settings.py", b"first line\n" * (not text.startswith("PuTTY")) + text.encode()
    )


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PUBLIC KEY-----\n" + BASE64,
        "-----BEGIN CERTIFICATE-----\n" + BASE64,
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFf0nGkV4eZtq8Yw3cB7m5aTj9hLx1Rr2Uo6Ks0DpQvE me",
        'HEADER = b"' + PEM.format("") + '"\nif HEADER in data:\n    refuse()\n',
        "AKIA" + "IOSFODNN7EXAMPLE",
        "gh" + "p_" + "x" * 36,
        "gh" + "p_" + "0" * 40,
        "np" + "m_config_registry",
        "the letters AKIA alone",
    ],
)
def test_public_material_and_placeholders_pass(text: str) -> None:
    assert find_secret(b"src/settings.py", text.encode()) == ""


def test_npm_logins_count_and_references_to_the_environment_do_not() -> None:
    line = b"//registry.example/:_authToken="
    assert find_secret(b".npmrc", line + b"abcdef") == "package registry credentials"
    assert find_secret(b".npmrc", line + b"${NPM_TOKEN}\n") == ""
    assert find_secret(b".npmrc", b"# " + line + b"abcdef\n") == ""
    assert find_secret(b".npmrc", b"save-exact=true\n") == ""


def test_only_the_head_is_looked_at() -> None:
    key = (PEM.format("") + "\n" + BASE64).encode()
    assert find_secret(b"f", b"x" * (SCANNED_HEAD - len(key)) + key) == "private key"
    assert find_secret(b"f", b"x" * SCANNED_HEAD + key) == ""


@given(st.binary(max_size=200), st.binary(max_size=2000))
def test_any_bytes_get_an_answer(path: bytes, head: bytes) -> None:
    assert isinstance(find_secret(path, head), str)


@pytest.mark.parametrize(
    "text",
    [
        PEM.format("") + "\n" * SCANNED_HEAD,
        PEM.format("") + "a: b" * SCANNED_HEAD,
        (PEM.format("") + "\n") * 2000,
        "gh" * SCANNED_HEAD,
        "sk-" + "a" * SCANNED_HEAD + "T3BlbkFJ",
        "gl" + "pat-" * SCANNED_HEAD,
    ],
)
def test_hostile_content_costs_little_time(text: str) -> None:
    started = time.monotonic()
    find_secret(b"f", text.encode())
    assert time.monotonic() - started < 2
