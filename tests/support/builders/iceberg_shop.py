"""An Iceberg table and a Delta table made from it, after a bad load: what is rolled back, removed or undone."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.formats.iceberg.released import SNAPSHOT_AGE
from lakewarden.catalog.model.rows import RollbackState
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.jobs.rollback.execute.saga import Saga
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor
from support.builders.callers import actor
from support.builders.spark_iceberg import SparkIceberg
from support.fakes.engine import FakeEngine
from support.fakes.tools import SeveralFormats
from support.processes.commands import Cli, Said

__all__ = ["Shop", "shop_with_bad_load"]

WEEK = timedelta(days=7)
ROOT = actor("root", admin=True)


@dataclass
class Shop:
    """`raw`, an Iceberg table, and `sums`, a Delta table made from it; then both have a bad load."""

    spark: SparkSession
    cli: Cli
    home: Path
    raw: SparkIceberg

    def must(self, *arguments: str) -> Said:
        said = self.cli(*arguments)
        assert said.code == 0, (arguments, said.out, said.err)
        return said

    @property
    def services(self) -> Services:
        return open_services(home=self.home)

    @property
    def name(self) -> str:
        return f"{self.raw.database}.raw"

    @property
    def derived(self) -> str:
        return f"{self.raw.database}.sums"

    def contents(self) -> tuple[list[object], list[object]]:
        return self.raw.rows(), sorted(row[0] for row in self.spark.table(self.derived).collect())

    def plan(self, *more: str, to: int = 1) -> dict[str, Any]:
        return self.planned("--to-version", str(to), *more)

    def planned(self, *seeds: str) -> dict[str, Any]:
        """A plan about versions of the Iceberg table."""
        said = self.cli("rollback", "plan", self.name, *seeds, "--cascade", "-o", "json")
        assert said.code in (0, 4), said.err
        planned: dict[str, Any] = said.json
        return planned

    def begun(self, to: int = 1) -> str:
        """A rollback, of the bad load, that is begun; nothing is done yet."""
        return self.begun_with(self.plan(to=to))

    def begun_with(self, planned: dict[str, Any]) -> str:
        """A rollback by a plan, that is begun; nothing is done yet."""
        assert planned["applicable"], planned["why_not"]
        rollbacks = rollbacks_of_services(self.services)
        return rollbacks.begin(planned["hash"], actor=ROOT).rollback_id

    def go_on(self, rollback_id: str) -> RollbackState:
        """Do what is left to do, as a worker does, whose session is the test's."""
        services = self.services
        journal = rollbacks_of_services(services).journal
        own = self.raw.reader  # which asks the metastore each time
        readers = [own if one.format == own.format else one for one in services.readers]
        tools = SeveralFormats(readers, (FakeEngine(services.clock), self.raw.engine))
        executor = StepExecutor(tools=tools, storage=services.storage)
        return Saga(journal=journal, executor=executor, undo_for=WEEK).go_on(rollback_id).head.state

    def begin_undo(self, rollback_id: str) -> None:
        journal = rollbacks_of_services(self.services).journal
        rollback = journal.get(rollback_id)
        undoing = rollback.with_head(RollbackState.UNDOING, undo=True)
        journal.save(undoing, expects=rollback.head.state, because="test")

    def call(self, procedure: str, arguments: str) -> None:
        """One of Iceberg's own procedures."""
        self.raw.sql(f"CALL iceberg.system.{procedure}(table => '{self.name}', {arguments})")

    def expire(self) -> None:
        """All that may expire, by Iceberg's own procedure."""
        self.call("expire_snapshots", "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1")

    def keep(self, *, days: int) -> None:
        """Its owner says for how long snapshots stay."""
        age = timedelta(days=days) // timedelta(milliseconds=1)
        self.raw.sql(f"ALTER TABLE {self.raw} SET TBLPROPERTIES ('{SNAPSHOT_AGE.name}'='{age}')")

    @property
    def kept_days(self) -> int:
        return timedelta(milliseconds=int(self.raw.seen.properties[SNAPSHOT_AGE.name])).days

    def tags(self) -> list[str]:
        rows = self.raw.sql(f"SELECT name FROM {self.raw}.refs WHERE type = 'TAG'")
        return sorted(str(row[0]) for row in rows)


@contextmanager
def shop_with_bad_load(spark: SparkSession, uri: str, cli: Cli, home: Path) -> Iterator[Shop]:
    """In the metastore at `uri`, governed by the home of `cli`."""
    raw = SparkIceberg(spark, uri, "iceberg", name="raw")
    made = Shop(spark, cli, home, raw)
    raw.append(1, 2)
    made.must("tables", "register", made.name)
    with lakewarden.attach(spark, home=made.home) as lw:
        lw.sql(f"CREATE TABLE {made.derived} USING delta AS SELECT id FROM {raw}")
        made.must("tables", "register", made.derived)
        raw.append(666)
        lw.sql(f"INSERT OVERWRITE {made.derived} SELECT id FROM {raw}")
    yield made
    spark.sql(f"DROP DATABASE spark_catalog.{raw.database} CASCADE")
