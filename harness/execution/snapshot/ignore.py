"""The `.gitignore` files of a tree, each for its own folder and what lies below it.

Rules, as in gitignore(5):
    * The deepest file that says anything about a path decides; in it the last pattern that matches.
    * Nothing below an ignored folder can be taken back.
    * Only files of the tree count: no global excludes, no `.git/info/exclude` and no index, so that
      the same tree gives the same snapshot on every machine. A `.gitignore` that is a link is none.

`IgnoreChain` serves a walk that goes down folder by folder. `IgnoreRules` answers for any path, by
the files of a snapshot, which a worker can't edit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from harness.model.digest import Digest
from harness.model.patterns import PathPatterns, parse_ignore_file
from harness.model.tree import Folder, LoadFolder, load_folder

IGNORE_FILE = b".gitignore"


class IgnoreChain:
    """The rules that hold in one folder: its own file, then those of the folders above.

    Args:
        folder: path of the folder with a slash behind it; empty for the root.
        content_digest: digest of its `.gitignore`.
        read: returns the bytes of that file; called when a decision first needs them.
        above: the rules of the folder above; None when there are none.

    Attributes:
        digest: names every rule that holds here; equal digests decide alike.
    """

    def __init__(
        self,
        *,
        folder: bytes,
        content_digest: str,
        read: Callable[[], bytes],
        above: IgnoreChain | None,
    ) -> None:
        self._folder = folder
        self._read = read
        self._above = above
        self._patterns: PathPatterns | None = None
        self.digest: str = name_rules(above.digest if above else "", folder, content_digest)

    def matches(self, path: bytes, *, is_folder: bool) -> bool:
        """Tell whether the path itself is ignored, its parents being known not to be.

        Raises:
            HarnessError: whatever `read` raises.
        """
        if self._patterns is None:
            self._patterns = parse_ignore_file(self._read())
        verdict = self._patterns.decide(path[len(self._folder) :], is_folder=is_folder)
        if verdict is None:
            return self._above is not None and self._above.matches(path, is_folder=is_folder)
        return verdict


def name_rules(above: str, folder: bytes, content_digest: str) -> str:
    """Return a digest of the rules that hold in a folder with a `.gitignore`.

    Args:
        above: digest of the rules of the folder above; empty when there are none.
        folder: path with a slash behind it; empty for the root.
        content_digest: digest of the `.gitignore`.
    """
    named = [above, folder.hex(), content_digest]
    return hashlib.sha256("\n".join(named).encode("ascii")).hexdigest()


class IgnoreRules:
    """What a snapshot's own `.gitignore` files say about any path, one it does not have included.

    Args:
        load: returns bytes by digest: folder objects and the contents of `.gitignore` files.
        root: the snapshot.
    """

    def __init__(self, load: LoadFolder, root: Digest) -> None:
        self._load = load
        self._root = root
        self._known: dict[bytes, tuple[Folder | None, IgnoreChain | None]] = {}

    @classmethod
    def from_tree(cls, load: LoadFolder, root: Digest) -> IgnoreRules:
        """Return the rules of a snapshot; its folders are read as paths ask for them."""
        return cls(load, root)

    def is_ignored(self, path: bytes, is_folder: bool) -> bool:  # noqa: FBT001 - a predicate's shape
        """Tell whether the path, or a folder above it, is ignored.

        Raises:
            VerificationError: a folder object or a `.gitignore` is missing or damaged.
            InputError: a folder object is malformed.
        """
        names = path.split(b"/")
        for depth in range(1, len(names) + 1):
            upper = b"".join(name + b"/" for name in names[: depth - 1])
            _, chain = self._folder(upper)
            part = b"/".join(names[:depth])
            if chain and chain.matches(part, is_folder=is_folder or depth < len(names)):
                return True
        return False

    def _folder(self, path: bytes) -> tuple[Folder | None, IgnoreChain | None]:
        """Return a folder (None: the snapshot has none) and its rules; `path` ends with a slash."""
        if path not in self._known:
            self._known[path] = self._enter(path)
        return self._known[path]

    def _enter(self, path: bytes) -> tuple[Folder | None, IgnoreChain | None]:
        digest, chain = self._root, None
        if path:
            upper, _, name = path[:-1].rpartition(b"/")
            above, chain = self._folder(upper + b"/" if upper else b"")
            node = above.get(name) if above is not None else None
            if node is None or node.type != "folder":
                return None, chain
            digest = node.digest
        folder = load_folder(self._load, digest)
        own = folder.get(IGNORE_FILE)
        if own is not None and own.type == "file":
            content = own.digest
            chain = IgnoreChain(
                folder=path, content_digest=content, read=lambda: self._load(content), above=chain
            )
        return folder, chain
