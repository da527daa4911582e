"""A small installation that every use case is tried on: real tables, real system tables, workers that need no Spark.

It is made once and put back before each try, at the same place, because rows know where tables lie.
"""

import io
import os
import shutil
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.port import Entry, Metastore
from lakewarden.catalog.metastore.sync_plan import plan_sync
from lakewarden.catalog.model.rows import DELTA, AuditRow, TableRow
from lakewarden.catalog.state.inbox import DatabaseInbox
from lakewarden.catalog.system.port import AUDIT
from lakewarden.daemon.cli.app import run
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.workers.pool import worker_config
from lakewarden.jobs.engines.registry import InstalledTools
from lakewarden.jobs.rollback.execute.run import open_rollbacks
from lakewarden.jobs.runs.properties_ledger import open_ledger
from lakewarden.jobs.runs.standings import open_standings
from lakewarden.jobs.runs.worker_config import read_config
from lakewarden.jobs.worker.runner import Runner
from support.fakes.clock import one_clock
from support.fakes.engine import FakeEngine
from support.fakes.metastore import FakeMetastore
from support.processes.as_user import acting
from support.processes.commands import Said

__all__ = ["ADMIN", "ANYONE", "OWNER", "Lake"]

ADMIN, OWNER, ANYONE = "ada", "olga", "sam"
"""Who ran `init`; whose the tables are; somebody who is neither."""


class _Services(Services):
    """Services whose worker is a thread, and whose metastore has an entry of `db.t` that is behind its table."""

    @property
    def metastore(self) -> Metastore | None:
        if self.settings.metastore_uri is None:
            return None
        made = self.__dict__.get("_entries")
        if made is None:
            made = self.__dict__["_entries"] = FakeMetastore()
            plain = Services(load_settings(home=self.settings.home))
            row = plain.registry.resolve("db.t")
            made.create_database("db")
            made.create(_behind(plain, row))
        return made

    @contextmanager
    def own_workers(self, count: int) -> Iterator[None]:
        ended, runner = threading.Event(), self._runner()

        def work() -> None:
            while not ended.wait(0.01):
                runner.run_next()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _runner(self) -> Runner:
        config = read_config(worker_config(self.settings, "worker"))
        tools = InstalledTools(config, {DELTA: FakeEngine(self.clock, self.metastore)})
        return Runner(
            worker="worker",
            queue=self.queue,
            tools=tools,
            metastore=self.metastore,
            clock=self.clock,
            storage=self.storage,
            lease=config.lease,
            heartbeat=config.heartbeat,
            longest_run=config.longest_run,
            clocks=one_clock(self.clock),
            rollbacks=open_rollbacks(config, tools, self.queue, DatabaseInbox(self._database)),
            standings=open_standings(config, self._database),
            ledger=open_ledger(config),
        )


def _behind(services: Services, row: TableRow) -> Entry:
    """The entry that a sync would write, but for a column."""
    location = row.location or ""
    seen = services.registry.reader_at(location, row.name).observe(location)
    assert isinstance(seen, Observation)
    database, _, table = row.name.partition(".")
    blank = Entry(
        database=database, table=table, location=location, provider=None, table_type="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE"},
    )  # fmt: skip
    plan = plan_sync(
        seen, blank, table_id=row.table_id, location=location, strict=True, stale_share=1.0
    )  # fmt: skip
    return replace(plan.wanted, columns=plan.wanted.columns[:-1])


@dataclass
class Lake:
    """`folder` holds the home and the tables while something is tried; beside it is what it is made from."""

    folder: Path

    def __post_init__(self) -> None:
        self.home, self.made = self.folder / "home", self.folder.with_name(f"{self.folder.name}-made")
        self.lake = self.folder / "lake"
        self._make()
        shutil.move(self.folder, self.made)

    def back(self) -> None:
        """Everything as it was made."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.made, self.folder)

    @property
    def services(self) -> Services:
        return _Services(load_settings(home=self.home))

    def audit(self) -> dict[str, AuditRow]:
        """What is on record, by id; nothing where the audit itself is damaged or gone."""
        store = self.services.store
        return {row.audit_id: row for row in store.rows(AUDIT).all()} if store.exists() else {}

    def holds(self) -> dict[str, int]:
        """Everything but the audit and the operational database: each file with its size in bytes."""
        aside = (self.home / "system" / "audit", self.home / "state.db", self.home / "logs")
        return {
            str(path.relative_to(self.folder)): path.stat().st_size
            for path in self.folder.rglob("*")
            if path.is_file() and not str(path).startswith(tuple(map(str, aside)))
        }

    def queued(self) -> set[str]:
        """Runs that are not finished."""
        return {run.request.run_id for run in self.services.queue.unfinished()}

    def says(self, user: str, *arguments: str) -> Said:
        """What a command says to somebody."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        code = 0
        with pytest.MonkeyPatch.context() as patch, acting(user), redirect_stdout(out), redirect_stderr(err):
            patch.setattr("lakewarden.daemon.cli.common.open_services", _opened)
            patch.setattr(sys, "argv", ["lakewarden", *arguments])
            patch.setitem(os.environ, "LAKEWARDEN_HOME", str(self.home))
            try:
                run()
            except SystemExit as end:
                code = int(end.code or 0)
        told = tuple(one.buffer.getvalue().decode() for one in (out, err))
        return Said(code, *told)

    def must(self, user: str, *arguments: str) -> Said:
        """A command that has to succeed, to prepare something."""
        said = self.says(user, *arguments)
        assert said.code == 0, (arguments, said)
        return said

    def _make(self) -> None:
        self.folder.mkdir(parents=True)
        self.must(ADMIN, "init")
        for name in ("s", "t", "gone", "new"):
            for number in range(3):
                rows = pa.table({"id": pa.array([number]), "day": pa.array(["monday"])})
                write_deltalake(self.lake / name, rows, mode="append")
        for name in ("s", "t", "gone"):
            self.must(OWNER, "tables", "register", str(self.lake / name), "--name", f"db.{name}")
        self.must(OWNER, "tables", "policy", "set", "db.t", "mode=manage", "vacuum.retention=30 days")
        self.must(OWNER, "tables", "drop", "db.gone", "--yes")
        raw, checkpoint = self.folder / "raw", self.folder / "checkpoint"
        raw.mkdir()
        pq.write_table(pa.table({"id": [1]}), raw / "a.parquet")
        checkpoint.mkdir()
        (checkpoint / "metadata").write_text(f'{{"id": "{uuid.UUID(int=7)}"}}')


def _opened(home: Path | None = None, user: str = "", **_: object) -> Services:
    return _Services(load_settings(home=home), user=user)
