"""Which changes may be imported *together*: what is left must still be a tree.

Deciding path by path can leave a file whose new folder was left out, or delete a folder that
still holds something. Rules:
    * A new folder comes along with what may be imported inside it.
    * A folder goes, or gives way to a file, only if everything it held goes; one that is not
      writable itself goes along when all it held was deleted and may be imported.
    * Where a file gave way to a folder and that may not be imported, nothing in the folder may.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.model.changeset import ByProduct, Change


@dataclass(frozen=True, slots=True)
class Candidate:
    """A difference between the snapshot and the upper layer, and what its path alone decides.

    Attributes:
        change: as it would be imported; None when it can't be.
        item: as it is shown when it is not imported; its reason is empty when the path may be
            imported.
    """

    change: Change | None
    item: ByProduct

    @property
    def importable(self) -> bool:
        """Tell whether the path alone lets it be imported."""
        return self.change is not None and not self.item.reason


def settle(found: list[Candidate]) -> tuple[tuple[Change, ...], tuple[ByProduct, ...]]:
    """Split what was found into changes that make a tree and by-products, both sorted by path."""
    candidates = {candidate.item.path: candidate for candidate in found}
    chosen = {path for path, candidate in candidates.items() if candidate.importable}
    blocked = _add_parents(candidates, chosen)
    _hold_folders(candidates, chosen)
    ordered = sorted(candidates)
    changes = (candidates[path].change for path in ordered if path in chosen)
    return (
        tuple(change for change in changes if change is not None),
        tuple(
            _left_out(candidates[path].item, blocked.get(path, ""))
            for path in ordered
            if path not in chosen
        ),
    )


def _add_parents(candidates: dict[bytes, Candidate], chosen: set[bytes]) -> dict[bytes, str]:
    """Choose the new folders above what is chosen; return what lies below a blocked one."""
    blocked: dict[bytes, str] = {}
    for path in sorted(chosen):
        change = candidates[path].change
        if change is None or change.after is None:
            continue
        parents = [parent for parent in _parents(path) if parent in candidates]
        stuck = [p for p in parents if p not in chosen and not _is_new_folder(candidates[p])]
        if stuck:
            chosen.discard(path)
            blocked[path] = candidates[stuck[0]].item.reason
        else:
            chosen.update(parents)
    return blocked


def _hold_folders(candidates: dict[bytes, Candidate], chosen: set[bytes]) -> None:
    """Keep folders that still hold something; let emptied ones go along with what they held."""
    holding: set[bytes] = set()
    emptied: set[bytes] = set()
    for path in sorted(candidates, reverse=True):
        candidate = candidates[path]
        before = candidate.change.before if candidate.change else None
        if before is not None and before.type == "folder":
            if path in holding:
                chosen.discard(path)
            elif path in emptied and candidate.item.op == "delete":
                chosen.add(path)
        if path in chosen:
            if before is not None:
                emptied.update(_parents(path))
        elif candidate.item.op != "add":
            holding.update(_parents(path))


def _is_new_folder(candidate: Candidate) -> bool:
    change = candidate.change
    return (
        change is not None
        and change.before is None
        and change.after is not None
        and change.after.type == "folder"
    )


def _parents(path: bytes) -> Iterator[bytes]:
    end = path.find(b"/")
    while end >= 0:
        yield path[:end]
        end = path.find(b"/", end + 1)


def _left_out(item: ByProduct, reason: str) -> ByProduct:
    reason = item.reason or reason or "outside-writable"
    return ByProduct(item.path, item.op, item.kind, item.size, reason)
