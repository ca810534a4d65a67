"""Sign a statement with the reviewer's own SSH key, through the real `ssh-keygen -Y sign`.

Rules:
    * The key stays where it is: in a file, behind a passphrase, in an agent, on a FIDO device.
      We never read a private part; ssh-keygen or the agent does.
    * With a terminal, ssh-keygen asks there and may take its time. Without one it is cut off from
      any terminal (a session of its own) and has a deadline, so nothing ever waits for a person
      who is not there; `SSH_ASKPASS` with `SSH_ASKPASS_REQUIRE=force` still works.
    * What comes back is verified before it is returned.

The only module of governance that starts a process.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from harness.errors import (
    ApprovalInvalidError,
    AuthorityError,
    InputError,
    SandboxUnavailableError,
)
from harness.governance.ssh_keys import (
    MAKE_A_KEY,
    PublicKey,
    decode_base64,
    parse_key_blob,
    parse_key_text,
)
from harness.governance.ssh_wire import WireReader
from harness.governance.sshsig import parse_sshsig, verify_sshsig
from harness.model.approval import NAMESPACES, Gate
from harness.model.relpath import show

DEADLINE_SECONDS = 60.0
MAX_KEY_FILE = 64 * 1024

_KEPT_VARIABLES = (
    "DISPLAY",
    "HOME",
    "PATH",
    "SSH_ASKPASS",
    "SSH_ASKPASS_REQUIRE",
    "SSH_AUTH_SOCK",
    "SSH_SK_PROVIDER",
    "TERM",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
)
_BEGIN = "-----BEGIN OPENSSH PRIVATE KEY-----"
_END = "-----END OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\0"


def read_public_key(key: Path) -> PublicKey:
    """Return the public half of a key file, be it a `.pub` file or a private one.

    OpenSSH keeps the public key of a private file unencrypted (PROTOCOL.key), so no passphrase is
    needed to find out whose key it is.

    Raises:
        InputError: no such file, not a key, others can read the private key, or a type that is
            not accepted.
    """
    text = _read_key_file(key)
    if text.startswith(_BEGIN):
        return _read_private_header(text, key)
    if "PRIVATE KEY-----" in text[:100]:
        raise InputError(
            f"key {_name(key)}: expected OpenSSH's own format, got another",
            hint=f"convert it with `ssh-keygen -p -f KEY`, or make one with: {MAKE_A_KEY}",
        )
    words = text.split()
    if len(words) < 2:  # noqa: PLR2004 - a public key line is a type, its base64 and a comment
        raise InputError(f"key {_name(key)}: is not an SSH key file")
    return parse_key_text(words[0], words[1])


def sign_statement(
    statement: bytes,
    *,
    gate: Gate,
    key: Path,
    environment: Mapping[str, str],
    interactive: bool,
) -> bytes:
    """Return the armoured SSHSIG of a person's key over a statement's exact bytes.

    Args:
        statement: the bytes to sign.
        gate: plan or diff; it decides the namespace.
        key: a private key file, or the `.pub` file of a key that an agent holds.
        environment: the caller's environment; only what ssh-keygen needs of it is passed on.
        interactive: whether a person sits at the terminal.

    Raises:
        InputError: the key file is missing, not a key, of another type, or readable by others.
        SandboxUnavailableError: ssh-keygen is not on this host.
        AuthorityError: the passphrase is wrong, the agent does not hold the key, nobody answered in
            time, or ssh-keygen could not sign.
    """
    public = read_public_key(key)
    namespace = NAMESPACES[gate]
    armoured = _run_ssh_keygen(
        ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", str(key.absolute())],
        statement,
        _environment(environment),
        interactive=interactive,
    )
    try:
        verify_sshsig(parse_sshsig(armoured), statement, namespace=namespace, key=public)
    except ApprovalInvalidError as error:
        raise AuthorityError(f"ssh-keygen: signed with another outcome: {error.message}") from error
    return armoured


def _run_ssh_keygen(
    argv: list[str], statement: bytes, environment: dict[str, str], *, interactive: bool
) -> bytes:
    try:
        process = subprocess.Popen(  # noqa: S603 - a fixed program, an argument list, no shell
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # With a terminal the person must see "confirm user presence"; it goes to stderr.
            stderr=None if interactive else subprocess.PIPE,
            env=environment,
            start_new_session=not interactive,
        )
    except FileNotFoundError as error:
        raise SandboxUnavailableError(
            "ssh-keygen: is not on this host", hint="install openssh-client"
        ) from error
    except OSError as error:
        raise SandboxUnavailableError(f"ssh-keygen: can't be started: {error.strerror}") from error
    with process:
        try:
            out, said = process.communicate(
                statement, timeout=None if interactive else DEADLINE_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise AuthorityError(
                f"ssh-keygen: expected a signature within {DEADLINE_SECONDS:.0f} s, got none",
                hint="sign on a terminal, where the key can ask",
            ) from error
        finally:
            if process.poll() is None:
                _end(process, own_session=not interactive)
    if process.returncode != 0:
        raise _signing_error((said or b"").decode("utf-8", "replace"), process.returncode)
    return out


def _end(process: subprocess.Popen[bytes], *, own_session: bool) -> None:
    """End ssh-keygen; where it has a session of its own, with an askpass that still waits."""
    if own_session:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _signing_error(said: str, exit_code: int) -> AuthorityError:
    """Return a typed error for what ssh-keygen said (texts of OpenSSH 9.2)."""
    if "incorrect passphrase" in said:
        return AuthorityError(
            "key: expected its passphrase, got none or a wrong one",
            hint="sign on a terminal, where ssh-keygen asks, or add the key to an agent",
        )
    if "No private key found" in said:
        return AuthorityError(
            "key: its private half is neither beside the .pub file nor in an agent",
            hint="start the agent and `ssh-add KEY`, or give the private key file",
        )
    if "No user exists for uid" in said:
        return AuthorityError(
            "ssh-keygen: signs only for users that the host's list of users has, and this one is "
            "not there",
            hint="sign as another user: --write-statement here, `ssh-keygen -Y sign` there, "
            "--statement and --signature here",
        )
    last = show((said.strip().splitlines() or ["it said why above"])[-1].encode())[:200]
    return AuthorityError(f"ssh-keygen: could not sign (exit {exit_code}): {last}")


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    kept = {name: given[name] for name in _KEPT_VARIABLES if name in given}
    return {**kept, "LC_ALL": "C"}


def _read_key_file(key: Path) -> str:
    try:
        found = key.stat()
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"key {_name(key)}: is not a file")
        with key.open("rb") as stream:
            data = stream.read(MAX_KEY_FILE + 1)
    except OSError as error:
        raise InputError(
            f"key {_name(key)}: {error.strerror or error}",
            hint="give your SSH key file, such as ~/.ssh/id_ed25519, or its .pub for an agent",
        ) from error
    if len(data) > MAX_KEY_FILE:
        raise InputError(f"key {_name(key)}: expected at most {MAX_KEY_FILE} bytes")
    if b"PRIVATE KEY-----" in data[:100] and found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise InputError(
            f"key {_name(key)}: expected mode 0600, got {mode:04o}: others can read it",
            hint=f"chmod 600 {_name(key)}; if others had access, make a new key",
        )
    return data.decode("utf-8", "replace")


def _read_private_header(text: str, key: Path) -> PublicKey:
    """Read the clear part: magic, cipher, kdf, kdf options, count, public key (PROTOCOL.key)."""
    body = "".join(text.removeprefix(_BEGIN).partition(_END)[0].split())
    what = f"key {_name(key)}"
    reader = WireReader(decode_base64(body, what), what)
    if reader.take(len(_MAGIC), "magic") != _MAGIC:
        raise InputError(f"{what}: is not an OpenSSH private key")
    for field in ("cipher", "kdf", "kdf options"):
        reader.string(field)
    if (count := reader.uint32("count")) != 1:
        raise InputError(f"{what}: expected one key, got {count}")
    return parse_key_blob(reader.string("public key"))


def _name(key: Path) -> str:
    return show(str(key).encode("utf-8", "surrogateescape"))
