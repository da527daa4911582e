"""Worlds as real Delta tables, written by delta-rs as a foreign program does that declares its lineage in its
commits."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from support.stranger_oracle.steps import Look, Step
from support.stranger_oracle.world import Commit, Kind, Read

__all__ = ["Lake"]

OPERATIONS: Final = {
    "append": ("append", Kind.APPEND),
    "append nothing": ("append", Kind.APPEND),
    "merge": ("merge", Kind.CHANGE),
    "update": ("update", Kind.CHANGE),
    "delete": ("delete", Kind.CHANGE),
    "partial": ("partial overwrite", Kind.CHANGE),
    "overwrite": ("overwrite", Kind.OVERWRITE),
    "overwrite nothing": ("overwrite", Kind.OVERWRITE),
    "replace": ("replace", Kind.OVERWRITE),
}
UPKEEP: Final = {
    "optimize": Kind.UPKEEP,
    "property": Kind.PROPERTY,
    "columns": Kind.COLUMNS,
    "restore": Kind.RESTORE,
}
SCHEMA: Final = pa.schema([("x", pa.int64()), ("part", pa.int64())])


class Lake:
    """A folder with a table for each name, and the commits as they were meant, version by version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commits: dict[str, list[Commit]] = {}
        self.uuids: dict[str, list[str]] = {}
        self._rows = 0

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def play(self, step: Step) -> None:
        """Make the step's commit, where it can be made: a first step makes the table,
        a RESTORE needs somewhere to go."""
        head = len(self.commits.get(step.table, ())) - 1
        if head < 0 and step.deed != "append":
            return
        if step.deed == "restore" and step.behind > head:
            return
        known = Commit(kind=UPKEEP[step.deed]) if step.deed in UPKEEP else self._known(step)
        back_to = head - step.behind if step.deed == "restore" else 0
        self._deed(step.deed)(step.table, self._properties(step, known, head), back_to)
        made = DeltaTable(self.path(step.table))
        while len(self.commits.setdefault(step.table, [])) <= made.version():
            commits = self.commits[step.table]
            added, removed = _moved(self.path(step.table), len(commits))
            live = ((commits[-1].live if commits else frozenset()) - removed) | added
            moved = bool(added or removed)
            commits.append(replace(known, back_to=back_to, paths=added, live=live, moved=moved))
            self.uuids.setdefault(step.table, []).append(str(made.metadata().id))

    def rows(self, name: str, version: int | None = None) -> list[dict[str, Any]]:
        """What a table holds, in an order of its own."""
        table = DeltaTable(self.path(name), version=version).to_pyarrow_table()
        return sorted(table.to_pylist(), key=lambda row: (row["x"], row["part"]))

    def _known(self, step: Step) -> Commit:
        """What the record will say, as far as it is to be believed."""
        believed = step.record in ("full", "short")
        reads = [read for look in step.looks if (read := self._read(look)) is not None]
        return Commit(
            kind=OPERATIONS[step.deed][1],
            told=step.record == "full" or step.deed == "replace",
            anew=step.deed == "replace",
            reads=tuple(reads) if believed else (),
            own=believed and step.own and bool(self.commits.get(step.table)),
            run=uuid4().hex if step.record != "none" else "",
        )

    def _read(self, look: Look) -> Read | None:
        head = len(self.commits.get(look.table, ())) - 1
        if head < 0:
            return None
        version = max(0, head - look.behind)
        after = None if look.span is None else version - look.span
        return Read(
            table=look.table, version=version, after=after if after is not None and after >= 0 else None
        )

    def _properties(self, step: Step, known: Commit, head: int) -> CommitProperties | None:
        if step.deed in UPKEEP or step.record == "none":
            return None
        operation = OPERATIONS[step.deed][0]
        reads = known.reads
        if step.record == "false":
            operation = "delete" if operation == "append" else "append"
            reads = tuple(read for look in step.looks if (read := self._read(look)) is not None)
        record: dict[str, Any] = {
            "v": 1,
            "run_id": known.run,
            "operation": operation,
            "user": "ana",
            "inputs": [self._input(one) for one in reads],
            "reads_self": step.own and head >= 0,
        }
        if step.record == "short":
            record["missing_inputs"] = 1
        return CommitProperties(custom_metadata={"lakewarden.lineage": json.dumps(record)})

    def _input(self, read: Read) -> dict[str, Any]:
        since = {} if read.after is None else {"from_version": read.after}
        return {
            "location": f"file://{self.path(read.table)}",
            "format": "delta",
            "version": read.version,
            "format_id": self.uuids[read.table][read.version],
            **since,
        }

    def _deed(self, deed: str) -> Callable[[str, CommitProperties | None, int], None]:
        return {
            "append": self._append,
            "append nothing": self._append_nothing,
            "overwrite": self._overwrite,
            "overwrite nothing": self._overwrite_nothing,
            "partial": self._partial,
            "merge": self._merge,
            "update": self._update,
            "delete": self._delete,
            "replace": self._replace,
            "restore": self._restore,
            "optimize": self._optimize,
            "property": self._property,
            "columns": self._columns,
        }[deed]

    def _new(self, count: int = 2, part: int | None = None) -> pa.Table:
        first, self._rows = self._rows, self._rows + count
        numbers = list(range(first, first + count))
        return pa.table(
            {"x": numbers, "part": [one % 2 if part is None else part for one in numbers]}, schema=SCHEMA
        )

    def _open(self, name: str) -> DeltaTable:
        return DeltaTable(self.path(name))

    def _some(self, name: str) -> int:
        rows = self.rows(name)
        return int(rows[0]["x"]) if rows else -1

    def _write(self, name: str, rows: pa.Table, properties: CommitProperties | None, mode: Any) -> None:
        write_deltalake(self.path(name), self._fitted(name, rows), mode=mode, commit_properties=properties)

    def _fitted(self, name: str, rows: pa.Table) -> pa.Table:
        """The rows with the columns that the table has by now."""
        if name in self.commits:
            for field in self._open(name).schema().fields[len(SCHEMA) :]:
                rows = rows.append_column(field.name, pa.nulls(len(rows), pa.int64()))
        return rows

    def _append(self, name: str, properties: CommitProperties | None, _: int) -> None:
        self._write(name, self._new(), properties, "append")

    def _append_nothing(self, name: str, properties: CommitProperties | None, _: int) -> None:
        self._write(name, self._new(0), properties, "append")

    def _overwrite(self, name: str, properties: CommitProperties | None, _: int) -> None:
        self._write(name, self._new(), properties, "overwrite")

    def _overwrite_nothing(self, name: str, properties: CommitProperties | None, _: int) -> None:
        self._write(name, self._new(0), properties, "overwrite")

    def _partial(self, name: str, properties: CommitProperties | None, _: int) -> None:
        rows = self._fitted(name, self._new(part=1))
        write_deltalake(
            self.path(name), rows, mode="overwrite", predicate="part = 1", commit_properties=properties
        )

    def _merge(self, name: str, properties: CommitProperties | None, _: int) -> None:
        rows = pa.concat_tables(
            [self._new(1), pa.table({"x": [self._some(name)], "part": [0]}, schema=SCHEMA)]
        )
        (
            self._open(name)
            .merge(rows, "t.x = s.x", source_alias="s", target_alias="t", commit_properties=properties)
            .when_matched_update({"part": "s.part"})
            .when_not_matched_insert({"x": "s.x", "part": "s.part"})
            .execute()
        )

    def _update(self, name: str, properties: CommitProperties | None, _: int) -> None:
        self._open(name).update(
            {"part": "part + 2"}, predicate=f"x = {self._some(name)}", commit_properties=properties
        )

    def _delete(self, name: str, properties: CommitProperties | None, _: int) -> None:
        self._open(name).delete(f"x = {self._some(name)}", commit_properties=properties)

    def _replace(self, name: str, properties: CommitProperties | None, _: int) -> None:
        table = self._open(name)
        DeltaTable.create(
            self.path(name), schema=table.schema(), mode="overwrite", commit_properties=properties
        )

    def _restore(self, name: str, _: CommitProperties | None, back_to: int) -> None:
        self._open(name).restore(back_to)

    def _optimize(self, name: str, _: CommitProperties | None, __: int) -> None:
        self._open(name).optimize.compact()

    def _property(self, name: str, _: CommitProperties | None, __: int) -> None:
        table = self._open(name)
        table.alter.set_table_properties({"team.note": str(table.version())}, raise_if_not_exists=False)

    def _columns(self, name: str, _: CommitProperties | None, __: int) -> None:
        table = self._open(name)
        field = Field(f"extra{table.version()}", PrimitiveType("long"), nullable=True)
        table.alter.add_columns([field])


def _moved(folder: str, version: int) -> tuple[frozenset[str], frozenset[str]]:
    """The files that a commit added and removed, as its log entry says."""
    lines = (Path(folder) / "_delta_log" / f"{version:020}.json").read_text(encoding="utf-8").splitlines()
    actions = [json.loads(line) for line in lines]
    added = frozenset(one["add"]["path"] for one in actions if "add" in one)
    return added, frozenset(one["remove"]["path"] for one in actions if "remove" in one)
