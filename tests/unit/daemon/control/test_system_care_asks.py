"""The daemon's care of system tables asks, right before it deletes, what anybody has forbidden since it was planned."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError, FencedError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Outcome, TableRow
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.maintenance import tend_log
from lakewarden.catalog.system.own_rows import system_rows, system_table_id
from lakewarden.catalog.system.port import RUNS, TABLES
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.daemon.control.system_maintenance import Caretaker
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.jobs.actions.answers import Due
from lakewarden.jobs.actions.costs import Estimate
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.planning.planner import PlannedRun
from lakewarden.jobs.runs.host_clock import HostClock
from lakewarden.jobs.runs.standings import StoredStandings
from support.builders.daemons import World
from support.builders.system_samples import NOW, sample
from support.fakes.clock import ManualClock

LONG = 3650 * 86_400
LATER = datetime.now(UTC) + timedelta(days=40)


@pytest.fixture
def store(tmp_path: Path) -> DeltaSystemStore:
    opened = DeltaSystemStore(canonical(str(tmp_path)), StorageOptions(), actor="tests")
    opened.create(system_rows(opened, now=NOW, actor="tests"))
    for number in range(4):
        opened.append(RUNS, [sample(RUNS, number)], because="recorded")
    return opened


@pytest.fixture
def orphan(tmp_path: Path) -> Path:
    """What a killed writer left in `lakewarden.runs`: a vacuum deletes it."""
    left = tmp_path / "runs" / "bucket=0" / "orphan.parquet"
    left.parent.mkdir(exist_ok=True)
    left.touch()
    os.utime(left, (0, 0))
    return left


def caretaker(store: DeltaSystemStore) -> Caretaker:
    parts = World().cycle.parts
    cache = FleetCache(store, parts.registry.clock)
    recorder = replace(parts.recorder, store=store, cache=cache)
    return replace(
        parts.caretaker, store=store, cache=cache, recorder=recorder, standings=StoredStandings(store)
    )


def on_a_host(store: DeltaSystemStore, database: datetime, apart: timedelta) -> Caretaker:
    """Whose clock is so much ahead of the database's."""
    clock = ManualClock(moment=database + apart)
    return replace(
        caretaker(store), clock=clock, clocks=HostClock(own=clock, database=lambda: database, host="node-7")
    )


def planned(store: DeltaSystemStore, action: LogCare | None = None) -> PlannedRun:
    return PlannedRun(
        table_id=system_table_id(RUNS.name),
        name="lakewarden.runs",
        location=store.location(RUNS),
        due=Due(action=action or Vacuum(requires=Head(4), retention_seconds=LONG), because="it is due"),
        estimate=Estimate(files=1, bytes=1, seconds=1.0),
        rank=1.0,
    )


def forbid(store: DeltaSystemStore, **why: str) -> None:
    def forbidden(row: TableRow | None) -> TableRow:
        assert row is not None
        return replace(row, **why)  # type: ignore[arg-type]  # by name

    store.edit(TABLES, lambda rows: [forbidden(rows.get(system_table_id(RUNS.name)))], because="forbid")


def test_the_counter_proof_an_allowed_vacuum_deletes(store: DeltaSystemStore, orphan: Path) -> None:
    row = caretaker(store).take(planned(store), store.raise_fence("daemon-1", at_least=1))
    assert row.outcome is Outcome.SUCCEEDED and not orphan.exists()


@pytest.mark.parametrize("care", ["vacuum", "log"])
@pytest.mark.parametrize("apart", [timedelta(days=30), -timedelta(minutes=6)], ids=["ahead", "behind"])
def test_a_daemon_whose_clock_is_wrong_deletes_nothing(
    store: DeltaSystemStore, orphan: Path, tmp_path: Path, apart: timedelta, care: str
) -> None:
    DeltaTable(str(tmp_path / "runs")).create_checkpoint()
    before = {path for path in (tmp_path / "runs").rglob("*") if path.is_file()}
    at = LATER + timedelta(seconds=LONG)
    wrong = on_a_host(store, at, apart)
    action = LogCare(requires=Head(4), checkpoint=False, retention_seconds=LONG) if care == "log" else None
    row = wrong.take(planned(store, action), store.raise_fence("daemon-1", at_least=1))
    assert row.outcome is Outcome.FAILED and "The clock of node-7 is " in (row.message or ""), row
    assert before <= {path for path in (tmp_path / "runs").rglob("*") if path.is_file()}
    right = on_a_host(store, at, timedelta(0))
    row = right.take(planned(store, action), store.raise_fence("daemon-1", at_least=2))
    assert row.outcome is Outcome.SUCCEEDED, "the counter-proof"


@pytest.mark.parametrize("apart", [4, -4], ids=["ahead", "behind"])
def test_what_is_young_by_the_databases_clock_or_the_hosts_is_young(
    store: DeltaSystemStore, orphan: Path, apart: int
) -> None:
    """So far apart as clocks may be."""
    keep, made = timedelta(seconds=LONG), datetime(2020, 1, 1, tzinfo=UTC)
    os.utime(orphan, (made.timestamp(),) * 2)
    older = made + keep + timedelta(minutes=2)
    host = on_a_host(store, older if apart < 0 else older - timedelta(minutes=4), timedelta(minutes=apart))
    row = host.take(planned(store), store.raise_fence("daemon-1", at_least=1))
    assert row.outcome is Outcome.SKIPPED and orphan.exists(), row


@pytest.mark.parametrize("why", [{"hold": "case 4711"}, {"paused": "look first"}], ids=["hold", "pause"])
@pytest.mark.parametrize("point", [None, "system.vacuum"], ids=["since the plan", "while it looked"])
def test_what_was_forbidden_is_not_deleted(
    store: DeltaSystemStore,
    orphan: Path,
    monkeypatch: pytest.MonkeyPatch,
    why: dict[str, str],
    point: str | None,
) -> None:
    fence = store.raise_fence("daemon-1", at_least=1)
    if point is None:
        forbid(store, **why)
    else:
        monkeypatch.setattr(
            failpoints, "listener", lambda reached: forbid(store, **why) if reached == point else None
        )
    row = caretaker(store).take(planned(store), fence)
    assert (row.outcome, row.error_class) == (Outcome.FAILED, "RevokedError")
    assert next(iter(why.values())) in (row.message or "")
    assert orphan.exists()


def test_a_leader_that_was_overtaken_while_it_looked_deletes_nothing(
    store: DeltaSystemStore, orphan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = store.raise_fence("daemon-1", at_least=1)
    monkeypatch.setattr(
        failpoints,
        "listener",
        lambda point: store.raise_fence("daemon-2", at_least=2) if point == "system.vacuum" else None,
    )
    with pytest.raises(FencedError):
        caretaker(store).take(planned(store), fence)
    assert orphan.exists()


def test_a_log_that_was_put_back_meanwhile_is_not_the_one_that_was_looked_at(
    store: DeltaSystemStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    DeltaTable(str(tmp_path / "runs")).create_checkpoint()
    store.append(RUNS, [sample(RUNS, 5)], because="recorded")
    log = tmp_path / "runs" / "_delta_log"
    head = DeltaTable(str(tmp_path / "runs")).version()

    def put_back(point: str) -> None:
        if point == "system.checkpointed":
            (log / "_last_checkpoint").unlink()
            for path in log.glob(f"{head:020d}.*"):
                path.unlink()

    monkeypatch.setattr(failpoints, "listener", put_back)
    note = Note(actor="tests", because="care")
    with pytest.raises(ConflictError, match="was replaced meanwhile"):
        tend_log(store, RUNS, checkpoint=True, keep=timedelta(0), now=LATER, note=note)
    assert (log / f"{0:020d}.json").exists()
