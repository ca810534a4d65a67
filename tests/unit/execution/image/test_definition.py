from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import InputError
from harness.execution.image.definition import list_definitions, load_definition
from harness.store.resources import find_resources

LOCK = "a==1 --hash=sha256:" + "a" * 64 + "\n"
FILES = {
    "python/image.yaml": """\
version: 1
description: a test
base: {suite: bookworm, packages: [python3]}
python: {version: "3.11", requirements: requirements.lock}
check: [python3, --version]
""",
    "python/requirements.lock": LOCK,
    "init/init.c": "int main(void) { return 0; }\n",
    "bare/image.yaml": """\
version: 1
description: no Python
base: {suite: bookworm, packages: [make]}
check: [make, --version]
""",
    "builder/install.py": "print()\n",
    "builder/pip.lock": LOCK,
}


@pytest.fixture
def images(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_the_digest_does_not_depend_on_place_modes_or_byte_code(
    images: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = load_definition(images, "python").digest
    moved = tmp_path_factory.mktemp("other") / "images"
    images.rename(moved)
    (moved / "builder" / "install.py").chmod(0o755)
    (moved / "builder" / "__pycache__").mkdir()
    assert load_definition(moved, "python").digest == before


@pytest.mark.parametrize("name", sorted(set(FILES) - {"bare/image.yaml"}))
def test_every_file_is_part_of_the_digest(images: Path, name: str) -> None:
    before = load_definition(images, "python")
    path = images / name
    path.write_text(f"{path.read_text()}# more\n")
    after = load_definition(images, "python")
    assert after.digest != before.digest
    assert (after.init.digest != before.init.digest) == name.startswith("init/")


@pytest.mark.parametrize(
    ("name", "counts"),
    [("bare/image.yaml", True), ("init/init.c", True), ("builder/install.py", False)],
)
def test_an_image_without_wheels_has_nothing_of_python(
    images: Path, name: str, counts: bool
) -> None:
    before = load_definition(images, "bare")
    assert before.wheels is None
    path = images / name
    path.write_text(f"{path.read_text()}# more\n")
    assert (load_definition(images, "bare").digest != before.digest) is counts


def test_a_symlink_is_refused_without_being_followed(images: Path) -> None:
    (images / "python" / "extra").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="python/extra: expected a plain file"):
        load_definition(images, "python")


@pytest.mark.parametrize("name", ["init", "builder", "nothing"])
def test_what_has_no_definition_is_refused_and_the_known_ones_are_named(
    images: Path, name: str
) -> None:
    with pytest.raises(InputError, match="has no definition") as caught:
        load_definition(images, name)
    assert caught.value.hint == "there are: bare, python"


@pytest.mark.parametrize("name", ["../python", "Python", "python:latest", ""])
def test_a_name_is_only_a_name(images: Path, name: str) -> None:
    with pytest.raises(InputError, match="image name"):
        load_definition(images, name)


def test_the_definitions_that_come_with_the_package_are_sound() -> None:
    images = find_resources("images")
    assert list_definitions(images) == ("nodec", "python")
    wheels = load_definition(images, "python").wheels
    assert wheels
    assert {"pytest", "ruff"} <= {line.split("==")[0] for line in wheels.requirements}
    assert [line.split("==")[0] for line in wheels.pip] == ["pip"]
    assert load_definition(images, "nodec").wheels is None
