"""Random histories rolled back for real and undone, alone or while somebody else writes; what differs from a rebuild.

The rebuild is the history's own book of what each version holds (support/real_histories.py).
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackState, RollbackStep
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.daemon.settings.settings import Settings, load_settings
from lakewarden.daemon.usecases.rollbacks.rollback import RollbackService, rollbacks_of_services
from lakewarden.daemon.workers.pool import worker_config
from lakewarden.jobs.engines.iceberg.engine import IcebergEngine
from lakewarden.jobs.rollback.execute.run import open_rollbacks
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from lakewarden.jobs.rollback.plan.model import Blocked, RollbackPlan, Step
from lakewarden.jobs.rollback.plan.request import RollbackRequest, ToVersion
from lakewarden.jobs.runs.port import Engine
from lakewarden.jobs.runs.worker_config import read_config
from lakewarden.jobs.worker.runner import Runner
from support.fakes.clock import one_clock
from support.fakes.engine import FakeEngine
from support.fakes.tools import SeveralFormats
from support.histories.iceberg_tables import IcebergTables
from support.histories.real_histories import ANA, History, Size
from support.histories.scribes import Content, Deed, DeltaRs, Kind, Scribe
from support.histories.table_kinds import KINDS, DeltaTables
from support.processes.daemon_process import FakeWorkerServices

__all__ = ["Case", "Company", "InThisProcess", "distant_case", "local_case", "mixed_case", "services_at"]

_ROLLBACK_PER_PLAN: Final = 5
"""A rollback takes about so many times what its plan took: within that time an intruder who races it begins."""

_UNDO_FOR: Final = timedelta(days=1)

ScribeOf = Callable[[Settings], Scribe]
"""Who writes for an installation, once there is one."""


class Company(StrEnum):
    """Who else writes during a rollback: nobody; somebody just before one of its restores; somebody who races it."""

    NOBODY = "nobody"
    BETWEEN = "between"
    RACING = "racing"


class Meddler(FakeEngine):
    """An engine beside which something happens just before the restore number `turn`."""

    meanwhile: Callable[[], None] | None = None
    turn = 0

    def restore(self, location: str, *, requires: Head, to: int, apps: Sequence[str], run_id: str) -> int:
        if self.meanwhile is not None and self.turn == 0:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        self.turn -= 1
        return super().restore(location, requires=requires, to=to, apps=apps, run_id=run_id)


class InThisProcess(FakeWorkerServices):
    """Services whose worker is a thread: the real queue, runner and saga, without a process per rollback."""

    engines: Sequence[Engine]

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
        tools = SeveralFormats(self.readers, self.engines)
        runner = Runner(
            worker=config.name,
            queue=self.queue,
            tools=tools,
            metastore=None,
            clock=self.clock,
            storage=self.storage,
            lease=config.lease,
            heartbeat=config.heartbeat,
            longest_run=config.longest_run,
            clocks=one_clock(self.clock),
            rollbacks=open_rollbacks(config, tools, self.queue),
        )
        while not ended.wait(0.01):
            runner.run_next()


def services_at(home: Path, *engines: Engine, metastore: str | None = None) -> InThisProcess:
    """A new installation with a worker that has these engines, and the address of its metastore."""
    environment = {"LAKEWARDEN_HTTP_PORT": "0"}
    if metastore is not None:
        environment["LAKEWARDEN_METASTORE_URI"] = metastore
    services = InThisProcess(load_settings(home=home, environment=environment))
    services.engines = engines
    return services


@dataclass(frozen=True, kw_only=True, slots=True)
class Intrusion:
    """One append to a table; with `deed` it is one that says what it read."""

    name: str
    by: Scribe
    number: int
    deed: Deed | None = None


class Intruder(threading.Thread):
    """Somebody who appends to tables while they are rolled back, and knows which of it was committed."""

    def __init__(
        self, history: History, intrusions: Sequence[Intrusion], *, delay: float, pause: float
    ) -> None:
        super().__init__(name="intruder")
        self._history, self._intrusions, self._delay, self._pause = history, intrusions, delay, pause
        self.acknowledged: list[Intrusion] = []
        self.refused: list[Intrusion] = []

    def run(self) -> None:
        time.sleep(self._delay)
        for one in self._intrusions:
            try:
                if one.deed is None:
                    one.by.intrude(self._history.place(one.name), one.number)
                else:
                    one.by.write(one.deed)
            except (DeltaError, OSError, LakewardenError, PySparkException, Py4JError):
                self.refused.append(one)
            else:
                self.acknowledged.append(one)
            time.sleep(self._pause)


@dataclass
class Case:
    """One history, and what is to be undone there. `seen` counts what occurred, `wrong` says what differed."""

    history: History
    chance: random.Random
    meddler: Meddler | None = None
    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        history, chance = self.history, self.chance
        written_to = [name for name in history.tables if history.earlier(name)]
        self.seeded = seeded = min(
            chance.choice(written_to), chance.choice(written_to)
        )  # rather one that others read
        first, *_ = earlier = history.earlier(seeded)
        version = chance.randrange(first, first + len(earlier))
        bad = history.bad_after(seeded, version)
        self.before: Mapping[str, Content] = {name: history.now(name).rows for name in history.tables}
        wanted = {
            name: history.newest_clean(name, bad, version if name == seeded else None)
            for name in history.tables
        }
        self.wanted = {name: rows for name, rows in wanted.items() if rows is not None}
        self.by_taint = history.newest_clean(seeded, bad)
        self.request = RollbackRequest(
            seeds=(ToVersion(table_id=history.ids[seeded], version=version),),
            cascade=True,
            consents=Consents.to(Consent.COLLATERAL),
        )
        self.rollbacks: RollbackService = rollbacks_of_services(history.services)
        self.seen["histories"] = 1
        self.seen["tables"] = len(history.tables)
        self.seen.update({f"commits_by_{who}": count for who, count in history.commits.items()})

    def run(self, company: Company) -> None:
        """Plan, apply, undo; compare after each."""
        self._same("the history", self._contents(), self.before)
        began = time.perf_counter()
        plan = self.rollbacks.plan(self.request, actor=ANA).plan
        takes = _ROLLBACK_PER_PLAN * (time.perf_counter() - began)
        blocked = {blocker.why for _, blocker in plan.blockers()}
        born_tainted = len(self.wanted) < len(self.before)
        if blocked != ({Blocked.BORN_TAINTED} if born_tainted else set()):
            self.wrong.append(f"blocked by {sorted(blocked)}, born tainted: {born_tainted}")
        acting = [one for one in plan.tables if one.step is Step.RESTORE]
        self._count(plan)
        if blocked or not acting:
            return
        self.seen["rollbacks"] += 1
        if company is Company.NOBODY:
            self._alone(plan.hash)
        else:
            names = sorted(one.name.removeprefix("db.") for one in acting)
            self._with_an_intruder(plan.hash, names, company, takes)

    def _alone(self, plan: str) -> None:
        done = self.rollbacks.apply(plan, actor=ANA, tell=_silent)
        self._is(done, RollbackState.DONE)
        self._same("rolled back", self._contents(), self.wanted)
        undone = self.rollbacks.undo(done.rollback_id, actor=ANA, tell=_silent)
        self._is(undone, RollbackState.COMPENSATED)
        self._same("undone", self._contents(), self.before)
        self.seen["undone"] += 1

    def _with_an_intruder(self, plan: str, names: Sequence[str], company: Company, takes: float) -> None:
        """Somebody appends to tables of the plan at some moment: their rows stay, whatever becomes of the rollback."""
        chance = self.chance
        intruder = Intruder(
            self.history,
            [self._intrusion(-turn, names) for turn in range(1, chance.randint(2, 4))],
            delay=chance.uniform(0, takes) if company is Company.RACING else 0.0,
            pause=chance.uniform(0, takes / 4),
        )
        if self.meddler is not None and company is Company.BETWEEN:
            self.meddler.meanwhile, self.meddler.turn = intruder.run, chance.randrange(len(names))
        else:
            intruder.start()
        ended = self._applied(plan)
        if intruder.is_alive():
            intruder.join()
        self.seen["with_writer"] += 1
        self.seen["extended"] += len(ended.of_kind(RollbackStep.RESTORE)) > len(names)
        self._settled(ended, intruder)
        if ended.head.state in (RollbackState.DONE, RollbackState.CONFLICT):
            self.seen["stopped"] += ended.head.state is RollbackState.CONFLICT
            try:
                ended = self.rollbacks.undo(ended.rollback_id, actor=ANA, tell=_silent)
            except LakewardenError:
                ended = self.rollbacks.journal.find(plan)
                self.seen["undo_stopped"] += 1
            self._settled(ended, intruder)
        else:
            self.seen["refused"] += 1

    def _intrusion(self, number: int, names: Sequence[str]) -> Intrusion:
        """An append of which nobody knows what it read; sometimes one that was derived from what is being undone."""
        chance, history = self.chance, self.history
        derived = [
            name for name in history.tables if name > self.seeded and history.kind_of[name].reads_others
        ]
        if not derived or chance.random() < 0.6:
            name = chance.choice(names)
            return Intrusion(name=name, by=chance.choice(history.kind_of[name].scribes), number=number)
        name, version = chance.choice(derived), history.head(self.seeded)
        rows, source = history.now(self.seeded).rows, history.source(self.seeded, version)
        deed = Deed(
            kind=Kind.APPEND,
            place=history.place(name),
            number=number,
            sources=(replace(source, sql=history.kind_of[self.seeded].sql(self.seeded, version)),),
            key=number,
            before=(),
            sql=history.kind_of[name].sql(name, None),
            reads=frozenset({number}).union(*(depends for _, depends in rows)),
        )
        return Intrusion(name=name, by=chance.choice(history.kind_of[name].scribes), number=number, deed=deed)

    def _applied(self, plan: str) -> Rollback:
        try:
            return self.rollbacks.apply(plan, actor=ANA, tell=_silent)
        except LakewardenError:
            return self.rollbacks.journal.find(plan)

    def _settled(self, ended: Rollback, intruder: Intruder) -> None:
        """Done: everything as wanted. Refused or undone: as before. Stopped: each table the one or the other, and it is
        said why. In any case what others wrote is there, unless they said that it was derived from what is undone."""
        contents = self._contents()
        own = {name: tuple(row for row in rows if row[0] >= 0) for name, rows in contents.items()}
        match ended.head.state:
            case RollbackState.DONE:
                wanted = dict(self.wanted)
                if self.by_taint is not None and own[self.seeded] == self.by_taint:
                    # Extended, it is about the bad versions alone: what a RESTORE had put right already stays so.
                    wanted[self.seeded] = self.by_taint
                self._same("done beside a writer", own, wanted)
            case RollbackState.CONFLICT:
                for name, rows in own.items():
                    halfway = self.wanted[name] if rows == self.wanted[name] else self.before[name]
                    self._same("stopped", {name: rows}, {name: halfway})
                if not ended.head.message:
                    self.wrong.append("stopped without a word")
            case _:
                self._same(f"{ended.head.state} beside a writer", own, self.before)
        there = {(name, write) for name, rows in contents.items() for write, _ in rows}
        for one in intruder.acknowledged:
            if one.deed is None and (one.name, one.number) not in there:
                self.wrong.append(f"{ended.head.state}: {one.name} has lost write {one.number}")
        for one in intruder.refused:
            if (one.name, one.number) in there:
                self.wrong.append(
                    f"{ended.head.state}: {one.name} holds write {one.number}, which was refused"
                )

    def _contents(self) -> dict[str, Content]:
        return {name: self.history.rows(name) for name in self.history.tables}

    def _same(self, when: str, found: Mapping[str, Content], wanted: Mapping[str, Content]) -> None:
        self.seen["compared_rows"] += sum(map(len, wanted.values()))
        for name in found:
            if found[name] != wanted.get(name):
                self.wrong.append(f"{when}: {name} holds {found[name]}, wanted {wanted.get(name)}")

    def _is(self, rollback: Rollback, state: RollbackState) -> None:
        if rollback.head.state is not state:
            self.wrong.append(f"{rollback.head.state} instead of {state}: {rollback.head.message}")

    def _count(self, plan: RollbackPlan) -> None:
        self.seen["with_collateral"] += any(one.collateral for one in plan.tables)
        self.seen["healed"] += any(
            one.step is Step.NONE and one.tainted and one.to_version is not None for one in plan.tables
        )
        self.seen["born_tainted"] += any(one.to_version is None for one in plan.tables)
        self.seen["cascaded"] += sum(one.step is Step.RESTORE for one in plan.tables) > 1


def local_case(folder: Path, seed: int) -> Case:
    """A history by delta-rs on local disk; delta-rs alone does the work of a rollback, too."""
    chance, meddler = random.Random(seed), Meddler(SystemClock())
    tables = DeltaTables(str(folder / "lake"))
    history = History(services_at(folder / "home", meddler), chance, (tables,))
    return Case(history, chance, meddler)


def distant_case(folder: Path, root: str, seed: int, engine: Engine, scribe: ScribeOf) -> Case:
    """A small history below `root` on HDFS, by delta-rs and the scribe that an installation is given by turns."""
    chance = random.Random(seed)
    services = services_at(folder / "home", engine)
    scribes = (DeltaRs(), scribe(services.settings))
    size = Size(tables=(3, 3), events=(3, 6))
    tables = DeltaTables(root, scribes, {**KINDS, Kind.SEVERAL: 10})
    return Case(History(services, chance, (tables,), size), chance)


def mixed_case(
    folder: Path, seed: int, spark: SparkSession, iceberg: IcebergTables, scribe: ScribeOf | None
) -> Case:
    """A history of Iceberg tables, and of Delta tables on local disk that are made from them by delta-rs, and by the
    scribe that an installation is given: none where others write at the same time, for there the two lose each other's
    commits."""
    chance, meddler = random.Random(f"mixed {seed}"), Meddler(SystemClock())
    engine = IcebergEngine(
        lambda: spark, storage=lambda _: StorageOptions(), heads=iceberg.told, undo_for=_UNDO_FOR
    )
    services = services_at(folder / "home", meddler, engine, metastore=iceberg.uri)
    scribes = (DeltaRs(),) if scribe is None else (DeltaRs(), scribe(services.settings))
    if scribe is not None:
        iceberg.govern(scribes[-1])
    tables = (DeltaTables(str(folder / "lake"), scribes), iceberg)
    return Case(History(services, chance, tables, Size(tables=(3, 4), events=(5, 10))), chance, meddler)


def _silent(_: str) -> None:
    """Nobody listens."""
