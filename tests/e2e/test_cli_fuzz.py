"""Hostile words, files and state for every command and flag: an error in words, never a trace.

The tree of commands is walked, so that a new command or option is fuzzed from its first day. No
engine answers. Each seed is fixed: a failure comes again with the words that it prints.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click
import pytest

from harness.cli.main import COMMANDS, harness
from harness.execution.image.lock import LockedImage, lock_bytes
from harness.model.digest import digest_of
from harness.model.image import Image
from tests.e2e.driver import Bed, Done, listing, run_here
from tests.e2e.project import make_project

pytestmark = pytest.mark.timeout(240)

CODES = frozenset({0, 1, 2, 3, 4, 5, 6, 7, 130})
"""Documented exit codes of an error or an end; 70 would be a fault of ours."""

ROUNDS = 12
NOBODY = "unix:///nonexistent/docker.sock"

TEXTS = (
    "",
    "-",
    "--",
    "-x",
    "--no-such-option",
    ".",
    "..",
    "/",
    "../../../../etc/passwd",
    "few",
    "change",
    "harness.yaml",
    "recipes",
    "policies/reviewers",
    "/dev/null",
    "/dev/zero",
    "no/such/file",
    "harness.yaml/below-a-file",
    "a" * 300,
    "a" * 70_000,
    "\x1b[2J\x1b]0;owned\x07",
    "line\nbreak",
    "\u202egnp.exe",
    "\udcff\udcfe",
    "\U0001f4a5",
    "0",
    "-1",
    "99999999999999999999",
    "1e9",
    "NaN",
    "True",
    "name=value",
    "=",
    "a=b=c",
    "name=" + "v" * 5000,
    "[bold]markup[/bold",
    "%s%n{0}${param.x}",
    "sha256:",
    "sha256:" + "0" * 64,
    "sha256:" + "G" * 64,
    "0" * 64,
    "deadbeefcafe",
    "20260101-000000-abcdef",
)


def leaves() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that does something, with its words."""
    waiting: list[tuple[tuple[str, ...], click.Command | None]] = [
        ((name,), harness.get_command(click.Context(harness), name)) for name in COMMANDS
    ]
    while waiting:
        words, command = waiting.pop(0)
        if isinstance(command, click.Group):
            waiting += [((*words, name), below) for name, below in command.commands.items()]
        elif command is not None:
            yield words, command


LEAVES = dict(leaves())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Bed:
    """Return a bed with a project and an approved plan; its image is a name only."""
    bed = Bed(home=tmp_path_factory.mktemp("fuzz"), engine=NOBODY)
    for folder in (bed.project, bed.state):
        folder.mkdir(mode=0o700)
    image = Image(
        name="python",
        image_id=digest_of(b"image"),
        platform="linux/amd64",
        definition=digest_of(b"definition"),
    )
    locked = LockedImage(image=image, built_on="2026-01-31T12:00:00.000Z")
    (bed.state / "images.lock").write_bytes(lock_bytes({"python": locked}))
    make_project(bed)
    bed.facts["plan"] = bed("seal", "few", "--json").json()["plan"]
    bed("approve", bed.facts["plan"], "--key", str(bed.key("ada")))
    bed.keep("approved")
    return bed


@pytest.fixture
def bed(made: Bed, monkeypatch: pytest.MonkeyPatch) -> Bed:
    made.come_back("approved")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(made.project)
    return made


def require_words(ended: Done, words: tuple[str, ...]) -> None:
    text = ended.out + ended.err
    shown = f"{[word[:200] for word in words]}: {ended.code}: {text[:2000]}"
    assert ended.code in CODES, shown
    assert "Traceback" not in text, shown
    assert "internal" not in text, shown
    assert "\x1b" not in text, shown
    assert "\u202e" not in text, shown
    assert ended.code == 0 or ended.err.strip(), shown


def some_words(chance: random.Random, command: click.Command, texts: list[str]) -> list[str]:
    """Return options and arguments for a command: some right in form, all hostile in value."""
    words: list[str] = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            count = chance.choice((0, 1, 1, 1, 1, 2))
            words += [chance.choice(texts) for _ in range(count)]
        elif chance.random() < 0.35:
            words.append(chance.choice(parameter.opts))
            if isinstance(parameter, click.Option) and not parameter.is_flag:
                words.append(chance.choice(texts))
    if chance.random() < 0.2:
        chance.shuffle(words)
    return words


def writes_by_design(words: tuple[str, ...]) -> bool:
    if tuple(words[:2]) == ("state", "backup"):
        return True
    return words[0] in ("init", "demo") or "--write-statement" in words


@pytest.mark.parametrize("name", LEAVES, ids=" ".join)
def test_hostile_words(name: tuple[str, ...], bed: Bed) -> None:
    chance = random.Random(f"words of {' '.join(name)}")  # noqa: S311 - the same each time
    texts = [
        *TEXTS,
        *(bed.facts["plan"], bed.facts["plan"][7:19]) * 6,
        *(str(bed.key("ada")), str(bed.key("eve")), str(bed.project), str(bed.state)) * 2,
    ]
    before = listing(bed.project)
    for _ in range(ROUNDS):
        words = (*name, *some_words(chance, LEAVES[name], texts))
        ended = run_here(*words)
        require_words(ended, words)
        if writes_by_design(words):
            bed.come_back("approved")
            before = listing(bed.project)
        else:
            assert listing(bed.project) == before, words
            assert ended.code != 0 or "apply" not in words


BYTES = (
    b"",
    b"\x00",
    b"\xff\xfe\x00",
    b"- a\n- b\n",
    b"just text",
    b"version: 1\nversion: 1\n",
    b"version: [1\n",
    b"version: !!python/object/apply:os.system [id]\n",
    b"a: &a [*a]\n",
    b"[" * 5000,
    b"{a: " * 2000,
    b"version: 1\nname: " + b"x" * 400_000,
    b"version: 1\nname: \x1b[2J\n",
    b"version: 999999999999999999999999\n",
    b"version: 1\nname: 1\nrecipes: ../..\npolicies: /etc\n",
    b"version: 1\nkind: {}\nsteps: 1\nimage: []\nlimits: x\nparameters: [1]\nenv: 3\n",
    b"version: 1\nisolation: []\napproval: {plan: -1, rules: {}, reviewers: ../../x}\n",
    b"ada namespaces= ssh-ed25519 AAAA\n",
    b"version: 1\r\nname: s\xc3\xa4mple\r\n",
)

FILES = ("harness.yaml", "recipes/few.yaml", "policies/default.yaml", "policies/reviewers")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _missing(path: Path) -> None:
    path.unlink()


def _endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DEEDS: Mapping[str, Callable[[Path], None]] = {
    "folder": _folder,
    "loop": _loop,
    "missing": _missing,
    "endless": _endless,
    "fifo": _fifo,
    **{
        f"bytes {number}": lambda path, data=data: path.write_bytes(data)  # type: ignore[misc]
        for number, data in enumerate(BYTES)
    },
}


def all_of_it(bed: Bed) -> list[tuple[str, ...]]:
    """Return a plain use of every command that reads a project."""
    plan, key = bed.facts["plan"], str(bed.key("ada"))
    return [
        ("recipe", "list"),
        ("recipe", "check"),
        ("recipe", "show", "few"),
        ("seal", "few"),
        ("plan", "list"),
        ("plan", "show", plan),
        ("approve", plan, "--key", key),
        ("reject", plan, "--key", key),
        ("run", plan),
        ("run", "few"),
        ("diff", plan[7:19]),
        ("apply", plan),
        ("undo", plan),
        ("runs", "list"),
        ("runs", "show", "x"),
        ("ledger", "list"),
        ("ledger", "verify"),
        ("key", "show"),
        ("key", "rotate"),
        ("project", "list"),
        ("state", "backup", str(bed.home / "backup.tar")),
        ("image", "list"),
    ]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("deed", DEEDS)
def test_broken_files_of_the_project(file: str, deed: str, bed: Bed) -> None:
    path = bed.project / file
    DEEDS[deed](path)
    before = listing(bed.project)
    chance = random.Random(f"{file} {deed}")  # noqa: S311 - the same each time
    for words in chance.sample(all_of_it(bed), 8):
        require_words(run_here(*words), words)
    assert listing(bed.project) == before


STATE = (
    "images.lock",
    "host/*",
    "ledger/entries.jsonl",
    "ledger/checkpoint",
    "ledger/frontier",
    "ledger/lock",
    "projects/*/project.json",
    "projects/*/*",
    "layers/*",
    "objects",
    "objects/*/*",
    "runs",
    "runs.lock",
    "projects",
)


@pytest.mark.parametrize("what", STATE)
@pytest.mark.parametrize("deed", ["garbage", "empty", "folder", "file", "loop", "missing"])
def test_broken_state(what: str, deed: str, bed: Bed) -> None:
    for path in sorted(bed.state.glob(what)):
        _break(path, deed)
    before = listing(bed.project)
    for words in all_of_it(bed):
        require_words(run_here(*words), words)
    assert listing(bed.project) == before


def _break(path: Path, deed: str) -> None:
    was_file = path.is_file()
    if deed in ("garbage", "empty") and was_file:
        path.chmod(0o600)
        path.write_bytes(b"\x00garbage\xff\n" if deed == "garbage" else b"")
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    match deed:
        case "folder":
            path.mkdir(mode=0o700)
            (path / "inner").mkdir(mode=0o700)
        case "loop":
            path.symlink_to(path.name)
        case "missing":
            pass
        case _:
            path.write_bytes(b"garbage\n" if deed == "garbage" else b"")


@pytest.mark.parametrize(
    "environment",
    [
        {"HARNESS_STATE": "relative/path"},
        {"HARNESS_STATE": "/dev/null"},
        {"HARNESS_STATE": "/proc/self/no"},
        {"HARNESS_STATE": "/" + "x" * 5000},
        {"DOCKER_HOST": "ssh://somewhere"},
        {"DOCKER_HOST": "tcp://"},
        {"DOCKER_HOST": "unix://relative"},
        {"DOCKER_HOST": "unix://" + "/x" * 200},
        {"DOCKER_HOST": "unix:///dev/null"},
        {"HOME": "/nonexistent"},
        {"XDG_CONFIG_HOME": "/dev/null"},
        {"USER": "", "LOGNAME": ""},
        {"HARNESS_DEBUG": ""},
    ],
    ids=lambda value: " ".join(f"{key}={text[:20]}" for key, text in value.items()),
)
def test_a_broken_environment(
    environment: Mapping[str, str], bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    before = listing(bed.project)
    for words in [*all_of_it(bed), ("setup", "--check"), ("image", "build", "python")]:
        require_words(run_here(*words), words)
    assert listing(bed.project) == before


def test_a_reader_that_left_is_no_fault(bed: Bed) -> None:
    for words in (("ledger", "list"), ("plan", "show", bed.facts["plan"]), ("--help",)):
        assert bed.to_nobody(*words) == (0, b"")
