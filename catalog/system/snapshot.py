"""What the log of a system table says about one version: its files, its schema version, its highest numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from lakewarden.catalog.errors import OutdatedError, UnreadableError
from lakewarden.catalog.system.schema import (
    BUCKET,
    BUCKETS_PROPERTY,
    SCHEMA_VERSION,
    UNDER_WAY,
    UPGRADE_PROPERTY,
    VERSION_PROPERTY,
)

__all__ = ["Piece", "Snapshot", "take_snapshot"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """One data file."""

    path: str
    """Relative to the table."""
    bucket: int
    size_bytes: int
    rows: int | None
    """What the log says it holds."""
    added_ms: int
    """The time at which the file was added."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """One version of one system table."""

    version: int
    generation: int
    """Another number where this process has seen that the table was put back from a backup."""
    format_id: str
    schema_version: int
    buckets: int
    pieces: tuple[Piece, ...]
    highest: Mapping[str, int]
    """The largest value of each whole-number column that the log knows for every file."""
    upgrading: bool = False
    """In `lakewarden.tables` alone: whether an upgrade of all seven tables is under way."""

    def in_bucket(self, bucket: int) -> tuple[Piece, ...]:
        """The files of one bucket."""
        return tuple(piece for piece in self.pieces if piece.bucket == bucket)


def take_snapshot(handle: DeltaTable, name: str, *, generation: int = 0) -> Snapshot:
    """Read what a handle has loaded. Raises `OutdatedError` for a newer schema,
    `UnreadableError` for no table of ours."""
    metadata = handle.metadata()
    try:
        schema_version = int(metadata.configuration[VERSION_PROPERTY])
        buckets = int(metadata.configuration[BUCKETS_PROPERTY])
    except (KeyError, ValueError) as error:
        raise UnreadableError(
            f"lakewarden.{name} is a Delta table, but not one that lakewarden made.",
            hint="Point system.location at the right folder; `lakewarden init` makes a new "
            "store in an empty one.",
        ) from error
    if schema_version > SCHEMA_VERSION:
        raise OutdatedError(
            f"lakewarden.{name} has schema version {schema_version}, this lakewarden knows {SCHEMA_VERSION}.",
            hint="A newer lakewarden has upgraded the system tables: "
            "stop this one and install the newer version.",
        )
    files = pa.RecordBatchReader.from_stream(handle.get_add_actions(flatten=True)).read_all()
    return Snapshot(
        version=handle.version(),
        generation=generation,
        format_id=str(metadata.id),
        schema_version=schema_version,
        buckets=buckets,
        pieces=_pieces(files),
        highest=_highest(files),
        upgrading=metadata.configuration.get(UPGRADE_PROPERTY) == UNDER_WAY,
    )


def _pieces(files: pa.Table) -> tuple[Piece, ...]:
    wanted = ("path", f"partition.{BUCKET}", "size_bytes", "num_records", "modification_time")
    columns = [
        files.column(name).to_pylist() if name in files.column_names else [None] * len(files)
        for name in wanted
    ]
    return tuple(
        Piece(path=path, bucket=bucket, size_bytes=size, rows=rows, added_ms=added)
        for path, bucket, size, rows, added in zip(*columns, strict=True)
    )


def _highest(files: pa.Table) -> dict[str, int]:
    found = {}
    for name in files.column_names:
        column = files.column(name)
        if (
            name.startswith("max.")
            and pa.types.is_integer(column.type)
            and not column.null_count
            and len(column)
        ):
            found[name.removeprefix("max.")] = pc.max(column).as_py()
    return found
