"""Rollbacks on small real Delta tables in this process: real logs, a real journal, the engine without Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from lakewarden.catalog.clock import Clock, SystemClock
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackState, RollbackStep, Source, TableRow
from lakewarden.catalog.registry.service import row_of
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import ROLLBACKS, TABLES
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.jobs.rollback.execute.saga import Saga
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.journal.step_rows import head_row, next_rows
from lakewarden.jobs.rollback.journal.steps import NO_VERSION, TableStep
from lakewarden.jobs.rollback.journal.stored_plan import StoredPlan, encode_plan
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.plan.request import RollbackRequest
from lakewarden.jobs.runs.port import Engine
from support.fakes.engine import FakeEngine
from support.fakes.pure_changes import PureStore
from support.fakes.tools import OneFormat

__all__ = ["Lake"]

NO_PLAN = RollbackPlan(request=RollbackRequest(seeds=()), tables=(), hash="none")


@dataclass
class Lake:
    """Tables by name below `folder`, and the journal of their rollbacks. With `root`, a URI, the tables are there."""

    folder: Path
    clock: Clock = field(default_factory=SystemClock)
    root: str | None = None

    def __post_init__(self) -> None:
        self.reader = DeltaReader()
        self.engine: Engine = FakeEngine(self.clock)
        self.store: DeltaSystemStore = PureStore(
            canonical(str(self.folder / "system")), StorageOptions(), actor="test"
        )
        self.store.create(system_rows(self.store, now=self.clock.now(), actor="test"))
        self.journal = Journal(store=self.store, clock=self.clock)

    def path(self, name: str) -> Path:
        return self.folder / "lake" / name

    def place(self, name: str) -> str:
        """Where a table is, as engines are told: a path, or a URI below `root`."""
        return str(self.path(name)) if self.root is None else f"{self.root}/{name}"

    def location(self, name: str) -> str:
        return canonical(self.place(name))

    def append(self, name: str, *numbers: int, batch: tuple[str, int] | None = None) -> int:
        """A user appends rows, perhaps as a stream's batch (application id, number). Returns the version."""
        apps = None if batch is None else [Transaction(*batch)]
        write_deltalake(
            self.place(name),
            pa.table({"id": pa.array(numbers, pa.int64())}),
            mode="append",
            commit_properties=CommitProperties(app_transactions=apps),
        )
        return self.head(name)

    def head(self, name: str) -> int:
        return DeltaTable(self.place(name)).version()

    def rows(self, name: str, version: int | None = None) -> list[int]:
        """The ids that a version holds, sorted."""
        table = DeltaTable(self.place(name), version=version).to_pyarrow_table()
        return sorted(table.column("id").to_pylist())

    def contents(self, *names: str) -> dict[str, list[int]]:
        return {name: self.rows(name) for name in names}

    def seen(self, name: str) -> Observation:
        seen = self.reader.observe(self.location(name))
        assert isinstance(seen, Observation), seen
        return seen

    def step(self, name: str, to: int, wave: int = 0, **changes: Any) -> TableStep:
        """Take a table from its present head to a version, or what `changes` say."""
        seen = self.seen(name)
        bare = TableStep(
            table_id=f"id-{name}",
            name=f"db.{name}",
            location=self.location(name),
            from_version=seen.version,
            to_version=to,
            wave=wave,
            format_id=seen.format_id,
        )
        return replace(bare, **changes)

    def without(self, name: str, *versions: int, wave: int = 0) -> TableStep:
        """Take the files of some versions out of a table."""
        kind = RollbackStep.REMOVE_FILES
        return self.step(name, min(versions) - 1, wave, kind=kind, versions=versions)

    def again(self, name: str, version: int, wave: int = 0) -> TableStep:
        """Add the files of a version again, after a restore that lost them."""
        return self.step(name, version, wave, kind=RollbackStep.REAPPLY, versions=(version,))

    def aside(self, name: str, kind: RollbackStep, wave: int = 0) -> TableStep:
        """Drop or quarantine a table."""
        return self.step(name, NO_VERSION, wave, kind=kind)

    def manage(self, name: str) -> None:
        """Give a table a row."""
        now = self.clock.now()
        row = TableRow(
            row=100 + len(self.store.rows(TABLES).all()),
            table_id=f"id-{name}",
            name=f"db.{name}",
            location=self.location(name),
            owner="ana",
            source=Source.REGISTER,
            registered_at=now,
            registered_by="ana",
            updated_at=now,
            updated_by="ana",
        )
        self.store.edit(TABLES, lambda _: [row], because="test")

    def row(self, name: str) -> TableRow:
        return row_of(self.store.rows(TABLES), f"id-{name}")

    def begin(self, *steps: TableStep, rollback_id: str = "r1") -> Rollback:
        """A rollback that was just begun: nothing is done yet."""
        head = head_row(
            rollback_id=rollback_id,
            plan_hash=f"hash-{rollback_id}",
            first=steps[0],
            payload=encode_plan(StoredPlan(plan=NO_PLAN)),
            actor="ana",
            at=self.clock.now(),
        )
        planned = Rollback(head=head)
        begun = planned.with_rows(next_rows(planned, steps)).with_head(RollbackState.INTENT)
        self.journal.put([begun.head, *begun.steps], because="test")
        return begun

    def begin_undo(self, rollback_id: str = "r1") -> None:
        rollback = self.journal.get(rollback_id)
        undoing = rollback.with_head(RollbackState.UNDOING, undo=True)
        self.journal.save(undoing, expects=rollback.head.state, because="test")

    def saga(self, **changes: Any) -> Saga:
        executor = StepExecutor(tools=OneFormat(self.reader, self.engine), storage=lambda _: StorageOptions())
        return Saga(
            **{"journal": self.journal, "executor": executor, "undo_for": timedelta(days=7), **changes}
        )

    def go_on(self, rollback_id: str = "r1", **changes: Any) -> Rollback:
        return self.saga(**changes).go_on(rollback_id)

    def undo(self, rollback_id: str = "r1") -> Rollback:
        self.begin_undo(rollback_id)
        return self.go_on(rollback_id)

    def states(self, rollback_id: str = "r1") -> Mapping[str, Sequence[RollbackState]]:
        """By table, the states of its steps; `*` is the rollback as a whole."""
        rollback = self.journal.get(rollback_id)
        found: dict[str, list[RollbackState]] = {"*": [rollback.head.state]}
        for row in rollback.steps:
            found.setdefault(row.table_id.removeprefix("id-"), []).append(row.state)
        return found

    def journal_commits(self) -> int:
        return self.store.rows(ROLLBACKS).version
