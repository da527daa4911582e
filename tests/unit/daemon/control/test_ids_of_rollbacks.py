"""The run that goes on with a rollback has an id that the queue takes, also once older system tables came back."""

from types import SimpleNamespace
from typing import Any, cast

from lakewarden.catalog.model.rollbacks import next_run_id
from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.state.port import Result
from lakewarden.daemon.usecases.runs.waiting import run_is_over
from lakewarden.jobs.actions.answers import Due
from lakewarden.jobs.actions.costs import Estimate
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.planning.planner import Plan, PlannedRun
from support.builders.daemons import World
from support.builders.states import request

DONE = Result(outcome=Outcome.SUCCEEDED, message="done")


def test_a_run_that_the_queue_had_is_over_though_its_record_is_gone(world: World) -> None:
    row = world.add("db.a")
    world.queue.enqueue([request("b", run_id="r1-1", action=Action.ROLLBACK)])
    run = world.work(DONE)
    assert run is not None and run.request.run_id == "r1-1"
    services = cast("Any", SimpleNamespace(queue=world.queue, store=world.store))
    assert run_is_over(services, "r1-1") and not run_is_over(services, "r1-2")
    world.queue.forget(["r1-1"])
    assert world.runs() == (), "as after a restore of the system tables"
    assert next_run_id("r1", lambda one: run_is_over(services, one)) == "r1-2"
    planned = PlannedRun(
        table_id=row.table_id,
        name=row.name,
        location=row.location or "",
        due=Due(action=RollBack(rollback_id="r1"), because="it is half done"),
        estimate=Estimate(),
        rank=1.0,
    )
    assert world.cycle._start(Plan(at=world.clock.now(), runs=(planned,)), world.fence) == 1
    assert [one.request.run_id for one in world.queue.unfinished()] == ["r1-2"]
