"""What users of manifest tables do: files come and go, `main` is moved by hand."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.catalog.model.lineage_record import LineageRecord, encode_record
from support.manifest_format.manifest import Entry, File, Manifest, parse, published

__all__ = ["ManifestWriter"]


@dataclass(kw_only=True)
class ManifestWriter:
    """Writes one table, whose only column is `x`. What it commits is committed at `now`, which the test moves."""

    root: Path
    now: datetime
    _start: Manifest = field(default_factory=lambda: Manifest.empty(x="long"))

    @property
    def newest(self) -> Path:
        """The file of the newest generation."""
        return max(self.root.joinpath("manifest").glob("*.json"))

    @property
    def manifest(self) -> Manifest:
        """The newest generation; an empty one for a table that nothing was written to."""
        is_there = self.root.joinpath("manifest").exists()
        return parse(self.newest.read_bytes()) if is_there else self._start

    def write(
        self, values: list[int], *, lineage: LineageRecord | None = None, operation: str = "append"
    ) -> int:
        """Append rows as one file, or `overwrite` all there are. Returns the new version."""
        path = f"rows-{self.manifest.next_number()}.parquet"
        self.root.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": pa.array(values, pa.int64())}), self.root / path)
        gone = [file.path for file in self._files()] if operation == "overwrite" else []
        size = (self.root / path).stat().st_size
        return self.commit(
            add=((path, size),), remove=gone, operation=operation, rows=len(values), lineage=lineage
        )

    def commit(
        self,
        *,
        add: tuple[tuple[str, int], ...] = (),
        remove: tuple[str, ...] | list[str] = (),
        operation: str = "append",
        rows: int = 10,
        lineage: LineageRecord | None = None,
        columns: tuple[tuple[str, str], ...] | None = None,
    ) -> int:
        """A new version on top of `main`, by files alone: paths and sizes. `columns` is its schema from now on.
        Returns its number."""
        before = self.manifest
        added = (File(path=path, size_bytes=size, rows=rows, added_at=self.now) for path, size in add)
        entry = Entry(
            number=before.next_number(),
            parent=before.refs.get("main"),
            operation=operation,
            committed_at=self.now,
            files=(*(file for file in self._files() if file.path not in remove), *added),
            run_id=None if lineage is None else lineage.run_id,
            lineage=None if lineage is None else encode_record(lineage),
            columns=columns,
        )
        assert published(self.root, before.with_version(entry))
        return entry.number

    def move_main(self, number: int) -> None:
        """Set `main` to another version, by hand and without a new one."""
        assert published(self.root, self.manifest.with_main(number))

    def protect(self, ref: str, number: int) -> None:
        """Keep a version from expiry."""
        assert published(self.root, self.manifest.with_refs(**{ref: number}))

    def rows(self) -> list[int]:
        """What `main` holds, in order."""
        found: list[int] = []
        for file in self._files():
            found += pq.read_table(self.root / file.path)["x"].to_pylist()
        return sorted(found)

    def _files(self) -> tuple[File, ...]:
        manifest = self.manifest
        return manifest.versions[manifest.main].files if manifest.refs else ()
