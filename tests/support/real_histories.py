"""Random histories of a few real Delta tables, with what each version holds kept beside them, row by row.

Every row names the write that made it and all writes its value depends on. So what a rollback has to give back can be
said without a version graph: the newest content in which no row depends on a bad write.
"""

import random
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from lakewarden.catalog.access import Actor
from lakewarden.catalog.lineage.record import LineageInput, LineageRecord, Operation, custom_metadata
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.storage import canonical
from lakewarden.catalog.system.rows import system_rows
from lakewarden.daemon.settings import load_settings
from lakewarden.daemon.workers import worker_config
from lakewarden.jobs.engine.fake import FakeEngine
from lakewarden.jobs.rollback.run import open_rollbacks
from lakewarden.jobs.runner import Runner
from lakewarden.jobs.worker_config import read_config
from support.daemon_process import FakeWorkerServices

__all__ = ["ANA", "Content", "History", "InThisProcess", "Meddler"]

ANA = Actor(name="ana", admin=True, origin="test")
Row = tuple[int, frozenset[int]]
"""The number of the write that made a row, and of all writes its value depends on."""
Content = tuple[Row, ...]
FOREIGN = -1
"""The number of the write that somebody makes in the middle of a rollback."""


class Meddler(FakeEngine):
    """An engine beside which somebody appends to a table, just before the restore number `turn`."""

    place: Path | None = None
    turn = 0

    def restore(self, location: str, *, requires: int, to: int, apps: Sequence[str], run_id: str) -> int:
        if self.place is not None and self.turn == 0:
            place, self.place = self.place, None
            write_deltalake(str(place), _table(((FOREIGN, frozenset({FOREIGN})),)), mode="append")
        self.turn -= 1
        return super().restore(location, requires=requires, to=to, apps=apps, run_id=run_id)


class InThisProcess(FakeWorkerServices):
    """Services whose worker is a thread: the real queue, runner and saga, without a process per rollback."""

    engine: FakeEngine

    @contextmanager
    def own_workers(self, count: int) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._work, args=(ended,))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _work(self, ended: threading.Event) -> None:
        config = read_config(worker_config(self.settings, "thread"))
        runner = Runner(
            worker=config.name,
            queue=self.queue,
            reader=self.readers[0],
            engine=self.engine,
            metastore=None,
            clock=self.clock,
            storage=self.storage,
            lease=config.lease,
            heartbeat=config.heartbeat,
            longest_run=config.longest_run,
            rollbacks=open_rollbacks(config, self.queue),
        )
        while not ended.wait(0.01):
            runner.run_next()


@dataclass
class History:
    """Tables `t0`, `t1`, ... under `folder`; a table reads only from those before it, and from itself."""

    folder: Path
    chance: random.Random
    tables: dict[str, list[Content]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    writes: int = 0

    def __post_init__(self) -> None:
        self.services = InThisProcess(load_settings(home=self.folder / "home", environment={}))
        self.services.engine = Meddler(self.services.clock)
        (self.folder / "home").mkdir(parents=True)
        store = self.services.store
        store.create(system_rows(store, now=self.services.clock.now(), actor="root"))
        names = [f"t{number}" for number in range(self.chance.randint(3, 5))]
        for name in names:
            self._write(name, self._some_inputs(name), overwrite=False)
            row = register(self.services.desk, str(self.place(name)), actor=ANA, name=f"db.{name}").row
            self.ids[name] = row.table_id
        for _ in range(self.chance.randint(6, 14)):
            self._event(self.chance.choice(names))

    def place(self, name: str) -> Path:
        return self.folder / "lake" / name

    def rows(self, name: str) -> Content:
        """What the table holds now, read from the table."""
        table = DeltaTable(str(self.place(name))).to_pyarrow_table()
        found = zip(table["write"].to_pylist(), table["depends"].to_pylist(), strict=True)
        return _sorted((write, frozenset(map(int, depends.split(",")))) for write, depends in found)

    def bad_after(self, name: str, version: int) -> frozenset[int]:
        """The writes that made new rows in the table's versions after `version`."""
        before = {write for content in self.tables[name][: version + 1] for write, _ in content}
        after = {write for content in self.tables[name][version + 1 :] for write, _ in content}
        return frozenset(after - before)

    def newest_clean(self, name: str, bad: frozenset[int]) -> Content | None:
        """The newest content in which nothing depends on a bad write."""
        for content in reversed(self.tables[name]):
            if not any(depends & bad for _, depends in content):
                return content
        return None

    def _event(self, name: str) -> None:
        match self.chance.choice(("load", "derive", "derive", "derive", "renew", "heal", "self", "compact")):
            case "load":
                self._write(name, [], overwrite=False)
            case "derive":
                self._write(name, self._some_inputs(name), overwrite=False)
            case "renew":
                self._write(name, self._some_inputs(name), overwrite=True)
            case "heal":
                self._write(name, [], overwrite=True)
            case "self":
                self._write(name, [(name, len(self.tables[name]) - 1)], overwrite=True, keeps=True)
            case "compact":
                done = DeltaTable(str(self.place(name))).optimize.compact()
                if done["numFilesAdded"]:
                    self.tables[name].append(self.tables[name][-1])

    def _some_inputs(self, name: str) -> list[tuple[str, int]]:
        """Some tables before this one, at their heads or, by readers that came late, at older versions."""
        others = [one for one in self.tables if one < name]
        chosen = self.chance.sample(others, min(len(others), self.chance.choice((0, 1, 1, 2))))
        return [
            (
                one,
                len(self.tables[one]) - 1
                if self.chance.random() < 0.8
                else self.chance.randrange(len(self.tables[one])),
            )
            for one in chosen
        ]

    def _write(
        self, name: str, inputs: Sequence[tuple[str, int]], *, overwrite: bool, keeps: bool = False
    ) -> None:
        number, self.writes = self.writes, self.writes + 1
        read = [row for one, version in inputs for row in self.tables[one][version]]
        new = (number, frozenset({number}).union(*(depends for _, depends in read)))
        before = self.tables.get(name, [()])[-1]
        # A write that reads its own table makes all of it anew: every row depends on the write and on what it read.
        kept = tuple((write, new[1]) for write, _ in before) if keeps else ()
        written: Content = (*kept, new)
        record = LineageRecord(
            run_id=uuid.uuid4().hex,
            operation=Operation.OVERWRITE if overwrite else Operation.APPEND,
            user="ana",
            inputs=tuple(self._input(one, version) for one, version in inputs if one != name),
            reads_self=keeps,
        )
        write_deltalake(
            str(self.place(name)),
            _table(written),
            mode="overwrite" if overwrite else "append",
            commit_properties=CommitProperties(custom_metadata=custom_metadata(record)),
        )
        content = written if overwrite else (*before, *written)
        self.tables.setdefault(name, []).append(_sorted(content))
        assert DeltaTable(str(self.place(name))).version() == len(self.tables[name]) - 1

    def _input(self, name: str, version: int) -> LineageInput:
        place = self.place(name)
        return LineageInput(
            table_id=self.ids[name],
            location=canonical(str(place)),
            format="delta",
            version=version,
            format_id=str(DeltaTable(str(place)).metadata().id),
        )


def _table(content: Content) -> pa.Table:
    return pa.table(
        {
            "write": pa.array([write for write, _ in content], pa.int64()),
            "depends": [",".join(map(str, sorted(depends))) for _, depends in content],
        }
    )


def _sorted(rows: Sequence[Row] | Iterator[Row]) -> Content:
    return tuple(sorted(rows, key=lambda row: (row[0], sorted(row[1]))))
