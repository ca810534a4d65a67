"""RFC 8785 against the author's own test data (cyberphone/json-canonicalization, Apache-2.0).

Our canonical form is stricter than the RFC: no floats. Two of the six documents hold some
(`structures` has `56.0`), so they must be refused here, and are checked through the library that
we write with. So are the 10,000 numbers, which are about floats alone.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import rfc8785

from harness.errors import InputError
from harness.model.canonical import canonical_bytes, parse_json

pytestmark = pytest.mark.vectors

ACCEPTED = ("arrays", "french", "unicode", "weird")
WITH_FLOATS = ("structures", "values")


def expected(vectors: Path, name: str) -> bytes:
    return bytes.fromhex((vectors / "jcs-rfc8785" / "outhex" / f"{name}.txt").read_text())


def given(vectors: Path, name: str) -> bytes:
    return (vectors / "jcs-rfc8785" / "input" / f"{name}.json").read_bytes()


def test_every_document_is_in_one_of_the_two_lists(shared_vectors: Path) -> None:
    names = {path.stem for path in (shared_vectors / "jcs-rfc8785" / "input").iterdir()}
    assert names == {*ACCEPTED, *WITH_FLOATS}


@pytest.mark.parametrize("name", ACCEPTED)
def test_documents_without_floats_come_out_byte_for_byte(shared_vectors: Path, name: str) -> None:
    assert canonical_bytes(parse_json(given(shared_vectors, name))) == expected(
        shared_vectors, name
    )


@pytest.mark.parametrize("name", WITH_FLOATS)
def test_documents_with_floats_are_refused_by_us_and_right_in_the_library(
    shared_vectors: Path, name: str
) -> None:
    value = json.loads(given(shared_vectors, name))
    with pytest.raises(InputError, match="is not an integer"):
        parse_json(given(shared_vectors, name))
    with pytest.raises(InputError, match="expected an integer, got the float"):
        canonical_bytes(value)
    assert rfc8785.dumps(value) == expected(shared_vectors, name)


def test_ten_thousand_numbers_are_written_as_the_rfc_says(shared_vectors: Path) -> None:
    lines = (shared_vectors / "jcs-rfc8785" / "es6-numbers-10000.txt").read_text().splitlines()
    wrong = []
    for line in lines:
        bits, text = line.split(",")
        (number,) = struct.unpack(">d", int(bits, 16).to_bytes(8, "big"))
        if rfc8785.dumps(number) != text.encode():
            wrong.append(line)
    assert wrong == []
    assert len(lines) == 10_000
