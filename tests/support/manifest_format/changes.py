"""How an engine changes a manifest table: the next generation, if nobody was first."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.catalog.errors import ConflictError
from support.manifest_format.manifest import FOLDER, Entry, File, Manifest, parse, published

__all__ = ["changed", "founded", "load", "new_file", "rows_in", "with_entry", "with_properties"]


def load(root: Path) -> Manifest:
    """The newest generation."""
    return parse(max((root / FOLDER).glob("*.json")).read_bytes())


def founded(root: Path, run_id: str) -> Manifest:
    """The first generation of a table out of the Parquet files in a folder; the table that is there already."""
    if (root / FOLDER).exists():
        return load(root)
    now, paths = datetime.now(UTC), sorted(root.glob("*.parquet"))
    columns = {field.name: str(field.type) for field in pq.read_schema(paths[0])}
    files = tuple(
        File(
            path=path.name, size_bytes=path.stat().st_size, rows=pq.read_metadata(path).num_rows, added_at=now
        )
        for path in paths
    )
    empty = Manifest.empty(**columns)
    first = Entry(
        number=empty.next_number(),
        parent=None,
        operation="create",
        committed_at=now,
        files=files,
        run_id=run_id,
    )
    published(root, empty.with_version(first))
    return load(root)


def changed(root: Path, change: Callable[[Manifest], Manifest], *, requires: int | None = None) -> Manifest:
    """Make the next generation. Raises `ConflictError` if `main` is not `requires`, or somebody else was first."""
    before = load(root)
    if requires is not None and before.main != requires:
        raise ConflictError(f"The table is at version {before.main}, not at {requires}.")
    after = change(before)
    if not published(root, after):
        raise ConflictError(f"Somebody else made generation {after.generation} of the table first.")
    return after


def with_entry(before: Manifest, operation: str, files: Sequence[File], **more: Any) -> Manifest:
    """The next generation, with one version more, made from `main`, which it becomes."""
    entry = Entry(
        number=before.next_number(),
        parent=before.main,
        operation=operation,
        committed_at=datetime.now(UTC),
        files=tuple(files),
        **more,
    )
    return before.with_version(entry)


def with_properties(before: Manifest, properties: dict[str, str], run_id: str) -> Manifest:
    """The next generation, with a version that has the same files and these properties."""
    made = with_entry(before, "properties", before.versions[before.main].files, run_id=run_id)
    return replace(made, properties=properties)


def new_file(root: Path, rows: pa.Table) -> File:
    """Rows as a file that no version has so far."""
    path = f"packed-{uuid4()}.parquet"
    pq.write_table(rows, root / path)
    size = (root / path).stat().st_size
    return File(path=path, size_bytes=size, rows=rows.num_rows, added_at=datetime.now(UTC))


def rows_in(root: Path, files: Sequence[File]) -> pa.Table:
    """What is in some files."""
    return pa.concat_tables([pq.read_table(root / file.path) for file in files])
