"""The engine without Spark, listing a folder as Spark's VACUUM does: by the world's clock, blind to inner tables."""

import os
from collections.abc import Sequence
from pathlib import Path

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.storage.file_store import FileEntry, local_path
from support.adversary.reading import rebuilt, versions_of
from support.fakes.engine import FakeEngine

__all__ = ["PlainEngine"]


class PlainEngine(FakeEngine):
    """Finds every file unreferenced that head does not name by a path relative to the table. What is too
    young, promised or somebody else's is for the caller to know: no second opinion hides a mistake."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)

    def agreed(self, location: str, *, candidates: Sequence[FileEntry]) -> Sequence[FileEntry]:
        return candidates

    def unreferenced(self, location: str) -> Sequence[str]:
        folder = local_path(location) or Path()
        head = rebuilt(folder, versions_of(folder)[-1])
        named = frozenset() if head is None else head.files
        found = []
        for place, folders, names in os.walk(folder):
            folders[:] = [one for one in folders if not one.startswith(("_", "."))]
            inside = os.path.relpath(place, folder)
            paths = (
                name if inside == "." else f"{inside}/{name}"
                for name in names
                if not name.startswith(("_", "."))
            )
            found += [path for path in paths if path not in named]
        return found
