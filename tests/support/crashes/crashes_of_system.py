"""The crash table's rows about registration and the system tables."""

from support.crashes.crash import Crash

__all__ = ["SYSTEM"]

_INIT = "test_registry_crash.py::test_init_killed_is_simply_run_again"
_BATCH = "test_onboarding.py::test_killed_in_the_middle_the_same_command_goes_on"
_CONVERT = "test_registry_crash.py::test_a_conversion_whose_command_was_killed_is_done_by_the_daemon"
_CREATE = "test_system_crash.py::test_init_killed_and_done_again"
_CHANGE = "test_system_crash.py::test_a_change_killed_is_there_whole_or_not_at_all"
_CARE = "test_system_crash.py::test_care_killed_leaves_a_whole_table"
_UPGRADE = "test_system_crash.py::test_an_upgrade_killed_goes_on"
_HALF_UPGRADE = (
    "test_side_by_side.py::test_an_upgrade_killed_half_way_lets_whoever_may_write_write_and_goes_on"
)
_BACKUP = "test_system_crash.py::test_a_backup_killed_goes_on"
_REPAIR = "test_system_crash.py::test_a_repair_killed_goes_on"
_RESTORE = "test_system_crash.py::test_a_restore_killed_leaves_the_damage_or_the_whole_table"
_ENLIST = "test_sync_crash.py::test_enlisting_killed_is_taken_up_by_the_next_init"

SYSTEM = (
    # registration
    Crash(
        point="registry.batch.rows",
        killed="`register`, between the rows of a batch and their health",
        left="whole batches, and one whose rows have no health and no entry in the audit",
        then="the same command finds them, writes health and entries, and goes on; "
        "the sweep writes health, too",
        test=_BATCH,
        tried=("registry.batch.rows:2",),
    ),
    Crash(
        point="registry.batch.health",
        killed="`register`, between a batch and its entries in the audit",
        left="whole batches, the last one without entries",
        then="the same command finds them, writes the entries and goes on",
        test=_BATCH,
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
        point="system.upgrade.begun",
        killed="`init`, after it closed `lakewarden.tables` to the old version",
        left="system tables that neither version writes to",
        then="a second `init` upgrades the other six and opens them to the new version",
        test=_HALF_UPGRADE,
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
        point="system.backup.manifest",
        killed="`system backup`, before its manifest",
        left="a whole copy without a manifest, which is no backup",
        then="a second call copies what is missing and writes it",
        test=_BACKUP,
    ),
    Crash(
        point="system.restore.staged",
        killed="`system repair`, before the copy of a whole table takes its place",
        left="the damage, and a copy beside the store",
        then="a second call copies anew",
        test=_RESTORE,
    ),
    Crash(
        point="system.aside",
        killed="`system repair`, between two files that are moved aside",
        left="a log without its beginning, which cannot be opened as an older version",
        then="a second call goes on",
        test=_RESTORE,
        tried=("system.aside", "system.aside:2"),
    ),
    Crash(
        point="system.restore.aside",
        killed="`system repair`, after a damaged log was moved aside",
        left="a table without a log",
        then="a second call puts it back",
        test=_RESTORE,
    ),
    Crash(
        point="system.restore.file",
        killed="`system repair`, between two files of a table that is put back",
        left="a table that cannot be opened before its last file is there",
        then="a second call puts the rest back",
        test=_RESTORE,
        tried=("system.restore.file", "system.restore.file:7", "system.restore.file:11"),
    ),
    Crash(
        point="system.restore.single",
        killed="`system repair`, between two single files that are put back",
        left="some of the damage",
        then="a second call plans and repairs what is left",
        test=_REPAIR,
    ),
    Crash(
        point="system.repaired",
        killed="`system repair`, between two steps",
        left="some of the damage",
        then="a second call plans and repairs what is left",
        test=_REPAIR,
    ),
)
