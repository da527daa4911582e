"""Tables derived from one another, written by delta-rs with the lineage that a governed write records."""

import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, custom_metadata
from lakewarden.catalog.storage.file_store import canonical

__all__ = ["head", "ids", "overwrite", "reading", "write"]


def write(
    place: Path | str,
    *numbers: int,
    reads: Mapping[str, Path | str] | None = None,
    mode: str = "append",
    said: LineageRecord | None = None,
) -> int:
    """Write ids to a table, as derived from the heads of `reads` (by `table_id`),
    or from what a job `said` when it read.
    Returns the version."""
    record = said or reading(reads or {}, Operation.APPEND if mode == "append" else Operation.OVERWRITE)
    write_deltalake(
        str(place),
        pa.table({"id": pa.array(numbers, pa.int64())}),
        mode="overwrite" if mode == "overwrite" else "append",
        commit_properties=CommitProperties(custom_metadata=custom_metadata(record)),
    )
    return head(place)


def reading(
    reads: Mapping[str, Path | str],
    operation: Operation = Operation.APPEND,
    options: dict[str, str] | None = None,
) -> LineageRecord:
    """What a job says that has read the heads of `reads` and has not written yet."""
    return LineageRecord(
        run_id=uuid.uuid4().hex,
        operation=operation,
        user="ana",
        inputs=tuple(_input(table_id, one, options) for table_id, one in reads.items()),
    )


def overwrite(place: Path | str, *numbers: int, reads: Mapping[str, Path | str] | None = None) -> int:
    """Write a table anew, as derived from the heads of `reads` (by `table_id`). Returns the version."""
    return write(place, *numbers, reads=reads, mode="overwrite")


def head(place: Path | str) -> int:
    return DeltaTable(str(place)).version()


def ids(place: Path | str, version: int | None = None) -> list[int]:
    """What a version holds, sorted."""
    return sorted(DeltaTable(str(place), version=version).to_pyarrow_table().column("id").to_pylist())


def _input(table_id: str, place: Path | str, options: dict[str, str] | None = None) -> LineageInput:
    table = DeltaTable(str(place), storage_options=options)
    return LineageInput(
        table_id=table_id,
        location=canonical(str(place)),
        format="delta",
        version=table.version(),
        format_id=str(table.metadata().id),
    )
