"""What a finished run settles holds for what it was queued for, not for what the row waits for by the time it is
recorded."""

import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest

from lakewarden.catalog.errors import ConflictError, LakewardenError, UnavailableError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.metastore.table_heads import TableHeads
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.model.pending_purge import PURGE_AFTER, PURGE_HEAD, PURGE_VERSION
from lakewarden.catalog.model.rows import Action, Outcome, TableRow, TableState
from lakewarden.catalog.policy.original_properties import OriginalProperty, is_leaving, kept_of
from lakewarden.catalog.registry.convert import WantedConversion, begin_conversion
from lakewarden.catalog.registry.governance import governed
from lakewarden.catalog.registry.removal import drop, undrop
from lakewarden.catalog.state.port import Result, RunRequest
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.control.cycle import Cycle
from lakewarden.jobs.actions.convert import conversion_action
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.actions.registry import encode
from support.builders.callers import actor
from support.builders.daemons import World

ANA = actor("ana", admin=True)
OWED = (OriginalProperty(name="delta.enableExpiredLogCleanup", before=None, ours=("false",)),)


def dropped(world: World) -> None:
    drop(world.cycle.parts.registry, "db.t", actor=ANA, owed=OWED)


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED, Outcome.SUCCEEDED])
def test_a_table_dropped_again_before_the_first_run_is_recorded_is_still_owed_its_properties(
    world: World, outcome: Outcome
) -> None:
    world.add("db.t")
    world.sweep()
    dropped(world)
    assert world.sweep().queued == 1
    undrop(world.cycle.parts.registry, "db.t", actor=ANA)
    run = world.work(Result(outcome=outcome, message="it has not left management"))
    assert run is not None and run.request.action is Action.PROPERTIES
    world.clock.advance(timedelta(seconds=1))
    dropped(world)
    world.sweep()
    row = world.row("db.t")
    assert is_leaving(row) and [one.name for one in kept_of(row)] == [OWED[0].name], row.state_reason
    again = world.work(Result(outcome=Outcome.SUCCEEDED, message="unset"))
    assert again is not None and again.request.run_id != run.request.run_id
    world.sweep()
    assert not is_leaving(world.row("db.t")) and "unset" in (world.row("db.t").state_reason or "")


def waiting(row: TableRow, version: int) -> TableRow:
    marks = {PURGE_AFTER: "2026-05-01T00:00:00+00:00", PURGE_VERSION: str(version), PURGE_HEAD: f"h{version}"}
    return replace(row, state=TableState.PURGING, properties={**row.properties, **marks})


def ended(world: World, row: TableRow, result: Result) -> None:
    """A run of its purge."""
    action = Purge(requires=Head(3, "h3"), files=1, bytes=1)
    request = RunRequest(
        run_id=uuid.uuid4().hex,
        table_id=row.table_id,
        name=row.name,
        location=row.location or "",
        action=Action.PURGE,
        payload=encode(action),
        because="due",
        requires_version=3,
        rank=1.0,
    )
    world.queue.enqueue([request])
    world.work(result)


@pytest.mark.parametrize("version", [3, 4], ids=["the same purge", "another one"])
def test_a_purge_settles_only_the_purge_that_it_was_queued_for(world: World, version: int) -> None:
    row = waiting(world.add("db.t"), 3)
    world.store.edit(TABLES, lambda _: [row], because="drop --purge")
    ended(world, row, Result(outcome=Outcome.SUCCEEDED, message="its folder is gone already"))
    world.store.edit(TABLES, lambda _: [waiting(row, version)], because="dropped, undropped, dropped again")
    world.sweep()
    assert world.row("db.t").state is (TableState.PURGED if version == 3 else TableState.PURGING)


class Entries(TakenEntries):
    """Of tables whose names catalogs have; `trouble` is raised, once each."""

    asked: ClassVar[list[str]]
    trouble: ClassVar[list[LakewardenError]]

    def put_back(self, location: str, table_id: str) -> None:
        self.asked.append(table_id)
        if self.trouble:
            raise self.trouble.pop()


@pytest.mark.parametrize(
    ("state", "trouble", "asked", "recorded"),
    [
        (TableState.DROPPED, None, 1, 1),
        (TableState.ACTIVE, None, 1, 1),
        (TableState.PURGING, None, 0, 1),
        (TableState.PURGED, None, 0, 1),
        (TableState.DROPPED, UnavailableError("The catalog does not answer."), 2, 2),
        (TableState.DROPPED, ConflictError("Another table has the name."), 1, 1),
    ],
    ids=["stopped", "undropped", "waiting", "purged", "away", "taken"],
)
def test_the_entry_of_a_table_whose_deletion_was_stopped_gets_its_name_back_when_the_run_has_ended(
    world: World, state: TableState, trouble: LakewardenError | None, asked: int, recorded: int
) -> None:
    parts, row = world.cycle.parts, replace(waiting(world.add("db.t"), 3), state=state)
    Entries.asked, Entries.trouble = [], [] if trouble is None else [trouble]
    heads = TableHeads(lambda: None, lambda: world.store.rows(TABLES))
    entries = Entries(heads=heads, metastore=lambda: None)
    world.cycle = Cycle(replace(parts, recorder=replace(parts.recorder, entries=entries)))
    world.store.edit(TABLES, lambda _: [row], because="stopped")
    ended(world, row, Result(outcome=Outcome.ABANDONED, message="Its worker was lost."))
    for _ in range(recorded):
        assert world.queue.finished(9)
        world.sweep(may_plan=False)
    assert (Entries.asked, world.queue.finished(9)) == ([row.table_id] * asked, ())


def test_a_conversion_that_failed_leaves_the_row_of_the_one_that_was_asked_for_meanwhile(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir()
    registry = world.cycle.parts.registry

    def asked() -> TableRow:
        return begin_conversion(
            registry, str(tmp_path / "raw"), WantedConversion(name="db.raw"), actor=ANA
        ).row

    row = asked()
    world.queue.enqueue(
        [
            RunRequest(
                run_id=uuid.uuid4().hex,
                table_id=row.table_id,
                name=row.name,
                location=row.location or "",
                action=Action.CONVERT,
                payload=encode(conversion_action(governed(registry, row.table_id))),
                because="asked for",
                rank=1.0,
            )
        ]
    )
    world.work(Result(outcome=Outcome.FAILED, error_class="RefusedError", message="it was cancelled"))
    asked()
    world.sweep()
    assert world.row("db.raw").state is TableState.CONVERTING
