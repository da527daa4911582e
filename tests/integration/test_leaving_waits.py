"""Leaving when something is away: a worker that died, or the table itself; and many tables cost no more than few."""

import shutil
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.formats.delta.retention import CLEANUP
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.policy.original_properties import with_ours
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.state.port import Result, RunRequest
from lakewarden.catalog.state.queue import DatabaseQueue
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.runs import leaving
from lakewarden.daemon.usecases.runs.leaving import Left, finish, foresee, leave, those_who_leave
from support.processes.commands import caller
from support.processes.house import ANA, House

SHORT = timedelta(milliseconds=300)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.end()


def managed(house: House, name: str) -> str:
    """A table on which we have set a property. Returns its row's id."""
    place = house.folder / "lake" / name
    house.append(place)
    row = register(house.services.registry, str(place), actor=ANA, name=f"db.{name}").row
    kept = with_ours(row, ((CLEANUP, "false"),), {})
    house.services.store.edit(TABLES, lambda _: [kept], because="test")
    DeltaTable(str(place)).alter.set_table_properties({CLEANUP: "false"}, raise_if_not_exists=False)
    return row.table_id


def everybody_leaves(house: House, said: list[str]) -> tuple[Left, ...]:
    services = house.services
    foreseen = [foresee(services, row) for row in those_who_leave(services)]
    for one in foreseen:
        leave(services, one, actor=ANA)
    return finish(services, foreseen, actor=ANA, tell=said.append)


def test_what_a_dead_worker_had_claimed_keeps_no_table_from_leaving(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakewarden.daemon.usecases.runs.leaving._PATIENCE", 60.0)
    row = house.services.registry.get(managed(house, "t"))
    request = RunRequest(
        run_id="old",
        table_id=row.table_id,
        name=row.name,
        location=row.location or "",
        action=Action.STATISTICS,
        payload="{}",
        because="test",
    )
    queue = house.services.queue
    queue.enqueue([request])
    run = queue.claim("worker-dead", SHORT)
    assert run is not None and queue.start(run.request.run_id, "worker-dead", SHORT)
    said: list[str] = []
    [left] = everybody_leaves(house, said)
    assert left.owed is None and CLEANUP not in DeltaTable(row.location or "").metadata().configuration
    assert any("worker-dead is gone" in one for one in said)


def test_a_leader_that_does_nothing_is_named_while_a_drop_waits(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakewarden.daemon.usecases.runs.leaving._SILENCE", 0.0)
    monkeypatch.setattr("lakewarden.daemon.usecases.runs.leaving._PATIENCE", 0.6)
    managed(house, "t")
    settings = house.services.settings
    house.services.leases.acquire(settings.lease_name, "frozen-daemon", timedelta(minutes=5))
    said: list[str] = []
    [left] = everybody_leaves(house, said)
    waits = [one for one in said if one.startswith("Waiting for")]
    assert len(waits) == 1, "said once, and again only after half a minute"
    assert "the daemon frozen-daemon, which leads" in waits[0] and "Ctrl-C" in waits[0]
    assert left.owed is not None and "no worker has come to it yet" in left.owed


def test_many_tables_are_queued_once_and_asked_for_when_they_ended(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [managed(house, f"t{number}") for number in range(5)]
    enqueued: list[str] = []
    asked: list[str] = []
    enqueue, ended = DatabaseQueue.enqueue, leaving._ended

    def counted(queue: DatabaseQueue, requests: Iterable[RunRequest]) -> tuple[str, ...]:
        kept = tuple(requests)
        enqueued.extend(one.table_id for one in kept)
        return enqueue(queue, kept)

    def looked(services: Services, request: RunRequest) -> Result | None:
        asked.append(request.table_id)
        return ended(services, request)

    monkeypatch.setattr(DatabaseQueue, "enqueue", counted)
    monkeypatch.setattr(leaving, "_ended", looked)
    lefts = everybody_leaves(house, [])
    assert all(left.owed is None for left in lefts) and len(lefts) == 5
    assert sorted(enqueued) == sorted(asked) == sorted(ids)


def test_a_dry_run_of_a_drop_does_not_have_to_reach_the_table(
    house: House, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    managed(house, "t")
    shutil.move(house.folder / "lake" / "t", house.folder / "away")
    cli = caller(house.home, monkeypatch, capfdbinary)
    shown = cli("tables", "drop", "db.t", "--dry-run", "-o", "json")
    assert shown.code == 0 and "Nothing was changed" in shown.err
    assert shown.json["unsets"] == [CLEANUP] and shown.json["trouble"]
    assert cli("tables", "drop", "db.t", "--purge", "--dry-run").code != 0
