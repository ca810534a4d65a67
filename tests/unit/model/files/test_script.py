from __future__ import annotations

import shlex
import time

import pytest

from harness.model.files.script import find_script


@pytest.mark.parametrize(
    "line",
    """
    sh build.sh
    sh
    /bin/bash -c ls
    bash-5.2 -c ls
    ksh93 x
    fish --command ls
    busybox sh
    env sh
    env FOO=1 bash
    env -u A -C /x python3 -c y
    env -S "pytest -q"
    env -iS x
    env --split=x
    env -- sh
    env env env sh
    nice -n 5 sh
    timeout -k 1 5 sh -c x
    xargs -n 1 sh
    setsid -w zsh
    find . -exec sh -c x ;
    flock lock sh
    flock -c x lock
    watch ls
    su -c x
    uv run python -c x
    python -c x
    python3 -Ic x
    python3.11 -I -c x
    /usr/bin/python3 -cimport
    python -W error -c x
    python --check-hash-based-pycs always -c x
    python -c
    perl -ne x
    perl -i.bak -pe x
    perl -E x
    ruby -rjson -e x
    node -e x
    node -pe x
    node --eval x
    node --eval=x
    node --require m -e x
    deno eval x
    php -r x
    lua5.4 -e x
    awk {print}
    awk -F : {print}
    gawk -v a=b {print}
    make --eval=x all
    """.strip().split("\n"),
)
def test_these_are_scripts(line: str) -> None:
    assert find_script(shlex.split(line)) is not None


@pytest.mark.parametrize(
    "line",
    """
    pytest -c setup.cfg
    python
    python build.py -c y
    python -m pytest -c x
    python3 -Im pytest -c x
    python -W error -m x -c y
    node app.js -e production
    perl x.pl -e y
    ruby -S rake -e
    awk -f p.awk data
    gcc -c x.c
    tar -c x
    git grep bash
    make test
    env FOO=1 pytest -q
    timeout 5 pytest -q
    coverage run -m pytest
    ruff format .
    ./sh-like
    """.strip().split("\n"),
)
def test_these_are_not(line: str) -> None:
    assert find_script(shlex.split(line)) is None


def test_no_argv_is_no_script() -> None:
    assert find_script([]) is None


@pytest.mark.parametrize(
    ("line", "sources"),
    [
        ("sh build.sh x", set()),
        ("sh -c text name x", {1, 2}),
        ("bash -euo pipefail -c text x", {3, 4}),
        ("python -c text x", {2}),
        ("python -ctext x", {1}),
        ("env python -c text x", {3}),
        ("perl -e one -e two", {2, 4}),
        ("awk -F : text file", {3}),
        ("env -S text x", {1, 2, 3}),
        ("watch a b", {1, 2}),
    ],
)
def test_where_source_text_stands(line: str, sources: set[int]) -> None:
    script = find_script(line.split())
    assert script is not None
    assert script.sources == sources


def test_the_reason_names_the_program_and_what_started_it() -> None:
    script = find_script(["/usr/bin/timeout", "5", "python3.11", "-c", "x"])
    assert script is not None
    assert script.reason == "inline source for python, started by timeout"


@pytest.mark.parametrize(
    "argv",
    [
        ["env"] * 1000,
        ["env", *["flock", "env"] * 500],
        ["env", *["python", "--x"] * 500],
        ["1." * 30_000 + "x"],
        ["bash", *["-o"] * 1000],
    ],
)
def test_long_chains_take_no_time(argv: list[str]) -> None:
    start = time.perf_counter()
    find_script(argv)
    assert time.perf_counter() - start < 2
