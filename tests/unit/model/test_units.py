from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from harness.model.limits import CEILING, SPELLING, WIDEST, Isolation, Limits, stricter, tighten
from harness.model.units import Unit, parse_amount, parse_size, spell_amount, suggest_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("0B", 0), ("1000B", 1000), ("64KiB", 65_536), ("512MiB", 512 << 20), ("2TiB", 2 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("512M", "write 512MiB"),
        ("512mb", "write 512MiB"),
        ("2 GiB", "write 2GiB"),
        ("2g", "write 2GiB"),
        ("100", "write 100B"),
        ("1.5GiB", ""),
        ("", ""),
        ("lots", ""),
        ("\u0661MiB", ""),
    ],
)
def test_other_sizes_are_refused_with_the_one_that_was_meant(text: str, fix: str) -> None:
    with pytest.raises(InputError, match="size: expected a number and B, KiB"):
        parse_size(text)
    assert suggest_size(text) == fix


@given(st.sampled_from(["cpus", "size", "time", "count"]), st.integers(1, 10**9))
def test_what_is_spelled_reads_as_the_same(unit: Unit, amount: int) -> None:
    spelled = spell_amount(unit, amount)
    assert parse_amount(unit, spelled if unit in ("size", "time") else Decimal(spelled)) == amount


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        ("cpus", Decimal("1.0001")),
        ("cpus", "2"),
        ("count", Decimal("1.5")),
        ("count", True),
        ("count", None),
        ("size", 5),
        ("time", 5),
        ("time", "0s"),
        ("time", "5 minutes"),
    ],
)
def test_what_is_no_amount_is_refused(unit: Unit, value: Decimal | int | str | None) -> None:
    with pytest.raises(InputError):
        parse_amount(unit, value)


def test_limits_are_refused_in_the_words_of_the_file() -> None:
    wanted = {"memory_bytes": 4 << 30, "wall_ms": 1, "cpu_millis": 2500}
    with pytest.raises(InputError) as caught:
        tighten(Limits(), wanted, {"memory_bytes": "r.yaml:3:4"})
    assert [str(issue).split(" (fix")[0] for issue in caught.value.issues] == [
        "r.yaml:3:4: limit memory: expected at most 2GiB, got 4GiB",
        "wall_ms: limit wall: expected at least 100ms, got 1ms",
        "cpu_millis: limit cpus: expected at most 2, got 2.5",
    ]


_LIMITS = st.builds(
    Limits, **{name: st.integers(0 if name == "idle_ms" else 1, 1000) for name in SPELLING}
)
_ISOLATIONS = st.builds(
    Isolation,
    limits=_LIMITS,
    tmp_exec=st.booleans(),
    allow_scripts=st.booleans(),
    admit_secrets=st.lists(st.sampled_from(["*", "a", "b"]), unique=True).map(tuple),
    workspace=st.sampled_from(["auto", "copy", "overlay"]),
)


@given(_ISOLATIONS, _ISOLATIONS)
def test_the_stricter_of_two_is_wider_than_neither(above: Isolation, below: Isolation) -> None:
    both = stricter(above, below)
    for name in SPELLING:
        values = [getattr(level.limits, name) for level in (above, below)]
        expected = min([value for value in values if value or name != "idle_ms"], default=0)
        assert getattr(both.limits, name) == expected
    assert both.tmp_exec <= above.tmp_exec
    assert both.allow_scripts <= min(above.allow_scripts, below.allow_scripts)
    assert set(both.admit_secrets) <= set(below.admit_secrets)
    assert both.workspace in (above.workspace, below.workspace)
    assert stricter(above, both) == both
    assert Isolation.from_json(both.to_json()) == both


def test_the_built_in_ceiling_restricts_no_default() -> None:
    assert stricter(WIDEST, Isolation()) == Isolation()
    assert tighten(CEILING, {"idle_ms": 1000}, {}).idle_ms == 1000
