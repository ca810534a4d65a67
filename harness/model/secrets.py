"""What looks like a secret: names of credential files, and the public forms of keys and tokens.

Rules:
    * By name: files whose only use is to hold a credential, wherever they lie in the tree.
    * By content: private keys with key material after their header, and tokens whose issuer gave
      them a fixed prefix and length. Only the head of a file is looked at, so the cost is bounded.
    * A public key, a certificate, a sample (`.env.example`), a header without a key in source text
      and a placeholder (`ghp_xxxx...`, `AKIA...EXAMPLE`) are not secrets.

This is a net, not a proof: it keeps accidents out, and says what it kept out. It refuses to guess
by entropy, because then the same tree would give reasons that nobody can follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SCANNED_HEAD = 64 * 1024
"""Bytes at the start of a file that are looked at."""

MIN_DISTINCT = 8
"""A token with fewer different bytes after its prefix is a placeholder, not a token."""

_NAMES = {
    b".env": "environment file",
    b".netrc": "login file",
    b"_netrc": "login file",
    b".pgpass": "PostgreSQL password file",
    b".my.cnf": "MySQL login file",
    b".mylogin.cnf": "MySQL login file",
    b".htpasswd": "password file",
    b".pypirc": "package index credentials",
    b".git-credentials": "git credentials",
    b".dockercfg": "registry credentials",
    b".vault-token": "Vault token",
    b".s3cfg": "cloud credentials",
    b".boto": "cloud credentials",
    b"application_default_credentials.json": "cloud credentials",
    b"id_rsa": "SSH private key",
    b"id_dsa": "SSH private key",
    b"id_ecdsa": "SSH private key",
    b"id_ecdsa_sk": "SSH private key",
    b"id_ed25519": "SSH private key",
    b"id_ed25519_sk": "SSH private key",
}

# The last names of a path, for files with a plain name in a telling folder.
_TAILS = {
    b".aws/credentials": "cloud credentials",
    b".azure/accesstokens.json": "cloud credentials",
    b".azure/msal_token_cache.json": "cloud credentials",
    b".cargo/credentials": "package registry credentials",
    b".cargo/credentials.toml": "package registry credentials",
    b".config/gh/hosts.yml": "GitHub credentials",
    b".docker/config.json": "registry credentials",
    b".gem/credentials": "package registry credentials",
    b".kube/config": "cluster credentials",
    b"gcloud/credentials.db": "cloud credentials",
}

_SUFFIXES = {
    b".p12": "key store",
    b".pfx": "key store",
    b".jks": "key store",
    b".keystore": "key store",
    b".kdbx": "password database",
    b".ppk": "PuTTY private key",
}

_SAMPLE = re.compile(rb"\.env\..*(example|sample|template|dist|defaults?)$")

_NPM_LOGIN = re.compile(
    rb"^[^#;\n]*_(?:authToken|auth|password)\s*=\s*(?!\$\{)[^\s$]", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class _Form:
    """One public form: `marker` is searched first because a plain search is fast."""

    marker: bytes
    pattern: re.Pattern[bytes]
    reason: str
    exact: bool = False


# RFC 7468 (PEM), RFC 1421 headers after the first line, and JSON or source text, where a line
# break is spelled \n. Key material must follow: 32 base64 characters are 24 bytes. Possessive
# quantifiers never go back, so hostile text costs no more than plain text.
_PEM = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:[\s\"'+>|]|\\[rn]|(?:Proc-Type|DEK-Info|Version|Comment|Charset): [^\r\n\\]{0,200}+)"
    rb"{1,200}+[A-Za-z0-9+/]{32}"
)

_FORMS = (
    _Form(b"PRIVATE KEY", _PEM, "private key", exact=True),
    _Form(b"PuTTY-User-", re.compile(rb"\APuTTY-User-Key-File-\d"), "private key", exact=True),
    _Form(b"AGE-SECRET-KEY-1", re.compile(rb"AGE-SECRET-KEY-1([0-9A-Z]{58})"), "age private key"),
    _Form(b"AKIA", re.compile(rb"(?<![A-Z0-9])AKIA([A-Z2-7]{16})(?![A-Z0-9])"), "AWS access key"),
    _Form(b"ASIA", re.compile(rb"(?<![A-Z0-9])ASIA([A-Z2-7]{16})(?![A-Z0-9])"), "AWS access key"),
    _Form(b"gh", re.compile(rb"(?<![A-Za-z0-9])gh[pousr]_([A-Za-z0-9]{36,})"), "GitHub token"),
    _Form(b"github_pat_", re.compile(rb"github_pat_([A-Za-z0-9]{22}_\w{59})"), "GitHub token"),
    _Form(b"glpat-", re.compile(rb"glpat-([A-Za-z0-9_-]{20,})"), "GitLab token"),
    _Form(b"xox", re.compile(rb"xox[abeprs]-(\d{8,}-[0-9A-Za-z-]{16,})"), "Slack token"),
    _Form(b"k_live_", re.compile(rb"[rs]k_live_([0-9A-Za-z]{24,})"), "Stripe key"),
    _Form(b"AIza", re.compile(rb"(?<!\w)AIza([\w-]{35})(?![\w-])"), "Google API key"),
    _Form(b"pypi-AgEI", re.compile(rb"pypi-AgEI([\w-]{50,})"), "PyPI token"),
    _Form(b"npm_", re.compile(rb"(?<!\w)npm_([A-Za-z0-9]{36})(?!\w)"), "npm token"),
    _Form(b"T3BlbkFJ", re.compile(rb"sk-([\w-]{20,80}T3BlbkFJ[\w-]{20,})"), "OpenAI key"),
    _Form(b"sk-ant-", re.compile(rb"sk-ant-(?:api|admin)\d\d-([\w-]{80,})"), "Anthropic key"),
    _Form(b"SG.", re.compile(rb"(?<!\w)SG\.([\w-]{22}\.[\w-]{43})"), "SendGrid key"),
    _Form(b"hf_", re.compile(rb"(?<!\w)hf_([A-Za-z0-9]{34,40})(?!\w)"), "Hugging Face token"),
    _Form(b"dop_v1_", re.compile(rb"dop_v1_([a-f0-9]{64})"), "DigitalOcean token"),
    _Form(b"dckr_pat_", re.compile(rb"dckr_pat_([\w-]{27,})"), "Docker Hub token"),
)


def find_secret(path: bytes, head: bytes) -> str:
    """Return why a file looks like a secret, or an empty text.

    Args:
        path: the file's path inside the tree; only names in it count, in any case.
        head: the start of its content; bytes after the first 64 KiB are not looked at.
    """
    return _by_name(path.lower(), head) or _by_content(head[:SCANNED_HEAD])


def _by_name(path: bytes, head: bytes) -> str:
    name = path.rsplit(b"/", 1)[-1]
    if name in _NAMES:
        return _NAMES[name]
    if name.startswith(b".env.") and not _SAMPLE.match(name):
        return "environment file"
    if name == b".npmrc" and _NPM_LOGIN.search(head[:SCANNED_HEAD]):
        return "package registry credentials"
    for tail, reason in _TAILS.items():
        if path == tail or path.endswith(b"/" + tail):
            return reason
    dot = name.rfind(b".")
    return _SUFFIXES.get(name[dot:], "") if dot > 0 else ""


def _by_content(head: bytes) -> str:
    for form in _FORMS:
        if form.marker in head and any(
            form.exact or _is_token(match.group(1)) for match in form.pattern.finditer(head)
        ):
            return form.reason
    return ""


def _is_token(body: bytes) -> bool:
    return len(set(body)) >= MIN_DISTINCT and b"EXAMPLE" not in body.upper()
