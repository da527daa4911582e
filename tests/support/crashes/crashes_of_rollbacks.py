"""The crash table's rows about rollbacks, those after a plain RESTORE included."""

from support.crashes.crash import Crash

__all__ = ["ROLLBACKS"]

_CARRY = "test_restored_tables.py::test_a_table_that_follows_goes_back_by_itself_whatever_is_killed"
_FORWARDS = "test_rollback_crash.py::test_killed_forwards_the_next_attempt_completes_it_once"
_BACK = "test_rollback_crash.py::test_killed_on_the_way_back_the_next_attempt_completes_it_once"
_MENDS = "test_rollback_crash.py::test_killed_while_it_mends_the_next_attempt_completes_it_once"
_UNMENDS = "test_rollback_crash.py::test_killed_while_a_table_is_taken_in_the_next_attempt_goes_on"
_FENCED = "test_rollback_asleep.py::test_killed_after_its_fence_the_undo_goes_on"
_BEGUN = "test_rollback_daemon.py::test_a_rollback_whose_command_was_killed_is_done_by_the_daemon"
_ICEBERG = "test_iceberg_rollback.py::test_killed_forwards_the_next_attempt_completes_it_once_on_iceberg"
_ICEBERG_AGAIN = (
    "test_iceberg_removals.py::test_killed_while_it_adds_rows_again_the_next_attempt_completes_it_once"
)
_ICEBERG_REMOVES = (
    "test_iceberg_removals.py::test_killed_while_it_removes_files_the_next_attempt_completes_it_once"
)
_RESTORED = "test_rollback_crash.py::test_killed_after_spark_restored_the_next_attempt_finds_its_commit"

ROLLBACKS = (
    # rollback
    Crash(
        point="restored.kept",
        killed="a daemon that saw a plain RESTORE, after it kept the plan for what follows by itself",
        left="a plan that nobody has applied",
        then="The RESTORE is still open, so the next daemon makes the same plan, "
        "under the same id, and begins it.",
        test=_CARRY,
    ),
    Crash(
        point="restored.begun",
        killed="the same, after it began that rollback",
        left="a rollback in the journal that no run works on",
        then="The next daemon queues its run. The RESTORE stays open until the rollback is over.",
        test=_CARRY,
    ),
    Crash(
        point="restored.told",
        killed="the same, after it kept the plan that waits for owners and told them",
        left="a plan, and no entry that the RESTORE was looked at",
        then="The next daemon makes the same plan again, tells the owners again, and writes the entry.",
        test=_CARRY,
    ),
    Crash(
        point="rollback.begun",
        killed="`rollback apply`, between the journal and its run",
        left="a rollback that is begun, no table touched",
        then="the daemon queues its run",
        test=_BEGUN,
    ),
    Crash(
        point="rollback.drained",
        killed="worker, after it waited for runs on the tables",
        left="untouched tables",
        then="the next attempt begins",
        test=_FORWARDS,
    ),
    Crash(
        point="rollback.verified",
        killed="worker, after it checked every target",
        left="untouched tables",
        then="the next attempt checks again",
        test=_FORWARDS,
    ),
    Crash(
        point="rollback.intent",
        killed="worker, between the journal of a wave and its first restore",
        left="a wave that is meant and not done",
        then="the next attempt does it",
        test=_FORWARDS,
        tried=("rollback.intent", "rollback.intent:2"),
    ),
    Crash(
        point="engine.restored",
        killed="worker, inside the engine, after Spark's RESTORE",
        left="a commit that carries the step's mark",
        then="the next attempt finds it by the mark",
        test=_RESTORED,
    ),
    Crash(
        point="iceberg.drafted",
        killed="worker, after it wrote a snapshot with an older version's files, which no metadata has yet",
        left="a list of manifests that nothing names",
        then="the next attempt writes another; a vacuum that lists the folder deletes the first",
        test=_ICEBERG,
    ),
    Crash(
        point="iceberg.restored",
        killed="worker, after that snapshot became main",
        left="a snapshot that carries the step's mark, and a tag on the head before",
        then="the next attempt finds it by the mark",
        test=_ICEBERG,
    ),
    Crash(
        point="iceberg.removal_drafted",
        killed="worker, after it wrote a snapshot of head without some files, which no metadata has yet",
        left="manifests that nothing names",
        then="the next attempt writes others; a vacuum that lists the folder deletes the first",
        test=_ICEBERG_REMOVES,
    ),
    Crash(
        point="iceberg.removed",
        killed="worker, after that snapshot became main",
        left="a snapshot that carries the step's mark, and a tag on the head before",
        then="the next attempt finds it by the mark",
        test=_ICEBERG_REMOVES,
    ),
    Crash(
        point="iceberg.copied",
        killed="worker, after it copied the rows of a lost append into files, which no metadata has yet",
        left="data files and manifests that nothing names",
        then="the next attempt copies them again; a vacuum that lists the folder deletes the first",
        test=_ICEBERG_AGAIN,
    ),
    Crash(
        point="iceberg.added_again",
        killed="worker, after the snapshot that has them became main",
        left="a snapshot that carries the step's mark, and a tag on it",
        then="the next attempt finds it by the mark: no row is there twice",
        test=_ICEBERG_AGAIN,
    ),
    Crash(
        point="rollback.restored",
        killed="worker, between the restore of a table and the journal",
        left="a commit that carries the step's mark",
        then="the next attempt finds it by the mark: nothing is restored twice",
        test=_FORWARDS,
        tried=("rollback.restored", "rollback.restored:2", "rollback.restored:3"),
    ),
    Crash(
        point="rollback.properties",
        killed="worker, after it set again the properties that a restore rewound",
        left="a commit that carries the step's mark",
        then="the next attempt finds it by the mark",
        test=_FORWARDS,
    ),
    Crash(
        point="rollback.files_removed",
        killed="worker, between taking files out of a table and the journal",
        left="a commit that carries the step's mark",
        then="the next attempt finds it by the mark",
        test=_MENDS,
    ),
    Crash(
        point="rollback.added_again",
        killed="worker, between adding a lost append again and the journal",
        left="a commit that carries the step's mark",
        then="the next attempt finds it by the mark: no row is there twice",
        test=_MENDS,
        tried=("rollback.added_again", "rollback.added_again:2"),
    ),
    Crash(
        point="rollback.set_aside",
        killed="worker, between quarantining or dropping a table and the journal",
        left="a row that names the rollback",
        then="the next attempt finds it set aside",
        test=_MENDS,
        tried=("rollback.set_aside", "rollback.set_aside:2"),
    ),
    Crash(
        point="rollback.acted",
        killed="worker, between the last table of a wave and the journal",
        left="a wave that is done and not written down",
        then="the next attempt finds every commit by its mark",
        test=_FORWARDS,
        tried=("rollback.acted", "rollback.acted:2"),
    ),
    Crash(
        point="rollback.finished",
        killed="worker, when the journal says done",
        left="a rollback that is done",
        then="nothing is left to do",
        test=_FORWARDS,
    ),
    Crash(
        point="rollback.fenced",
        killed="worker, after it made sure that a step of an attempt nobody saw "
        "to end cannot be done any more",
        left="an empty commit that carries the mark of the undo",
        then="the next attempt finds the table moved, and nothing to take back",
        test=_FENCED,
    ),
    Crash(
        point="rollback.undoing",
        killed="worker, between the journal of an undo and its first table",
        left="a wave that is to be taken back and is not",
        then="the next attempt takes it back",
        test=_BACK,
        tried=("rollback.undoing", "rollback.undoing:2"),
    ),
    Crash(
        point="rollback.taken_back",
        killed="worker, between taking a table back and the journal",
        left="a commit that carries the mark of the undo",
        then="the next attempt finds it by the mark",
        test=_BACK,
        tried=("rollback.taken_back", "rollback.taken_back:2", "rollback.taken_back:3"),
    ),
    Crash(
        point="rollback.taken_in",
        killed="worker, between taking a table in again and the journal",
        left="a row as it was before the rollback",
        then="the next attempt finds nothing to do there",
        test=_UNMENDS,
    ),
    Crash(
        point="rollback.unacted",
        killed="worker, between the last table that was taken back and the journal",
        left="a wave that is taken back and not written down",
        then="the next attempt finds every commit by its mark",
        test=_BACK,
        tried=("rollback.unacted", "rollback.unacted:2"),
    ),
    Crash(
        point="rollback.undone",
        killed="worker, when the journal says compensated",
        left="a rollback that is taken back",
        then="nothing is left to do",
        test=_BACK,
    ),
)
