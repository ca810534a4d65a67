from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.model.files.mistakes import Mistakes, Place
from harness.model.files.strict_yaml import MAX_BYTES, parse_yaml


def read(data: bytes) -> Any:
    mistakes = Mistakes("f.yaml")
    node = parse_yaml(data, mistakes)
    mistakes.stop_if_any("f.yaml")
    return node.plain()


def refusal_of(data: bytes) -> InputError | None:
    try:
        read(data)
    except InputError as error:
        return error
    return None


def mistakes_in(data: bytes) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(data)
    return [str(issue) for issue in caught.value.issues]


def test_mappings_lists_and_scalars() -> None:
    text = b"a: 1\nb: [x, 'no', \"010\", true]\nc:\n  d: |\n    two\n    lines\n"
    assert read(text) == {"a": 1, "b": ["x", "no", "010", True], "c": {"d": "two\nlines\n"}}


def test_every_node_and_key_knows_its_place() -> None:
    root = parse_yaml(b"a: 1\nlist:\n  - x\n  - {k: v}\n", Mistakes("f"))
    assert root.keys == {"a": Place(1, 1), "list": Place(2, 1)}
    assert isinstance(root.value, dict)
    items = root.value["list"].value
    assert isinstance(items, tuple)
    assert [item.place for item in items] == [Place(3, 5), Place(4, 5)]
    assert items[1].keys == {"k": Place(4, 6)}


@pytest.mark.fault("L065")
def test_line_ends_and_byte_order_mark_change_nothing() -> None:
    unix = b"a: |\n  x\n  y\nb: 1\n"
    windows = b"\xef\xbb\xbf" + unix.replace(b"\n", b"\r\n")
    assert read(windows) == read(unix) == {"a": "x\ny\n", "b": 1}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "f.yaml:1:1: the file is empty"),
        (b"# only a comment\n", "f.yaml:1:1: the file is empty"),
        (b"a: 1\nb: 2\na: 3\n", "f.yaml:3:1: key 'a' is here twice, first in line 1"),
        (b"a: &x 1\n", "f.yaml:1:4: anchor &x is not allowed (fix: remove it, or quote it)"),
        (b"b: *x\n", "f.yaml:1:4: alias *x is not allowed (fix: quote it, or repeat it)"),
        (b"a: !!str 1", "f.yaml:1:4: tag 'tag:yaml.org,2002:str' is not allowed"),
        (b"a: !keep", "f.yaml:1:4: tag '!keep' is not allowed"),
        (b"a: !", "f.yaml:1:4: tag '!' is not allowed"),
        (b"<<: {a: 1}", "f.yaml:1:1: << is a special sign"),
        (b"1: x", "f.yaml:1:1: key: expected text (fix: quote it)"),
        (b"? [a]\n: b", "f.yaml:1:3: key: expected text"),
        (b"on: push", "f.yaml:1:1: on is a boolean to some YAML readers"),
        (b"--- 1\n--- 2\n", "f.yaml:2:1: a second document starts here"),
        (b"%YAML 1.1\n--- a", "f.yaml:1:1: a % directive is not allowed"),
        (b"a:\tb", "f.yaml:1:3: a tab is not allowed"),
        (b"a: b\rc: d", "f.yaml:1:5: the invisible character U+000D is not allowed"),
        (b"a: \x00", "f.yaml:1:4: the invisible character U+0000 is not allowed"),
        (b'a: "\\0"', "f.yaml:1:4: the invisible character U+0000 is not allowed"),
        (b'a: "\\ud800"', "f.yaml:1:4: the invisible character U+D800 is not allowed"),
        ("a: \u202eevil".encode(), "f.yaml:1:4: the invisible character U+202E is not allowed"),
        (b'a: "\\u202e"', "f.yaml:1:4: the invisible character U+202E is not allowed"),
        (b"\xef\xbb\xbfab\xff", "f.yaml:1:3: byte 0xff at offset 5 is not UTF-8"),
        (b"x: *.py", "(fix: quote a text that starts with '*')"),
        (b"a: b: c", "(fix: quote a text that holds ': ')"),
        (b"a: [1", "f.yaml:1:"),
        (b"[" * 100_000, "f.yaml:1:33: yaml: expected at most 32 levels"),
        (b"- a\n" * 10_001, "f.yaml:10000:3: yaml: expected at most 10000 values"),
        (b"a" * (MAX_BYTES + 1), "f.yaml:1:1: file: expected at most 262144 bytes, got 262145"),
        (b'"\\U00110000"', "f.yaml:1:1: yaml: cannot be read after this place"),
        (b"%YAML " + b"1" * 5000 + b".1\n--- a", "f.yaml:1:1: yaml: cannot be read"),
    ],
)
def test_what_is_refused_and_where(data: bytes, expected: str) -> None:
    found = mistakes_in(data)
    assert len(found) == 1
    assert expected in found[0]


def test_all_mistakes_are_reported_in_the_order_of_the_file() -> None:
    found = mistakes_in(b"b: no\na: 010\na: &x y\nc: 0x1\n")
    assert [line.split(": ")[0] for line in found] == [
        "f.yaml:1:4",
        "f.yaml:2:4",
        "f.yaml:3:1",
        "f.yaml:3:4",
        "f.yaml:4:4",
    ]


def test_a_hundred_mistakes_are_enough() -> None:
    with pytest.raises(InputError, match="150 mistakes, the first 100 shown") as caught:
        read(b"".join(b"k%d: no\n" % number for number in range(150)))
    assert len(caught.value.issues) == 100


def test_a_hostile_file_name_stays_on_its_line() -> None:
    mistakes = Mistakes("a\n\x1b[2J.yaml")
    assert mistakes.where(Place(1, 2)) == "a\\x0a\\x1b[2J.yaml:1:2"


def test_a_broken_value_is_marked_and_the_rest_is_read() -> None:
    mistakes = Mistakes("f")
    root = parse_yaml(b"a: no\nb: 2\n", mistakes)
    assert isinstance(root.value, dict)
    assert (root.value["a"].broken, root.value["b"].broken) == (True, False)
    assert len(mistakes.found) == 1


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.text("abcdefgh", min_size=1), children, max_size=4)
    ),
    max_leaves=20,
)


@given(_JSON)
def test_json_without_invisible_characters_reads_as_json(value: Any) -> None:
    # U+FFFE and U+FFFF end no plane here: PyYAML can't read them
    text = json.dumps(value, ensure_ascii=True).replace("\\ufffe", "x").replace("\\uffff", "x")
    if "\\ud8" in text or "\\ud9" in text or "\\uda" in text or "\\udb" in text:
        text = json.dumps(value, ensure_ascii=False).replace("\ufffe", "x").replace("\uffff", "x")
    assert read(text.encode()) == json.loads(text)


_PIECES = st.sampled_from(
    [
        *"-?:,[]{}#&*!|>'\"%@`~=\n \\aA0159._",
        *("\n  ", "- ", ": ", "? ", "<<", "no", "|2-\n", "!!", "%YAML 1.1\n", "---\n", "...\n"),
        *("\\x41", "\\U0011FFFF", "\t", "\r\n", "\r", "\x00", "\u2028", "\ufeff", "\U0001f600"),
    ]
)


@settings(max_examples=400)
@given(st.binary(max_size=200) | st.lists(_PIECES, max_size=80).map(lambda p: "".join(p).encode()))
def test_any_bytes_are_read_or_refused_with_a_place(data: bytes) -> None:
    refusal = refusal_of(data)
    if refusal is not None:
        assert refusal.issues
        assert all(issue.where.startswith("f.yaml:") for issue in refusal.issues)


@pytest.mark.parametrize(
    "data",
    [
        b"'" + b"\n" * 250_000,
        b"{" * 130_000,
        b"? " * 130_000,
        b"&" * 250_000,
        b'"' + b"\\x41" * 60_000,
        b"\t" * 250_000,
        b"[a,\n" * 60_000,
        b"a: [" + b"x, " * 9_000 + b"]",
        b"1" * 250_000,
        b"0" + b"_" * 250_000,
        b"1:" * 120_000,
        b"2001-01-01 " + b" " * 250_000 + b"x",
    ],
)
@pytest.mark.timeout(10)
def test_no_hostile_file_takes_long(data: bytes) -> None:
    refusal = refusal_of(data)
    assert refusal is None or len(str(refusal)) < 200
