"""Writes the reference of the Python API from the code itself.

Run `make reference` after a change of `harness/__init__.py` or `harness/api`; a test fails until it
was done.
"""  # noqa: INP001 - a script beside the page it writes, not a package

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path

import harness

DOCS = Path(__file__).resolve().parent
EXAMPLE = DOCS / "examples" / "land_a_change.py"

_HEAD = """\
# Python API

Written by `python docs/generate_python.py`.

`import harness` gives these names and no others. Everything goes through the same gates as the
commands: nothing runs or lands that `harness run` or `harness apply` would refuse. Nothing is asked
on a terminal, and nothing is printed; the logger `harness` says what was settled or left over.

Names, parameters and fields stay as they are within a major version; a value may get more fields.
A wrong type of argument is a `TypeError` or `AttributeError`, as anywhere in Python. Every other
error is a `HarnessError` with `message`, `hint`, `issues`, `code` and `exit_code`, as in
[errors](errors.md). A recipe that fails is no error: `Run.passed` is then false.

A `Project` may be used by several threads; each of its methods opens the state by itself.
"""


def render_page() -> str:
    """Return the page."""
    parts = [_HEAD, f"\n## Example\n\n```python\n{EXAMPLE.read_text('utf-8')}```\n"]
    parts.append("\n## Begin\n")
    parts.append(_entry("open_project", harness.open_project))
    parts.append("\n## Project\n")
    parts += [_entry(f"Project.{name}", member) for name, member in _methods(harness.Project)]
    parts.append("\n## Values\n\nFrozen dataclasses.\n")
    errors = []
    for name in harness.__all__:
        item = getattr(harness, name)
        if dataclasses.is_dataclass(item) and isinstance(item, type):
            parts.append(_value(name, item))
        elif isinstance(item, type) and issubclass(item, harness.HarnessError):
            errors.append(f"| `{name}` | {item.exit_code} | {_first_line(item)} |\n")
    parts.append("\n## Errors\n\n| class | exit code | meaning |\n|---|---|---|\n")
    return "".join([*parts, *errors])


def render_all() -> Iterator[tuple[Path, bytes]]:
    """Yield the generated file with the bytes it should have."""
    yield DOCS / "reference" / "python.md", render_page().encode()


def _methods(owner: type) -> Iterator[tuple[str, object]]:
    """Yield the public members of a class, in the order of its source."""
    for name, member in vars(owner).items():
        if not name.startswith("_"):
            yield name, member


def _entry(name: str, member: object) -> str:
    signature = ""
    if inspect.isfunction(member):
        whole = inspect.signature(member)
        rest = [item for item in whole.parameters.values() if item.name != "self"]
        signature = str(whole.replace(parameters=rest)).replace("'", '"')
    return f"\n### {name}\n\n```text\n{name}{signature}\n\n{inspect.getdoc(member)}\n```\n"


def _value(name: str, item: type) -> str:
    computed = [
        f"    {member}: {inspect.getdoc(found)}"
        for member, found in _methods(item)
        if isinstance(found, property)
    ]
    text = inspect.getdoc(item) or ""
    more = "\n\nComputed:\n" + "\n".join(computed) if computed else ""
    return f"\n### {name}\n\n```text\n{text}{more}\n```\n"


def _first_line(item: type) -> str:
    return (inspect.getdoc(item) or "").split("\n")[0]


if __name__ == "__main__":
    for target, content in render_all():
        target.write_bytes(content)
