"""Rollbacks that are planned from lineage and carried out by the real planner, journal and saga on small Delta tables,
without Spark; whatever others do meanwhile is done in between."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.model.lineage_record import LineageRecord
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import OnRollback
from lakewarden.catalog.policy.access import Actor
from lakewarden.catalog.registry.governance import declare_dependency
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.rollbacks.rollback import RollbackService, rollbacks_of_services
from lakewarden.jobs.rollback.execute.replan import Extender
from lakewarden.jobs.rollback.execute.saga import Saga
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.plan.request import RollbackRequest
from support.builders.callers import actor
from support.builders.derived import ids, write
from support.fakes.engine import FakeEngine
from support.fakes.tools import OneFormat

__all__ = ["BegunRollbacks"]


class BegunRollbacks:
    """Tables by name below `folder`, each managed as `db.<name>` from its first write on."""

    ana = actor("ana", admin=True)

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.services = open_services(home=folder / "home")
        initialise(self.services, real_user())
        self.ids: dict[str, str] = {}

    def path(self, name: str) -> Path:
        return self.folder / "lake" / name

    def write(
        self, name: str, *numbers: int, reads: str | None = None, said: LineageRecord | None = None
    ) -> int:
        """A job appends ids, as derived from the head of another table, or from what it `said` when it read.
        Returns the version."""
        told: Mapping[str, Path] = {} if reads is None else {self.ids[reads]: self.path(reads)}
        version = write(self.path(name), *numbers, reads=told, said=said)
        if name not in self.ids:
            row = register(
                self.services.registry, str(self.path(name)), actor=self.ana, name=f"db.{name}"
            ).row
            self.ids[name] = row.table_id
        return version

    def follows(self, name: str, upstream: str, what: OnRollback = OnRollback.CASCADE) -> None:
        declare_dependency(self.services.registry, f"db.{name}", f"db.{upstream}", what, actor=self.ana)

    def restore(self, name: str, to: int) -> None:
        """Somebody restores a table with a tool that knows nothing of us."""
        DeltaTable(str(self.path(name))).restore(to)

    def rows(self, name: str) -> list[int]:
        return ids(self.path(name))

    @property
    def rollbacks(self) -> RollbackService:
        return rollbacks_of_services(self.services)

    def begin(self, request: RollbackRequest, by: Actor | None = None) -> str:
        """Plan it and begin it; its id."""
        who = by or self.ana
        return self.rollbacks.begin(self.rollbacks.plan(request, actor=who).plan.hash, actor=who).rollback_id

    def go_on(
        self, rollback_id: str, *, meanwhile: Callable[[], object] = lambda: None, **changes: Any
    ) -> Rollback:
        """Do what is left to do, as a worker does; `meanwhile` is done when all of the plan is, before it is planned
        again."""
        rollbacks = self.rollbacks
        again, waiting = Extender(gatherer=rollbacks.gatherer), [meanwhile]

        def extend(rollback: Rollback) -> Sequence[TableStep]:
            while waiting:
                waiting.pop()()
            return again(rollback)

        executor = StepExecutor(
            tools=OneFormat(DeltaReader(), FakeEngine(self.services.clock)),
            storage=lambda _: StorageOptions(),
        )
        values: dict[str, Any] = {
            "journal": rollbacks.journal,
            "executor": executor,
            "undo_for": timedelta(days=7),
            "extend": extend,
        }
        return Saga(**{**values, **changes}).go_on(rollback_id)
