"""The crash table: where a process is killed, what is left then, what happens next, and the test that shows it.

The crash tests take their points from here (`points_of`), docs/reference/crashes.md is printed from here, and
tests/unit/house/test_crash_table.py compares both with the points in the source.
A `*` stands for the name of a system table.
"""

from support.crashes.crash import Blow
from support.crashes.crashes_of_groups import GROUPS
from support.crashes.crashes_of_rollbacks import ROLLBACKS
from support.crashes.crashes_of_runs import RUNS
from support.crashes.crashes_of_system import SYSTEM
from support.crashes.crashes_of_upserts import UPSERTS

__all__ = ["BLOWS", "CRASHES", "points_of"]

CRASHES = (*RUNS, *ROLLBACKS, *SYSTEM, *UPSERTS, *GROUPS)

BLOWS = (
    Blow(
        blow="leader frozen, resumed after another took over",
        left="a daemon that believes it leads",
        then="the fence refuses every commit of its; it steps down",
        test="test_daemon_crash.py::test_a_frozen_leader_that_is_resumed_does_no_harm",
    ),
    Blow(
        blow="a worker frozen before it takes an entry away, resumed after its purge was stopped and settled",
        left="an entry by a name of ours that nobody waits for",
        then="the worker gives it back; where it is killed before that, undrop or drop does",
        test="test_iceberg_purge.py::"
        "test_whose_entry_was_taken_when_all_was_settled_gets_it_back_by_a_command",
    ),
    Blow(
        blow="operational database deleted while a run is in flight and an old leader is frozen, "
        "then resumed",
        left="nothing of intent",
        then="one leader, which waits one run lease; the worker reports its run; nothing is begun twice",
        test="test_daemon_crash.py::"
        "test_the_database_is_deleted_while_a_run_is_in_flight_and_an_old_leader_is_frozen",
    ),
    Blow(
        blow="a worker on Spark killed again and again: after it took files out or back, "
        "set a table aside or took it in",
        left="a commit with the step's mark, or a row that names the rollback, "
        "and a journal that knows of neither",
        then="each attempt finds what was done and gets one step further; no commit is made twice",
        test="test_rollback_crash.py::test_killed_again_and_again_on_spark_each_deed_is_done_once",
    ),
    Blow(
        blow="daemons and workers killed and frozen at random while users append",
        left="anything of the above",
        then="every run converges, none is doubled, none is lost",
        test="test_soak.py::test_random_kills_of_daemons_and_workers_double_and_lose_nothing",
    ),
    Blow(
        blow="workers killed at random until a crowd of runs is done",
        left="anything of the above",
        then="every run is done once",
        test="test_worker_crash.py::test_random_kills_lose_nothing_and_double_nothing",
    ),
    Blow(
        blow="five writers of the system tables, on local disk and HDFS, killed at random",
        left="acknowledged changes, and some that were not",
        then="every acknowledged change is there once",
        test="test_system_fire.py::test_every_acknowledged_change_is_there_once",
    ),
)


def points_of(test: str) -> tuple[str, ...]:
    """The failpoints that a test has to set, in the order of the table."""
    found = tuple(
        point
        for crash in CRASHES
        if crash.test.endswith(f"::{test}")
        for point in crash.tried or (crash.point,)
    )
    assert found, f"no crash names {test}"
    return found
