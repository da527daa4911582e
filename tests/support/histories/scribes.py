"""Who executes the writes of a random history: delta-rs, with the records that a governed write makes."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, custom_metadata

__all__ = ["Content", "Deed", "DeltaRs", "Kind", "Row", "Scribe", "Source", "numbers", "rows_at", "table_of"]

Row = tuple[int, frozenset[int]]
"""The number of the write that made a row, its key; and of all writes its value depends on."""
Content = tuple[Row, ...]


class Kind(StrEnum):
    """What happens to a table. `again`: it is made anew from itself and what else is read. `several`: two tables are
    changed by one statement, each by what the other held before."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    PARTIAL = "partial overwrite"
    MERGE = "merge"
    UPDATE = "update"
    DELETE = "delete"
    AGAIN = "again"
    COMPACT = "compact"
    RESTORE = "restore"
    SEVERAL = "several"


_OPERATIONS: Final = {
    Kind.APPEND: Operation.APPEND,
    Kind.OVERWRITE: Operation.OVERWRITE,
    Kind.PARTIAL: Operation.PARTIAL_OVERWRITE,
    Kind.MERGE: Operation.MERGE,
    Kind.UPDATE: Operation.UPDATE,
    Kind.DELETE: Operation.DELETE,
    Kind.AGAIN: Operation.OVERWRITE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A version of a managed table that a write reads."""

    table_id: str
    location: str
    format: str
    version: int
    format_id: str
    sql: str
    """What a query says for it. At head it names no version, so that lakewarden is what pins it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deed:
    """One write of one row: `reads` are the numbers it and its sources depend on, `before` the table's rows till then.

    `key` is a row that is there: an update and a merge change it, a delete takes it away,
    a partial overwrite replaces it.
    """

    kind: Kind
    place: str
    number: int
    sources: tuple[Source, ...]
    key: int
    before: Content
    reads: frozenset[int]
    sql: str
    """What a statement calls the table."""


class Scribe(Protocol):
    """Writes to tables of two columns: `write` and `depends`, numbers with commas between them."""

    @property
    def name(self) -> str:
        """What commits are counted under."""

    def write(self, deed: Deed) -> None:
        """One commit, with a record of what it read."""

    def compact(self, place: str) -> bool:
        """Whether there was anything to compact."""

    def restore(self, place: str, version: int) -> None:
        """Go back to a version."""

    def write_both(self, one: Deed, other: Deed) -> bool:
        """Update a row of each of two tables by one statement, if this engine has such; whether it has."""

    def intrude(self, place: str, number: int) -> None:
        """Append a row without any record, as somebody does who knows nothing of lakewarden. Raises whatever the engine
        does if it was not committed."""


class DeltaRs:
    """Writes by delta-rs."""

    name = "delta_rs"

    def write(self, deed: Deed) -> None:
        record = LineageRecord(
            run_id=uuid.uuid4().hex,
            operation=_OPERATIONS[deed.kind],
            user="ana",
            inputs=tuple(_input(one) for one in deed.sources),
            reads_self=deed.kind is Kind.AGAIN,
        )
        _write(deed, CommitProperties(custom_metadata=custom_metadata(record)))

    def compact(self, place: str) -> bool:
        return bool(DeltaTable(place).optimize.compact()["numFilesAdded"])

    def restore(self, place: str, version: int) -> None:
        DeltaTable(place).restore(version)

    def write_both(self, one: Deed, other: Deed) -> bool:
        return False

    def intrude(self, place: str, number: int) -> None:
        write_deltalake(place, table_of([(number, frozenset({number}))]), mode="append")


def rows_at(place: str) -> Content:
    """What a table holds, read from the table, sorted."""
    table = DeltaTable(place).to_pyarrow_table()
    found = zip(table["write"].to_pylist(), table["depends"].to_pylist(), strict=True)
    rows = ((write, frozenset(map(int, depends.split(",")))) for write, depends in found)
    return tuple(sorted(rows, key=lambda row: (row[0], sorted(row[1]))))


def table_of(rows: Iterable[Row]) -> pa.Table:
    """Rows as they are stored."""
    kept = list(rows)
    return pa.table(
        {
            "write": pa.array([write for write, _ in kept], pa.int64()),
            "depends": pa.array([numbers(depends) for _, depends in kept], pa.string()),
        }
    )


def numbers(depends: Iterable[int]) -> str:
    """Numbers as they are stored."""
    return ",".join(map(str, sorted(depends)))


def _write(deed: Deed, how: CommitProperties) -> None:
    place, depends = deed.place, numbers(deed.reads)
    new = (deed.number, deed.reads)
    match deed.kind:
        case Kind.APPEND:
            write_deltalake(place, table_of([new]), mode="append", commit_properties=how)
        case Kind.OVERWRITE:
            write_deltalake(place, table_of([new]), mode="overwrite", commit_properties=how)
        case Kind.AGAIN:
            made = deed.reads.union(*(one for _, one in deed.before))
            rows = [(write, made) for write, _ in deed.before]
            write_deltalake(
                place, table_of([*rows, (deed.number, made)]), mode="overwrite", commit_properties=how
            )
        case Kind.PARTIAL:
            rows = [(deed.key, deed.reads)]
            where = f"write = {deed.key}"
            write_deltalake(place, table_of(rows), mode="overwrite", predicate=where, commit_properties=how)
        case Kind.DELETE:
            DeltaTable(place).delete(f"write = {deed.key}", commit_properties=how)
        case Kind.UPDATE:
            DeltaTable(place).update(
                predicate=f"write = {deed.key}",
                updates={"depends": f"depends || ',{depends}'"},
                commit_properties=how,
            )
        case Kind.MERGE:
            source = table_of([new, (deed.key, deed.reads)])
            merger = DeltaTable(place).merge(
                source, "t.write = s.write", source_alias="s", target_alias="t", commit_properties=how
            )
            merger = merger.when_matched_update({"depends": "t.depends || ',' || s.depends"})
            merger.when_not_matched_insert_all().execute()
        case Kind.COMPACT | Kind.RESTORE | Kind.SEVERAL:
            raise AssertionError("no write of one table")


def _input(one: Source) -> LineageInput:
    return LineageInput(
        table_id=one.table_id,
        location=one.location,
        format=one.format,
        version=one.version,
        format_id=one.format_id,
    )
