"""Rollbacks that a daemon has to finish: the command was killed, workers were killed, the database was deleted."""

import signal
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.model.rollbacks import GROUP_PATIENCE, Rollback
from lakewarden.catalog.model.rows import Action, Outcome, RollbackState, RunRow
from lakewarden.catalog.policy.access import Actor
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.system.port import ROLLBACKS
from lakewarden.daemon.usecases.rollbacks.request import RollbackWish, request_of
from lakewarden.daemon.usecases.rollbacks.rollback import RollbackService, rollbacks_of_services
from support.builders.derived import ids, write
from support.crashes.crashes import points_of
from support.processes.commands import command
from support.processes.group_process import killed_at
from support.processes.house import ANA, House

pytestmark = pytest.mark.crash


def lake(house: House) -> tuple[Path, Path]:
    """A source with a bad load, and a table derived from it."""
    source, derived = house.folder / "lake" / "source", house.folder / "lake" / "derived"
    write(source, 1)
    reads = {register(house.services.registry, str(source), actor=ANA, name="db.source").row.table_id: source}
    write(derived, 1, reads=reads)
    write(source, 99)
    write(derived, 99, reads=reads)
    register(house.services.registry, str(derived), actor=ANA, name="db.derived")
    return source, derived


def planned(house: House) -> str:
    """The hash of a plan that takes the bad load back everywhere."""
    request = request_of(house.services.registry, RollbackWish(where="db.source", version=0, cascade=True))
    return rollbacks_of_services(house.services).plan(request, actor=ANA).plan.hash


def state(house: House) -> RollbackState:
    return next(row.state for row in house.services.store.rows(ROLLBACKS).all() if row.step == 0)


def rollback_runs(house: House) -> list[RunRow]:
    return [row for row in house.runs() if row.action is Action.ROLLBACK]


@pytest.mark.long
@pytest.mark.parametrize("point", points_of("test_a_rollback_whose_command_was_killed_is_done_by_the_daemon"))
def test_a_rollback_whose_command_was_killed_is_done_by_the_daemon(house: House, point: str) -> None:
    source, derived = lake(house)
    killed = command(house.home, "rollback", "apply", planned(house), failpoint=point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert state(house) is RollbackState.INTENT and house.unfinished() == ()
    for path in house.home.glob("state.db*"):
        path.unlink()  # the journal alone says what has to be done
    assert house.run_until_idle() == 0, house.log()
    assert (state(house), ids(source), ids(derived)) == (RollbackState.DONE, [1], [1])
    assert [row.outcome for row in rollback_runs(house)] == [Outcome.SUCCEEDED]


def test_workers_killed_after_each_restore_leave_a_rollback_that_the_next_one_completes(house: House) -> None:
    source, derived = lake(house)
    killed = command(house.home, "rollback", "apply", planned(house), failpoint="rollback.begun")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    # Every worker dies after the first restore it makes itself: the first attempt at the source, the second at the
    # derived table, the third has nothing left to restore.
    house.environment["WORKER_FAILPOINT"] = "rollback.restored"
    with house.daemon():
        house.wait_until(lambda: state(house) is RollbackState.DONE, 300)
    del house.environment["WORKER_FAILPOINT"]
    assert house.run_until_idle() == 0, house.log()
    assert (ids(source), ids(derived)) == ([1], [1])
    assert [house.operations(str(place))["RESTORE"] for place in (source, derived)] == [1, 1]


@pytest.mark.long
def test_a_command_that_the_daemon_overtakes_takes_the_run_of_the_daemon_for_its_own(house: House) -> None:
    class Overtaken(RollbackService):
        """When the command has begun a rollback, the daemon does all of it first."""

        def begin(self, text: str, *, actor: Actor) -> Rollback:
            begun = super().begin(text, actor=actor)
            assert house.run_until_idle() == 0, house.log()
            return begun

    source, derived = lake(house)
    made = rollbacks_of_services(house.services)
    late = Overtaken(services=made.services, journal=made.journal, gatherer=made.gatherer)
    done = late.apply(planned(house), actor=ANA, tell=lambda said: None)
    assert done.head.state is RollbackState.DONE
    assert (ids(source), ids(derived)) == ([1], [1])
    assert [row.run_id for row in rollback_runs(house)] == [f"{done.rollback_id}-1"]
    assert house.unfinished() == ()


@pytest.mark.long
def test_a_command_beside_a_daemon_makes_one_run_of_a_rollback_and_one_of_its_undo(house: House) -> None:
    lake(house)
    plan_hash = planned(house)
    lease = house.services.settings.lease_name
    with house.daemon() as daemon:
        house.wait_until(lambda: house.services.leases.current(lease) is not None)
        for asked in ("apply", "undo"):
            said = command(house.home, "rollback", asked, plan_hash)
            assert said.returncode == 0, said.stderr
        house.wait_until(lambda: house.unfinished() == () and len(rollback_runs(house)) >= 2)
        daemon.terminate()
        assert daemon.wait(60) == 0, house.log()
    assert [row.outcome for row in rollback_runs(house)] == [Outcome.SUCCEEDED] * 2
    assert {row.run_id for row in rollback_runs(house)} == {f"{plan_hash}-1", f"{plan_hash}-2"}


@pytest.mark.spark
def test_a_statement_whose_session_was_killed_is_taken_back_by_the_daemon(house: House) -> None:
    folder = house.folder / "lake"
    for name, rows in {"a": [1, 2], "b": [2, 3]}.items():
        write_deltalake(folder / name, pa.table({"k": pa.array(rows, pa.int32())}))
        register(house.services.registry, str(folder / name), actor=ANA, name=f"db.{name}")
    statement = f"DELETE a, b FROM delta.`{folder}/a` a JOIN delta.`{folder}/b` b ON a.k = b.k"
    killed_at("group.making:2", folder, house.home, statement)
    (head,) = (row for row in house.services.store.rows(ROLLBACKS).all() if row.step == 0)
    assert head.state is RollbackState.INTENT and keys(folder) == [[1], [2, 3]]
    long_ago = replace(head, recorded_at=head.recorded_at - GROUP_PATIENCE)
    house.services.store.edit(ROLLBACKS, lambda _: [long_ago], because="nobody has seen the session since")
    assert house.run_until_idle() == 0, house.log()
    assert (state(house), keys(folder)) == (RollbackState.COMPENSATED, [[1, 2], [2, 3]])
    assert [row.outcome for row in rollback_runs(house)] == [Outcome.SUCCEEDED]


def keys(folder: Path) -> list[list[int]]:
    tables = (DeltaTable(folder / name).to_pyarrow_table() for name in ("a", "b"))
    return [sorted(table.column("k").to_pylist()) for table in tables]
