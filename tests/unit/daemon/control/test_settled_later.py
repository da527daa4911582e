"""What a finished run settles holds for what it was queued for, not for what the row waits for by the time it is
recorded."""

import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.pending_purge import PURGE_AFTER, PURGE_HEAD, PURGE_VERSION
from lakewarden.catalog.model.rows import Action, Outcome, TableRow, TableState
from lakewarden.catalog.policy.original_properties import OriginalProperty, is_leaving, kept_of
from lakewarden.catalog.registry.convert import WantedConversion, begin_conversion
from lakewarden.catalog.registry.governance import governed
from lakewarden.catalog.registry.removal import drop, undrop
from lakewarden.catalog.state.port import Result, RunRequest
from lakewarden.catalog.system.port import TABLES
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


@pytest.mark.parametrize("version", [3, 4], ids=["the same purge", "another one"])
def test_a_purge_settles_only_the_purge_that_it_was_queued_for(world: World, version: int) -> None:
    row = waiting(world.add("db.t"), 3)
    world.store.edit(TABLES, lambda _: [row], because="drop --purge")
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
    world.work(Result(outcome=Outcome.SUCCEEDED, message="its folder is gone already"))
    world.store.edit(TABLES, lambda _: [waiting(row, version)], because="dropped, undropped, dropped again")
    world.sweep()
    assert world.row("db.t").state is (TableState.PURGED if version == 3 else TableState.PURGING)


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
