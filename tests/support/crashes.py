"""The crash table: where a process is killed, what is left then, what happens next, and the test that shows it.

The crash tests take their points from here (`points_of`), docs/reference/crashes.md is printed from here, and
tests/unit/test_crash_table.py compares both with the points in the source. A `*` stands for the name of a system table.
"""

from dataclasses import dataclass

__all__ = ["BLOWS", "CRASHES", "Blow", "Crash", "points_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Crash:
    """A process that dies by SIGKILL at a failpoint. `tried`: the points a test sets, where they are not just `point`."""

    point: str
    killed: str
    left: str
    then: str
    test: str
    tried: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Blow:
    """What happens to processes or their database besides: `blow` takes the place of a point."""

    blow: str
    left: str
    then: str
    test: str


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


_DAEMON = "test_daemon_crash.py::test_killed_at_every_point_the_next_daemon_finishes_the_work"
_STREAMS = "test_stream_crash.py::test_killed_between_rows_and_notes_the_next_cycle_adds_nothing"
_WORKER = "test_worker_crash.py::test_killed_at_every_point_each_run_is_done_once"
_INIT = "test_registry_crash.py::test_init_killed_is_simply_run_again"
_REGISTER = "test_registry_crash.py::test_register_killed_is_repaired_by_a_second_call"
_CONVERT = "test_registry_crash.py::test_a_conversion_whose_command_was_killed_is_done_by_the_daemon"
_CREATE = "test_system_crash.py::test_init_killed_and_done_again"
_CHANGE = "test_system_crash.py::test_a_change_killed_is_there_whole_or_not_at_all"
_FENCE = "test_system_crash.py::test_a_leader_killed_while_it_fences_is_overtaken"
_CARE = "test_system_crash.py::test_care_killed_leaves_a_whole_table"
_UPGRADE = "test_system_crash.py::test_an_upgrade_killed_goes_on"
_BACKUP = "test_system_crash.py::test_a_backup_killed_goes_on"
_REPAIR = "test_system_crash.py::test_a_repair_killed_goes_on"
_SYNC = "test_sync_crash.py::test_a_sync_killed_converges"
_ENLIST = "test_sync_crash.py::test_enlisting_killed_is_taken_up_by_the_next_init"
_CARRY = "test_restored_tables.py::test_a_table_that_follows_goes_back_by_itself_whatever_is_killed"
_FORWARDS = "test_rollback_crash.py::test_killed_forwards_the_next_attempt_completes_it_once"
_BACK = "test_rollback_crash.py::test_killed_on_the_way_back_the_next_attempt_completes_it_once"
_MENDS = "test_rollback_crash.py::test_killed_while_it_mends_the_next_attempt_completes_it_once"
_UNMENDS = "test_rollback_crash.py::test_killed_while_a_table_is_taken_in_the_next_attempt_goes_on"
_BEGUN = "test_rollback_daemon.py::test_a_rollback_whose_command_was_killed_is_done_by_the_daemon"
_RESTORED = "test_rollback_crash.py::test_killed_after_spark_restored_the_next_attempt_finds_its_commit"
_SPARK = "test_sync_crash.py::test_a_spark_worker_killed_between_two_steps_of_an_engine"

CRASHES = (
    # leader change
    Crash(
        point="leader.leased",
        killed="daemon, with the lease, before its fence",
        left="a lease that runs out",
        then="the next leader fences all seven system tables",
        test=_DAEMON,
    ),
    Crash(
        point="system.fence.*",
        killed="daemon, between two of the seven fence commits",
        left="some system tables with its token, some with the one before",
        then="the next leader fences all seven with a higher token",
        test=_FENCE,
        tried=("system.fence.tables", "system.fence.health", "system.fence.audit"),
    ),
    Crash(
        point="leader.fenced",
        killed="daemon, fenced, before it leads",
        left="a fence whose token the lease does not know",
        then="the next leader sees a token it did not give, waits one run lease for reports, then plans",
        test=_DAEMON,
    ),
    Crash(
        point="leader.advanced",
        killed="daemon, when the lease has its fence's token",
        left="lease and fence that agree, and nobody who leads",
        then="the next leader plans at once",
        test=_DAEMON,
    ),
    # a cycle of the leader
    Crash(
        point="cycle.observed",
        killed="daemon, after it looked and before it wrote",
        left="nothing",
        then="the next leader looks again",
        test=_DAEMON,
    ),
    Crash(
        point="cycle.planned",
        killed="daemon, with a plan in memory",
        left="health that is written, no run",
        then="the same plan is made again",
        test=_DAEMON,
    ),
    Crash(
        point="cycle.enqueued",
        killed="daemon, after it queued runs",
        left="queued runs; hints that are still there",
        then="workers of the next leader do them; a hint heard twice is harmless",
        test=_DAEMON,
    ),
    Crash(
        point="registry.converted",
        killed="daemon, while it records a conversion, with the row active",
        left="a finished run that is recorded and not forgotten",
        then="it is recorded again under the same id: once; the row stays as it is",
        test=_DAEMON,
    ),
    Crash(
        point="cycle.recorded",
        killed="daemon, after recording runs and before forgetting them",
        left="runs in both places",
        then="recorded again under the same id: once",
        test=_DAEMON,
    ),
    Crash(
        point="cycle.forgotten",
        killed="daemon, after the queue forgot recorded runs",
        left="runs on record, health from before them",
        then="the next leader looks at their tables",
        test=_DAEMON,
    ),
    Crash(
        point="streams.recorded",
        killed="daemon, after it recorded what sessions noted of their streams",
        left="rows on record, and the notes they were made of",
        then="the same rows again: none is added, and the notes are forgotten",
        test=_STREAMS,
    ),
    # a run
    Crash(
        point="run.claimed",
        killed="worker, with a claim",
        left="a claimed run whose lease runs out",
        then="it is queued again",
        test=_WORKER,
    ),
    Crash(
        point="run.started",
        killed="worker, before it looked at the table",
        left="a running run whose lease runs out",
        then="it is queued again",
        test=_WORKER,
    ),
    Crash(
        point="run.checked",
        killed="worker, after it checked the version",
        left="an untouched table",
        then="it is begun again, on the same version or not at all",
        test=_WORKER,
    ),
    Crash(
        point="run.executing",
        killed="worker, at the door of the action",
        left="an untouched table",
        then="it is begun again, on the same version or not at all",
        test=_WORKER,
    ),
    Crash(
        point="run.executed",
        killed="worker, between the commit and its report",
        left="a commit that carries the run's id",
        then="the log is asked: the run counts as done, nothing is repeated",
        test=_WORKER,
    ),
    Crash(
        point="run.finished",
        killed="worker, after its report",
        left="a finished run",
        then="it is recorded; nothing is told twice",
        test=_WORKER,
    ),
    Crash(
        point="convert.checked",
        killed="worker, before it converts",
        left="a Parquet table",
        then="the second attempt converts it",
        test=_WORKER,
    ),
    Crash(
        point="convert.entry",
        killed="worker, between the log of an empty table and its metastore entry",
        left="a Delta log of ours; an entry that says Parquet",
        then="the second attempt changes the entry",
        test=_SPARK,
    ),
    Crash(
        point="convert.converted",
        killed="worker, before it set the table's properties",
        left="a table of ours, half set up",
        then="the second attempt sets the properties",
        test=_WORKER,
    ),
    Crash(
        point="convert.properties",
        killed="worker, when the conversion is whole",
        left="a converted table that nobody reported",
        then="the second attempt finds nothing left to do",
        test=_WORKER,
    ),
    Crash(
        point="properties.decided",
        killed="worker, before it sets properties",
        left="an untouched table",
        then="it is begun again",
        test=_WORKER,
    ),
    Crash(
        point="properties.set",
        killed="worker, after it set properties",
        left="a commit that carries the run's id",
        then="the run counts as done",
        test=_WORKER,
    ),
    Crash(
        point="compact.decided",
        killed="worker, before it rewrites files",
        left="an untouched table",
        then="it is begun again",
        test=_WORKER,
    ),
    Crash(
        point="compact.compacted",
        killed="worker, after it rewrote small files",
        left="a commit that carries the run's id",
        then="the run counts as done; what is left is planned anew",
        test=_WORKER,
    ),
    Crash(
        point="compact.purged",
        killed="worker, after it purged deletion vectors",
        left="a commit that carries the run's id",
        then="the run counts as done",
        test=_SPARK,
    ),
    Crash(
        point="vacuum.decided",
        killed="worker, before it deletes files",
        left="all files",
        then="it is begun again",
        test=_WORKER,
    ),
    Crash(
        point="vacuum.deleted",
        killed="worker, after it deleted files and before its report",
        left="files that are gone, and nobody who says so",
        then="the second attempt finds nothing to delete",
        test=_WORKER,
    ),
    Crash(
        point="log.checkpointed",
        killed="worker, after a checkpoint and before log cleanup",
        left="a checkpoint, and old log entries",
        then="the second attempt cleans",
        test=_WORKER,
    ),
    Crash(
        point="log.entry_deleted",
        killed="worker, between two deletions of log entries",
        left="a log without its oldest entries, readable from its checkpoint",
        then="the second attempt deletes the rest",
        test=_WORKER,
    ),
    Crash(
        point="log.sidecar_deleted",
        killed="worker, between two deletions of sidecars that no checkpoint names",
        left="some of them",
        then="the second attempt deletes the rest",
        test=_WORKER,
    ),
    Crash(
        point="log.cleaned",
        killed="worker, after log cleanup and before its report",
        left="a clean log",
        then="the second attempt finds nothing to do",
        test=_WORKER,
    ),
    Crash(
        point="purge.marked",
        killed="worker, with the mark in the folder that is to go",
        left="a whole table with a mark of ours",
        then="the second attempt deletes it by the mark",
        test=_WORKER,
    ),
    Crash(
        point="purge.data_deleted",
        killed="worker, between the data and the log of a table it deletes",
        left="a log, a mark and no data",
        then="the second attempt deletes the rest by the mark",
        test=_WORKER,
    ),
    Crash(
        point="purge.deleted",
        killed="worker, when the folder is gone",
        left="no folder",
        then="the second attempt counts that as done",
        test=_WORKER,
    ),
    Crash(
        point="statistics.recorded",
        killed="worker, with statistics in the metastore, before those in the log",
        left="an entry with the statistics of this version",
        then="the second attempt leaves the entry and fills the log",
        test=_SYNC,
    ),
    # sync
    Crash(
        point="sync.decided",
        killed="worker, before it changes the metastore entry",
        left="an entry that drifted",
        then="the second attempt plans anew and changes it",
        test=_SYNC,
    ),
    Crash(
        point="sync.replaced",
        killed="worker, after it changed the entry and before its report",
        left="an entry that agrees",
        then="the second attempt finds nothing to do",
        test=_SYNC,
    ),
    # rollback
    Crash(
        point="restored.kept",
        killed="a daemon that saw a plain RESTORE, after it kept the plan for what follows by itself",
        left="a plan that nobody has applied",
        then="The RESTORE is still open, so the next daemon makes the same plan, under the same id, and begins it.",
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
    # registration
    Crash(
        point="registry.row",
        killed="`register`, between the row and its health",
        left="a row without health",
        then="a second call finds the row and writes its health; so does the sweep",
        test=_REGISTER,
    ),
    Crash(
        point="registry.health",
        killed="`register`, before it answers",
        left="a whole registration",
        then="a second call says that the table is managed already",
        test=_REGISTER,
    ),
    Crash(
        point="registry.converting",
        killed="`convert`, after the row and before the run is queued",
        left="a row in state `converting`",
        then="the next sweep queues the conversion",
        test=_CONVERT,
    ),
    Crash(
        point="init.created",
        killed="`init`, between the system tables and their metastore entries",
        left="seven system tables",
        then="a second `init` makes the entries",
        test=_INIT,
    ),
    Crash(
        point="enlist.entry",
        killed="`init`, between two metastore entries",
        left="some system tables that Spark knows by name",
        then="a second `init` makes the others",
        test=_ENLIST,
        tried=("enlist.entry:3",),
    ),
    # system tables
    Crash(
        point="system.create.*",
        killed="`init`, between two system tables",
        left="some of the seven",
        then="a second `init` makes the others",
        test=_CREATE,
        tried=("system.create.tables", "system.create.health", "system.create.audit"),
    ),
    Crash(
        point="system.created",
        killed="`init`, before row 0",
        left="seven empty tables",
        then="a second `init` writes the rows",
        test=_CREATE,
    ),
    Crash(
        point="system.decided",
        killed="whoever changes a system table, before the commit",
        left="the old version",
        then="done again, it is there once",
        test=_CHANGE,
    ),
    Crash(
        point="system.commit",
        killed="whoever changes a system table, in front of the commit",
        left="the old version, and files that no version names",
        then="done again, it is there once; a vacuum takes the files",
        test=_CHANGE,
    ),
    Crash(
        point="system.committed",
        killed="whoever changes a system table, after the commit",
        left="the new version",
        then="done again, it is still there once",
        test=_CHANGE,
    ),
    Crash(
        point="system.upgrade.*",
        killed="daemon, between the new columns and the new schema version",
        left="a table with both",
        then="the next daemon finishes the upgrade",
        test=_UPGRADE,
        tried=("system.upgrade.health",),
    ),
    Crash(
        point="system.compact",
        killed="leader, before it compacts a system table",
        left="the old version",
        then="the next leader compacts",
        test=_CARE,
    ),
    Crash(
        point="system.vacuum",
        killed="leader, before it vacuums a system table",
        left="the same rows, more files than needed",
        then="the next leader vacuums",
        test=_CARE,
    ),
    Crash(
        point="system.checkpointed",
        killed="leader, between checkpoint and log cleanup of a system table",
        left="a checkpoint, and old log entries",
        then="the next leader cleans",
        test=_CARE,
    ),
    Crash(
        point="system.log.deleted",
        killed="leader, between two deletions of log entries of a system table",
        left="a log that is readable from its checkpoint",
        then="the next leader deletes the rest",
        test=_CARE,
        tried=("system.log.deleted:3",),
    ),
    Crash(
        point="system.backup.file",
        killed="`system backup`, between two files",
        left="a copy without a manifest, which is no backup",
        then="a second call copies what is missing",
        test=_BACKUP,
        tried=("system.backup.file", "system.backup.file:9"),
    ),
    Crash(
        point="system.repaired",
        killed="`system repair`, between two steps",
        left="some of the damage",
        then="a second call plans and repairs what is left",
        test=_REPAIR,
    ),
)

BLOWS = (
    Blow(
        blow="leader frozen, resumed after another took over",
        left="a daemon that believes it leads",
        then="the fence refuses every commit of its; it steps down",
        test="test_daemon_crash.py::test_a_frozen_leader_that_is_resumed_does_no_harm",
    ),
    Blow(
        blow="operational database deleted while a run is in flight and an old leader is frozen, then resumed",
        left="nothing of intent",
        then="one leader, which waits one run lease; the worker reports its run; nothing is begun twice",
        test="test_daemon_crash.py::test_the_database_is_deleted_while_a_run_is_in_flight_and_an_old_leader_is_frozen",
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
