"""The programs a reader of a recipe must know as scripts: shells, starters, interpreters.

Sources: each program's own manual page for its options; the shells that
Debian 12 packages. A table, so that a missing one is one word to add.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_SHELL_NAMES = """
ash bash csh dash elvish fish hush ksh lksh mksh nu oksh osh pdksh posh powershell pwsh rbash rc
sh tcsh xonsh yash ysh zsh
"""
_LINE_TAKER_NAMES = "parallel runuser script su watch"
_STARTER_NAMES = """
busybox bwrap bundle chroot chrt coverage doas env exec fakeroot find firejail flock gdb hatch
ionice ltrace nice nohup npx nsenter pdm pipx poetry prlimit setarch setpriv setsid stdbuf strace
sudo systemd-run taskset time timeout toybox unbuffer unshare uv uvx valgrind xargs xvfb-run
"""

SHELLS = frozenset(_SHELL_NAMES.split())
LINE_TAKERS = frozenset(_LINE_TAKER_NAMES.split())
"""Programs that give what follows them to a shell."""

STARTERS = frozenset(_STARTER_NAMES.split())
"""Programs that start the program named among their arguments."""

LINE_OPTIONS: Mapping[str, tuple[str, str]] = {
    "env": ("S", "--split-string"),
    "flock": ("c", "--command"),
}
"""Starters that take a whole command line after one of these options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """How a program takes source inline.

    Attributes:
        source: option letters after which source follows.
        value: option letters after which some other value follows.
        ends: option letters (or words) after which everything belongs to the program run.
        long: long options, or first words, after which source follows.
        bare: the first item that is no option is source.
    """

    source: str = ""
    value: str = ""
    ends: str = ""
    long: tuple[str, ...] = ()
    bare: bool = False


_PYTHON = Interpreter(source="c", value="WX", ends="m")
_PERL = Interpreter(source="eE", value="I")
_RUBY = Interpreter(source="e", value="ICEr")
_NODE = Interpreter(source="ep", value="rC", long=("--eval", "--print"))
_LUA = Interpreter(source="e", value="l")
_AWK = Interpreter(source="e", value="vFi", ends="fE", long=("--source",), bare=True)

INTERPRETERS: Mapping[str, Interpreter] = {
    "python": _PYTHON,
    "pythonw": _PYTHON,
    "pypy": _PYTHON,
    "perl": _PERL,
    "ruby": _RUBY,
    "jruby": _RUBY,
    "node": _NODE,
    "nodejs": _NODE,
    "bun": _NODE,
    "deno": Interpreter(long=("eval",)),
    "php": Interpreter(source="rBRE", value="cdfz", long=("--run", "--process-code")),
    "lua": _LUA,
    "luajit": _LUA,
    "julia": Interpreter(source="eE", value="LJt", long=("--eval", "--print")),
    "rscript": Interpreter(source="e"),
    "r": Interpreter(source="e"),
    "groovy": Interpreter(source="e"),
    "scala": Interpreter(source="e"),
    "elixir": Interpreter(source="e", long=("--eval",)),
    "ghc": Interpreter(source="e"),
    "awk": _AWK,
    "gawk": _AWK,
    "mawk": _AWK,
    "nawk": _AWK,
    "make": Interpreter(source="E", value="fCIoW", long=("--eval",)),
    "gmake": Interpreter(source="E", value="fCIoW", long=("--eval",)),
}
