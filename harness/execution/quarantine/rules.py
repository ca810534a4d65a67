"""Which of a worker's changes may be imported: the recipe's paths, git's, the project's ignores.

Patterns are written as in .gitignore and the last one that matches wins, so that `!` always
narrows: `src/` and then `!src/vendor/` leaves the vendor folder out. (In a .gitignore file such
a line has no effect below an excluded folder; here that would widen what may be written.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pathspec import PathSpec

from harness.errors import InputError
from harness.model.recipe import Output
from harness.model.relpath import MAX_DEPTH, MAX_PATH, STAGE_PREFIX, parse_path, touches_git


def is_byte_code(path: bytes) -> bool:
    """Tell whether a path is Python's cached byte code (PEP 3147): nobody can review it."""
    return b"__pycache__" in path.split(b"/") or path.endswith(b".pyc")


class ImportRules:
    """Decides by path alone.

    Args:
        writable: gitignore-style patterns of the paths whose changes may be imported; none means
            that nothing may.
        outputs: the declared outputs, which become artifacts.
        is_ignored: whether the snapshot would have left a new path out; gets the path, and
            whether it is a folder.

    Raises:
        InputError: a pattern or the path of an output is malformed.
    """

    def __init__(
        self,
        *,
        writable: Iterable[str],
        outputs: Iterable[Output],
        is_ignored: Callable[[bytes, bool], bool],
    ) -> None:
        self.outputs = tuple(outputs)
        self._output_paths = {parse_path(output.path.encode("utf-8")) for output in self.outputs}
        try:
            self._writable = PathSpec.from_lines("gitignore", writable)
        except ValueError as error:
            raise InputError(f"writable: {error}") from error
        self._is_ignored = is_ignored

    def reason(self, path: bytes, *, folder: bool, new: bool) -> str:
        """Return why a change is a by-product, or an empty text when it may be imported.

        Args:
            path: inside the tree.
            folder: whether a folder stands there, or stood there when it is gone.
            new: whether the snapshot has nothing there.
        """
        if touches_git(path):
            return "git"
        if len(path) > MAX_PATH or path.count(b"/") >= MAX_DEPTH:
            return "not-importable"
        if path in self._output_paths and not folder:
            return "output"
        if path.rpartition(b"/")[2].startswith(STAGE_PREFIX):
            return "ignored"
        if new and (is_byte_code(path) or self._is_ignored(path, folder)):
            return "ignored"
        text = path.decode("utf-8", "surrogateescape")
        return "" if self._writable.match_file(text + "/" * folder) else "outside-writable"
