"""Offsets of Iceberg's source, and readers of tables that a test makes by hand."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.model.rows import Source, TableRow, TableState
from support.builders.iceberg_histories import SnapshotTable, location, uuid_of

__all__ = ["Shelf", "iceberg_offset", "managed"]

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def iceberg_offset(number: int, files: int, *, whole: bool = False) -> str:
    """So many files of a snapshot of `SnapshotTable` were read; -1: the table had none."""
    snapshot = number if number < 0 else 100 * number
    told = {"version": 1, "snapshot_id": snapshot, "position": files, "scan_all_files": whole}
    return json.dumps(told)


def managed(table_id: str, *, format_: str = "iceberg", state: TableState = TableState.ACTIVE) -> TableRow:
    """The row of such a table."""
    return TableRow(
        row=1,
        table_id=table_id,
        name=f"db.{table_id}",
        format=format_,
        location=location(table_id),
        owner="ana",
        source=Source.REGISTER,
        state=state,
        registered_at=_NOW,
        registered_by="ana",
        updated_at=_NOW,
        updated_by="ana",
        format_ids=(uuid_of(table_id),),
    )


@dataclass
class Shelf:
    """A reader of nothing but commits. `read` has the locations that were asked for."""

    tables: dict[str, SnapshotTable]
    troubles: Mapping[str, Exception] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    format: str = "iceberg"

    def commits(self, place: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        self.read.append(place)
        if place in self.troubles:
            raise self.troubles[place]
        table = next((one for name, one in self.tables.items() if location(name) == place), None)
        return iter(() if table is None else table.commits)
