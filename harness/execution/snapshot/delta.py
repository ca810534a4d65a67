"""The difference between two snapshots, as an overlay layer has to show it.

A folder that stays a folder is walked into and not listed. One that goes, or gives way to
something else, is listed once: a whiteout or the new entry hides all that it held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.model.digest import Digest
from harness.model.tree import Folder, LoadFolder, Node, load_folder


@dataclass(frozen=True, slots=True)
class Step:
    """What one path of a layer has to show.

    Attributes:
        path: in the tree.
        before: what the layers below show there.
        after: what shall be there; None hides it.
    """

    path: bytes
    before: Node | None
    after: Node | None

    @property
    def replaces_with_folder(self) -> bool:
        """Tell whether a folder takes the place of something that was none."""
        return self.before is not None and self.after is not None and self.after.type == "folder"


def compare_trees(
    load: LoadFolder, old: Digest | None, new: Digest, prefix: bytes = b""
) -> Iterator[Step]:
    """Yield every difference, a folder before what it holds.

    Args:
        load: reads the folder objects of both.
        old: a folder's digest; None when everything is new.
        new: the other's.
        prefix: path of the folder with a slash behind it.

    Raises:
        VerificationError: a folder object is missing or damaged.
        InputError: one is malformed.
    """
    if old == new:
        return
    before: Folder = {} if old is None else load_folder(load, old)
    after = load_folder(load, new)
    for name in sorted(before.keys() | after.keys()):
        was, now, path = before.get(name), after.get(name), prefix + name
        if was == now:
            continue
        stays = was is not None and was.type == "folder"
        if now is None or now.type != "folder":
            yield Step(path, was, now)
            continue
        if not (was and stays):
            yield Step(path, was, now)
        yield from compare_trees(
            load, was.digest if was and stays else None, now.digest, path + b"/"
        )
