"""Random kills of daemons and workers, and freezes, while users append: does every run converge, once?

Two daemons with workers on the fake engine look after tables that users keep appending to; now and then a Parquet
folder is given to be converted. Every few seconds some process is killed with SIGKILL, or stopped for longer than any
lease and then resumed. At the end the killing stops and the work has to get done.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.model.rows import Outcome, TableState
from lakewarden.catalog.state.port import RunState
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.port import TABLES
from lakewarden.catalog.system.recovery.verify import verify
from support.processes import dawdling_worker
from support.processes.house import QUICK, House
from support.processes.users import Users

__all__ = ["Soak", "Toll"]

APPENDED, DAEMONS, USERS = 5, 2, 2
LAST_APPENDS, FAR = 12, 10_000_000
"""When the killing is over each table gets so many small files more, of ids that no user took: work that is due."""
SETTINGS = QUICK | {
    "workers.count": "2",
    "run.attempts": "50",
    "backoff.first": "1 s",
    "backoff.longest": "4 s",
}
FROZEN_SECONDS = (4.5, 9.0)
"""Longer than the lease of leader and run (`QUICK`): somebody else takes over meanwhile."""
FREEZES = 0.15
"""Share of blows that freeze instead of kill."""
CONVERSION_EVERY = 8
"""One Parquet folder is given to be converted with every so many kills."""
WORKERS = 0.65
"""Share of blows that are meant for workers; where none lives they hit nobody, and daemons get on with starting one."""
AIMED = 0.5
"""Share of blows that fall on the leader, or on a worker in the middle of a run, if there is one."""
PATIENCE = 300.0
"""Seconds in which all that is due has to be done when the killing is over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Toll:
    """What was done to the processes, and what became of the work. `*_leader`: of those the leader; `*_busy`: of those
    in the middle of a run. `wrong`: sentences, one for each thing that is doubled or lost."""

    kills_daemon: int
    kills_leader: int
    kills_worker: int
    kills_busy: int
    frozen: int
    frozen_leader: int
    frozen_busy: int
    appends: int
    conversions: int
    runs: int
    runs_begun_again: int
    commits: int
    doubled: int
    lost: int
    seconds: float
    wrong: tuple[str, ...]


@dataclass
class Soak:
    """One soak in an empty folder. The same `seed` makes the same choices; what they meet differs each time."""

    folder: Path
    kills: int
    seed: int
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self.house = House(
            self.folder,
            settings=dict(SETTINGS),
            environment={"WORKER_PROGRAM": dawdling_worker.__file__},
        )
        self._workers: dict[int, psutil.Process] = {}
        self._frozen: list[tuple[float, psutil.Process]] = []
        self._seen: set[str] = set()
        self._raw: list[str] = []

    def run(self) -> Toll:
        """Rage, let the work be done, judge."""
        begin = time.monotonic()
        try:
            tables = [self.house.table(f"t{number}", commits=1) for number in range(APPENDED)]
            with Users(tables, count=USERS, pause=1.5, seed=self.seed) as users:
                self._rage()
            for _, process in self._frozen:
                _signal(process, signal.SIGCONT)
            for number in range(LAST_APPENDS * len(tables)):
                self.house.append(tables[number % len(tables)], FAR + number)
            unfinished = self._let_it_be_done(tables)
            doubled, lost = self._doubled(tables), [*unfinished, *self._lost(tables)]
            doubled += [*users.repeated()]
            lost += [*users.missing(), *map(str, verify(self.house.services.store))]
        finally:
            self._end()
        return Toll(
            **{name: self.counts[name] for name in COUNTED},
            appends=users.appends,
            conversions=len(self._raw),
            runs=len(self.house.runs()),
            runs_begun_again=sum(row.attempt > 1 for row in self.house.runs()),
            commits=sum(1 for _ in self._commits(tables)),
            doubled=len(doubled),
            lost=len(lost),
            seconds=round(time.monotonic() - begin, 1),
            wrong=(*doubled, *lost),
        )

    def _rage(self) -> None:
        while self._killed() < self.kills:
            self._keep_daemons()
            time.sleep(self._chance.uniform(0.2, 2.8))
            self._thaw()
            self._look()
            self._strike()
            if len(self._raw) * CONVERSION_EVERY < self._killed():
                self._convert_another()

    def _killed(self) -> int:
        return self.counts["kills_daemon"] + self.counts["kills_worker"]

    def _keep_daemons(self) -> None:
        alive = [process for process in self.house.daemons if process.poll() is None]
        for _ in range(DAEMONS - len(alive)):
            self.house.start()

    def _look(self) -> None:
        """Know all workers, also those whose daemon is about to die, and the runs that are under way."""
        for process in self.house.daemons:
            if process.poll() is None:
                with suppress(psutil.NoSuchProcess):
                    self._workers |= {one.pid: one for one in psutil.Process(process.pid).children()}
        self._workers = {pid: one for pid, one in self._workers.items() if _lives(one)}
        self._seen |= {run.request.run_id for run in self.house.unfinished()}

    def _strike(self) -> None:
        """Kill or freeze some daemon or worker that is not frozen."""
        cold = {process.pid for _, process in self._frozen}
        daemons = [one.pid for one in self.house.daemons if one.poll() is None and one.pid not in cold]
        workers = [pid for pid in self._workers if pid not in cold]
        kind = "worker" if self._chance.random() < WORKERS else "daemon"
        targets, role = (workers, "busy") if kind == "worker" else (daemons, "leader")
        in_role = [pid for pid in targets if (self._is_busy(pid) if kind == "worker" else self._leads(pid))]
        if not targets:
            return
        pid = self._chance.choice(in_role if in_role and self._chance.random() < AIMED else targets)
        freeze = len(cold) < DAEMONS and self._chance.random() < FREEZES
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            process.send_signal(signal.SIGSTOP if freeze else signal.SIGKILL)
            if freeze:
                self._frozen.append((time.monotonic() + self._chance.uniform(*FROZEN_SECONDS), process))
            self.counts["frozen" if freeze else f"kills_{kind}"] += 1
            self.counts[f"{'frozen' if freeze else 'kills'}_{role}"] += pid in in_role

    def _leads(self, pid: int) -> bool:
        lease = self.house.services.leases.current("leader")
        return lease is not None and lease.holder.split("-")[-2] == str(pid)

    def _is_busy(self, pid: int) -> bool:
        """Whether a worker has a run in hand. Its log file tells its name."""
        with suppress(FileNotFoundError):
            name = Path(os.readlink(f"/proc/{pid}/fd/2")).stem
            taken = (run for run in self.house.unfinished() if run.state is not RunState.QUEUED)
            return any(run.worker == name for run in taken)
        return False

    def _thaw(self) -> None:
        now = time.monotonic()
        for until, process in list(self._frozen):
            if now >= until:
                _signal(process, signal.SIGCONT)
                self._frozen.remove((until, process))

    def _convert_another(self) -> None:
        self._raw.append(self.house.conversion(f"r{len(self._raw)}"))

    def _let_it_be_done(self, tables: list[str]) -> list[str]:
        """The daemons are left in peace until nothing is due. Returns what was not done in time."""
        until = time.monotonic() + PATIENCE
        while (waiting := self._waiting(tables)) and time.monotonic() < until:
            self._keep_daemons()
            time.sleep(0.5)
        for process in self.house.daemons:
            if process.poll() is None:
                process.terminate()
                process.wait(120)
        code = self.house.run_until_idle()
        return [*waiting, *([] if code in (0, 3) else [f"the last daemon ended with {code}"])]

    def _waiting(self, tables: list[str]) -> list[str]:
        house = self.house
        self._seen |= {run.request.run_id for run in house.unfinished()}
        waiting = [f"run {run.request.run_id} of {run.request.name}" for run in house.unfinished()]
        waiting += [f"result of {run.request.run_id}" for run in house.services.queue.finished(100)]
        states = {row.name: row.state for row in house.services.store.rows(TABLES).all()}
        waiting += [f"conversion of {place}" for place in self._raw if not _is_active(states, place)]
        return waiting + [f"compaction of {place}" for place in tables if house.files(place) > LAST_APPENDS]

    def _commits(self, tables: list[str]) -> Iterator[Commit]:
        """Our commits to users' tables."""
        reader = self.house.services.readers[0]
        for place in [*tables, *self._raw]:
            commits = reader.commits(canonical(place), after=-1)
            yield from (commit for commit in commits if commit.run_id is not None)

    def _doubled(self, tables: list[str]) -> list[str]:
        recorded = Counter(row.run_id for row in self.house.runs())
        # A conversion makes two commits, of two kinds; nothing makes two of one kind.
        made = Counter((commit.run_id, commit.operation) for commit in self._commits(tables))
        found = [f"run {run_id} is recorded {times} times" for run_id, times in recorded.items() if times > 1]
        return found + [f"run {one[0]} made {n} commits of {one[1]}" for one, n in made.items() if n > 1]

    def _lost(self, tables: list[str]) -> list[str]:
        recorded = {row.run_id: row for row in self.house.runs()}
        commits = {commit.run_id for commit in self._commits(tables)}
        found = [f"run {run_id} left a commit and no record" for run_id in commits - set(recorded)]
        found += [f"run {run_id} was queued and is not on record" for run_id in self._seen - set(recorded)]
        return found + [
            f"run {run_id} counts as {row.outcome}, and its commit {row.committed_version} is not there"
            for run_id, row in recorded.items()
            if row.outcome is Outcome.SUCCEEDED and row.committed_version and run_id not in commits
        ]

    def _end(self) -> None:
        for _, process in self._frozen:
            _signal(process, signal.SIGCONT)
        self._look()
        self.house.end()
        for process in self._workers.values():
            _signal(process, signal.SIGKILL)


COUNTED = (
    "kills_daemon",
    "kills_leader",
    "kills_worker",
    "kills_busy",
    "frozen",
    "frozen_leader",
    "frozen_busy",
)


def _is_active(states: dict[str, TableState], place: str) -> bool:
    return states.get(f"db.{Path(place).name}") is TableState.ACTIVE


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
