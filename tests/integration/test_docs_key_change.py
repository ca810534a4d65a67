"""The shell lines of docs/reference/ledger.md check notes of every era with openssl alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.ledger.log import Ledger
from tests.fakes.ledger_keys import MemoryKeys, key_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "ledger.md"


def check(folder: Path, note: str, vkey: str) -> bool:
    """Do what the page says; tell whether openssl is content."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    found = re.search(r"<!-- check-note -->\n```bash\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found
    folder.mkdir()
    (folder / "note").write_text(note)
    (folder / "vkey").write_text(vkey + "\n")
    done = subprocess.run(
        ["bash", "-c", found[1]],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0


def test_each_note_is_good_for_the_keys_that_signed_it_and_for_no_other(tmp_path: Path) -> None:
    keys = MemoryKeys(key_of(1))
    ledger = Ledger(tmp_path, keys, now=lambda: datetime(2026, 1, 31, 12, tzinfo=UTC))
    ledger.append("build", "done", project="", body={})
    early, first = ledger.checkpoint(), keys.signer().verifier.to_text()
    ledger.change_key("rotate")
    handover = str(ledger.entries()[-1].body["note"])
    switch, second = ledger.checkpoint(), keys.signer().verifier.to_text()
    ledger.append("build", "done", project="", body={})
    late = ledger.checkpoint()

    good = {
        (name, era): check(tmp_path / f"{name}-{era}", note, vkey)
        for name, note in (
            ("early", early),
            ("handover", handover),
            ("switch", switch),
            ("late", late),
        )
        for era, vkey in (("first", first), ("second", second))
    }
    assert [where for where, holds in good.items() if not holds] == [
        ("early", "second"),
        ("late", "first"),
    ]
    assert f"next key {second}" in handover.splitlines()
    changed = early.replace("\n1\n", "\n2\n")
    assert not check(tmp_path / "changed", changed, first)
