from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from harness.model.order import order_recipes


def test_what_is_needed_comes_first_and_the_given_order_is_kept_otherwise() -> None:
    needs = {"a": (), "b": ("d",), "c": (), "d": ("e",), "e": ()}
    assert order_recipes(["c", "b", "a"], needs) == ("c", "a", "e", "d", "b")
    assert order_recipes(["a", "c", "a"], needs) == ("a", "c")


@pytest.mark.parametrize("needs", [{"a": ("a",)}, {"a": ("b",), "b": ("c",), "c": ("a",)}])
def test_a_circle_is_named(needs: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(InputError, match=r"expected an order, got a circle: .*a.* -> "):
        order_recipes(["a"], needs)


@given(
    st.integers(1, 12).flatmap(
        lambda size: st.tuples(
            st.just(size),
            st.sets(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))),
            st.lists(st.integers(0, size - 1), min_size=1),
        )
    )
)
def test_every_order_has_what_is_needed_first(
    case: tuple[int, set[tuple[int, int]], list[int]],
) -> None:
    size, edges, asked = case
    needs = {
        f"r{late}": tuple(f"r{early}" for early, other in edges if other == late and early < late)
        for late in range(size)
    }
    ordered = order_recipes([f"r{number}" for number in asked], needs)
    assert len(set(ordered)) == len(ordered)
    assert {f"r{number}" for number in asked} <= set(ordered)
    for position, name in enumerate(ordered):
        assert set(needs[name]) <= set(ordered[:position])
