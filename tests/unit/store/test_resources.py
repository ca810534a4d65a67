from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import StateError
from harness.store.resources import find_resources


def test_a_checkout_has_its_data_beside_the_package(tmp_path: Path) -> None:
    (tmp_path / "harness").mkdir()
    (tmp_path / "images").mkdir()
    assert find_resources("images", package=tmp_path / "harness") == tmp_path / "images"


def test_a_wheel_carries_its_data_inside_and_a_stranger_beside_it_does_not_count(
    tmp_path: Path,
) -> None:
    inside = tmp_path / "harness" / "_data" / "images"
    inside.mkdir(parents=True)
    (tmp_path / "images").mkdir()
    assert find_resources("images", package=tmp_path / "harness") == inside


def test_a_broken_installation_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="the folder policies is missing"):
        find_resources("policies", package=tmp_path / "harness")


def test_this_installation_has_image_definitions() -> None:
    assert (find_resources("images") / "python" / "image.yaml").is_file()
