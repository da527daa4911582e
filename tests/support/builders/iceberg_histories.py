"""Iceberg tables as their metadata tells them, snapshot by snapshot, and the plan that follows: no files, no Spark."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from lakewarden.catalog.formats.iceberg.commits import LEFT, RESTORED, commit_of
from lakewarden.catalog.formats.iceberg.metadata import TableMetadata, parse_metadata
from lakewarden.catalog.formats.iceberg.references import snapshot_names
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.graph.build import build_graph
from lakewarden.catalog.lineage.graph.graph import VersionGraph
from lakewarden.catalog.lineage.recording import rows_from
from lakewarden.catalog.lineage.versions import Version, history_of
from lakewarden.catalog.model.lineage_record import (
    RUN_ID,
    LineageInput,
    LineageRecord,
    Operation,
    custom_metadata,
)
from lakewarden.catalog.model.rows import LineageRow
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.jobs.rollback.plan.model import RollbackPlan, TablePlan
from lakewarden.jobs.rollback.plan.request import RollbackRequest
from lakewarden.jobs.rollback.plan.rollback_planner import plan_rollback
from support.builders.tables_by_hand import facts

__all__ = ["NOW", "ONE_FILE", "SnapshotTable", "graph_of", "location", "plan_of", "planned", "uuid_of"]

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_BEGIN: Final = 1_700_000_000_000
ONE_FILE: Final = {"added-data-files": "1"}
"""What a summary says of a write of one file."""


def uuid_of(table_id: str) -> str:
    """The UUID of a table here."""
    return f"{ord(table_id[0]):08x}-0000-0000-0000-000000000001"


def location(table_id: str) -> str:
    """Where it lies."""
    return f"file:///w/{table_id}"


@dataclass(kw_only=True)
class SnapshotTable:
    """One table. A snapshot is called by its number; whatever main was set to is remembered, as Iceberg does."""

    table_id: str
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    main: int | None = None
    branches: dict[str, int] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    moves: list[tuple[int, int]] = field(default_factory=list)
    """Numbers that main was set to, each with a time."""
    schema: int = 0
    """The id of the schema that the next snapshot has."""

    def write(
        self,
        number: int,
        *reads: tuple[str, int],
        on: int | None = None,
        branch: str | None = None,
        aside: bool = False,
        operation: Operation | None = Operation.APPEND,
        made: str = "append",
        reads_self: bool = False,
        **summary: str,
    ) -> "SnapshotTable":
        """A governed write (`operation` None: by a stranger), made on main or on another snapshot (0: on nothing). It
        goes to main, to a `branch`, or is kept `aside`. In `summary`, `added_files` means
        `added-files`, and `wap__id` `wap.id`."""
        parent = (self.main or 0) if on is None else on
        told = {key.replace("__", ".").replace("_", "-"): value for key, value in summary.items()} or dict(
            ONE_FILE
        )
        if operation is not None:
            record = LineageRecord(
                run_id=f"run-{number}",
                operation=operation,
                user="ana",
                inputs=tuple(
                    LineageInput(
                        table_id=table,
                        location=location(table),
                        format="iceberg",
                        version=version,
                        format_id=uuid_of(table),
                    )
                    for table, version in reads
                ),
                reads_self=reads_self,
            )
            told |= {**custom_metadata(record), RUN_ID: record.run_id}
        return self._made(number, parent, made, told, branch=branch, aside=aside)

    def compacted(self, number: int, *, on: int | None = None, aside: bool = False) -> "SnapshotTable":
        """The rows of main in other files."""
        told = {**ONE_FILE, "deleted-data-files": "2"}
        return self._made(number, (self.main or 0) if on is None else on, "replace", told, aside=aside)

    def restored(self, number: int, *, to: int, run_id: str) -> "SnapshotTable":
        """A rollback of ours."""
        told = {LEFT: str(self.main), RESTORED: str(to), RUN_ID: run_id}
        return self._made(number, to, "replace", told)

    def set_back(self, number: int | None) -> "SnapshotTable":
        """Somebody sets main to a snapshot (`rollback_to_snapshot`), or empties it."""
        self.main = number
        if number is not None:
            self.moves.append((number, self._time()))
        return self

    def expire(self, *numbers: int) -> "SnapshotTable":
        """These snapshots go; what is remembered of main's moves before and up to them goes with them."""
        self.snapshots = [one for one in self.snapshots if one["sequence-number"] not in numbers]
        places = [place for place, (number, _) in enumerate(self.moves) if number in numbers]
        self.moves = self.moves[places[-1] + 1 :] if places else self.moves
        return self

    @property
    def metadata(self) -> TableMetadata:
        """As the reader parses it."""
        refs = {name: {"snapshot-id": _id(one), "type": "branch"} for name, one in self.branches.items()}
        refs |= {name: {"snapshot-id": _id(one), "type": "tag"} for name, one in self.tags.items()}
        body = {
            "format-version": 2,
            "table-uuid": uuid_of(self.table_id),
            "location": location(self.table_id),
            "last-updated-ms": _BEGIN,
            "properties": {},
            "schemas": [{"schema-id": one, "type": "struct", "fields": []} for one in range(self.schema + 1)],
            "current-schema-id": self.schema,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "snapshots": self.snapshots,
            "current-snapshot-id": -1 if self.main is None else _id(self.main),
            "refs": refs,
            "snapshot-log": [{"snapshot-id": _id(number), "timestamp-ms": at} for number, at in self.moves],
            "metadata-log": [],
        }
        return parse_metadata(orjson.dumps(body), "a metadata file")

    @property
    def commits(self) -> list[Commit]:
        """As the reader tells them."""
        metadata = self.metadata
        names = snapshot_names(metadata)
        return [commit_of(metadata, one, names[one.id]) for one in metadata.in_order()]

    @property
    def history(self) -> tuple[Version, ...]:
        """As a plan reads them."""
        return history_of(self.commits, head_id=uuid_of(self.table_id))

    @property
    def rows(self) -> tuple[LineageRow, ...]:
        """What a sweep that looks now writes down of the whole log."""
        return rows_from(self.table_id, self.commits, format_id=None, at=NOW)

    def _made(
        self,
        number: int,
        parent: int,
        operation: str,
        told: Mapping[str, str],
        *,
        branch: str | None = None,
        aside: bool = False,
    ) -> "SnapshotTable":
        one = {
            "snapshot-id": _id(number),
            "sequence-number": number,
            "timestamp-ms": self._time(),
            "summary": {"operation": operation, "total-data-files": "1", **told},
            "manifest-list": "a list",
            "schema-id": self.schema,
            **({"parent-snapshot-id": _id(parent)} if parent else {}),
        }
        self.snapshots.append(one)
        if branch is not None:
            self.branches[branch] = number
        elif not aside:
            self.set_back(number)
        return self

    def _time(self) -> int:
        return _BEGIN + 1000 * (len(self.snapshots) + len(self.moves))


def graph_of(
    tables: Iterable[SnapshotTable], recorded: Iterable[LineageRow] = (), runs: frozenset[str] = frozenset()
) -> VersionGraph:
    """The graph of tables as they are now, and of what is on record."""
    every = list(tables)
    ids = [one.table_id for one in every]
    return build_graph(
        codec(LINEAGE).encode(list(recorded)),
        {one.table_id: one.history for one in every},
        places={location(one): one for one in ids},
        newest={one: uuid_of(one) for one in ids},
        heads={one.table_id: one.main or 0 for one in every},
        runs=runs,
        branching=frozenset(ids),
    )


def plan_of(
    request: RollbackRequest, *tables: SnapshotTable, recorded: Iterable[LineageRow] = ()
) -> RollbackPlan:
    """The plan for tables as they are now, with what is on record."""
    graph = graph_of(tables, recorded, request.runs)
    known = {one.table_id: facts(one.table_id, format_id=uuid_of(one.table_id)) for one in tables}
    return plan_rollback(request, graph, {one.table_id: one.history for one in tables}, known)


def planned(plan: RollbackPlan, table_id: str) -> TablePlan | None:
    """One table of a plan; None where the plan leaves it out."""
    return next((one for one in plan.tables if one.table_id == table_id), None)


def _id(number: int) -> int:
    return 100 * number
