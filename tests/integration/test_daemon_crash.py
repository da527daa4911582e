"""The daemon killed with -9 at every step, frozen and resumed, its database deleted:
one leader, nothing lost or doubled.

Random kills, of workers too, are in test_soak.py.
"""

import re
import signal
import time
from collections import Counter

import pytest

from lakewarden.catalog.model.rows import Action, Outcome, TableState
from support.crashes.crashes import points_of
from support.processes import slow_worker
from support.processes.house import House

pytestmark = pytest.mark.crash


def check_each_run_happened_once(house: House, tables: list[str]) -> None:
    """Every run is recorded once, every commit of ours belongs to one recorded run, nothing is left over."""
    recorded = Counter(row.run_id for row in house.runs())
    assert set(recorded.values()) == {1}
    assert house.unfinished() == () and house.services.queue.finished(100) == ()
    for location in tables:
        commits = house.run_ids(location)
        assert set(commits.values()) == {1}, commits
        assert set(commits) <= set(recorded), "a commit whose run is not on record"


def check_one_leads(house: House, first: int, second: int) -> None:
    """One of two daemons (process ids) holds the lease, the other has stepped down, and no token was given twice."""
    lease = house.services.leases.current("leader")
    assert lease is not None
    leader = int(lease.holder.split("-")[-2])
    assert leader in (first, second)
    other = (first, second).index(first + second - leader)
    log = (house.home / f"daemon-{other}.log").read_text()
    assert log.rfind('"no longer leading"') > log.rfind('"leading"'), (
        "the other one knows that it does not lead"
    )
    tokens = re.findall(r'"token": (\d+)', house.log())
    assert len(tokens) >= 3 and len(set(tokens)) == len(tokens), "each leader had a token of its own"


def test_killed_at_every_point_the_next_daemon_finishes_the_work(house: House) -> None:
    tables = [house.table(f"t{number}") for number in range(2)]
    house.conversion("raw")
    for point in points_of("test_killed_at_every_point_the_next_daemon_finishes_the_work"):
        with house.daemon(failpoint=point) as daemon:
            assert daemon.wait(300) == -signal.SIGKILL, (point, house.last_log())
    assert house.run_until_idle() == 0, house.log()
    check_each_run_happened_once(house, tables)
    assert {row.outcome for row in house.runs()} == {Outcome.SUCCEEDED}
    assert [row.name for row in house.runs() if row.action is Action.CONVERT] == ["db.raw"]
    assert house.state_of("db.raw") is TableState.ACTIVE
    assert all(house.operations(location)["OPTIMIZE"] == 1 for location in tables)


@pytest.mark.long
def test_a_frozen_leader_that_is_resumed_does_no_harm(house: House) -> None:
    tables = [house.table("t")]
    with house.daemon() as frozen:
        house.wait_until(lambda: "took" in house.last_log())
        house.freeze(frozen)
        with house.daemon():
            house.wait_until(lambda: '"leading"' in house.last_log())
            house.wait_until(lambda: len(house.runs()) >= 2, 240)
            frozen.send_signal(signal.SIGCONT)
            house.wait_until(lambda: "no longer leading" in (house.home / "daemon-0.log").read_text())
            house.append(tables[0])
            before = house.versions()["health"]
            house.wait_until(lambda: house.versions()["health"] > before)
            assert '"no longer leading"' not in house.last_log(), "the new leader stays"
    assert house.run_until_idle() == 0, house.log()
    check_each_run_happened_once(house, tables)


@pytest.mark.long
def test_the_database_is_deleted_while_a_run_is_in_flight_and_an_old_leader_is_frozen(house: House) -> None:
    tables, hold = [house.table("t")], house.folder / "hold"
    hold.touch()
    house.environment.update({"WORKER_PROGRAM": slow_worker.__file__, "HOLD": str(hold)})
    with house.daemon() as old:
        house.wait_until(lambda: "took" in house.last_log())
        house.freeze(old)
        with house.daemon() as new:
            house.wait_until(lambda: hold.with_suffix(".begun").exists(), 240)
            for path in house.home.glob("state.db*"):
                path.unlink()
            old.send_signal(signal.SIGCONT)
            house.wait_until(lambda: '"waits_for_workers": true' in house.log())
            house.wait_until(lambda: len(house.unfinished()) == 1)
            time.sleep(5)
            assert len(house.unfinished()) == 1, "the run in flight is known again, and no other was begun"
            check_one_leads(house, old.pid, new.pid)
            hold.unlink()
            house.wait_until(lambda: len(house.unfinished()) == 0)
    assert house.run_until_idle() == 0, house.log()
    check_each_run_happened_once(house, tables)
    assert house.operations(tables[0])["OPTIMIZE"] == 1


@pytest.mark.long
def test_a_run_that_had_ended_when_the_database_was_deleted_is_on_record_all_the_same(house: House) -> None:
    tables, hold = [house.table("t")], house.folder / "hold"
    house.settings["run.lease"] = "30 s"  # a worker that a busy machine holds up does not lose its run
    hold.touch()
    house.environment.update({"WORKER_PROGRAM": slow_worker.__file__, "HOLD": str(hold)})
    with house.daemon() as daemon:
        house.wait_until(lambda: hold.with_suffix(".begun").exists(), 240)
        house.freeze(daemon)
        hold.unlink()
        house.wait_until(lambda: len(house.services.queue.finished(9)) == 1)
        (ended,) = house.services.queue.finished(9)
        assert ended.request.run_id not in {row.run_id for row in house.runs()}, "nobody could record it yet"
        for path in house.home.glob("state.db*"):
            path.unlink()
        daemon.send_signal(signal.SIGCONT)
        house.wait_until(lambda: ended.request.run_id in {row.run_id for row in house.runs()})
    (row,) = [row for row in house.runs() if row.run_id == ended.request.run_id]
    assert (row.action, row.outcome) == (Action.COMPACT, Outcome.SUCCEEDED)
    assert house.run_until_idle() == 0, house.log()
    check_each_run_happened_once(house, tables)
