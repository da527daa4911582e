"""The crash table's rows about the leader, its cycle, its runs and the sync of metastore entries."""

from support.crash import Crash

__all__ = ["RUNS"]

_DAEMON = "test_daemon_crash.py::test_killed_at_every_point_the_next_daemon_finishes_the_work"
_STREAMS = "test_stream_crash.py::test_killed_between_rows_and_notes_the_next_cycle_adds_nothing"
_WORKER = "test_worker_crash.py::test_killed_at_every_point_each_run_is_done_once"
_FENCE = "test_system_crash.py::test_a_leader_killed_while_it_fences_is_overtaken"
_SYNC = "test_sync_crash.py::test_a_sync_killed_converges"
_SPARK = "test_sync_crash.py::test_a_spark_worker_killed_between_two_steps_of_an_engine"

RUNS = (
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
)
