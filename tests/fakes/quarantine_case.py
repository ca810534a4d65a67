"""An import over a base tree given as a value."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from harness.execution.quarantine.compare import NOTHING_GONE, Gone
from harness.execution.quarantine.import_changes import Imported, import_changes
from harness.execution.quarantine.rules import ImportRules
from harness.model.recipe import Output
from harness.store.blobs import BlobStore
from tests.fakes.trees import File, Tree, flatten, store_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineCase:
    """A base tree and the rules of an import.

    Attributes:
        blobs: the store.
        base: the tree below the upper layer.
        writable: patterns.
        outputs: declared outputs.
        ignored: paths the snapshot would leave out.
        max_bytes: most content to store.
        gone: what is gone without a mark in the upper layer.
    """

    blobs: BlobStore
    base: Tree
    writable: tuple[str, ...] = ("**",)
    outputs: tuple[Output, ...] = ()
    ignored: frozenset[bytes] = frozenset()
    max_bytes: int = 1 << 30
    gone: Gone = field(default_factory=lambda: NOTHING_GONE)

    def run(self, upper: Path) -> Imported:
        """Import an upper layer."""
        return import_changes(
            upper,
            gone=self.gone,
            base=store_tree(self.base, self.blobs).digest,
            load=self.blobs.get,
            read_base=self._read_base,
            rules=ImportRules(
                writable=self.writable,
                outputs=self.outputs,
                is_ignored=lambda path, _: path in self.ignored,
            ),
            blobs=self.blobs,
            max_bytes=self.max_bytes,
        )

    def _read_base(self, path: bytes) -> AbstractContextManager[BinaryIO]:
        item = flatten(self.base)[path]
        assert isinstance(item, File)
        return io.BytesIO(item.content)
