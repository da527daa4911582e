"""What each column of the system tables means, and who writes each table."""

from collections.abc import Mapping
from typing import Final

__all__ = ["MEANINGS", "NESTED", "WRITERS"]

WRITERS: Final[Mapping[str, str]] = {
    "tables": "Commands, SQL and sessions that register, convert or govern a table, each as an admin "
    "or the table's owner; the sweep (state, identity, requested policies); "
    "workers (what stood in a table's properties before us, a rollback's quarantine, a purge's progress).",
    "health": "The leader's sweep, for tables that moved; registration and conversion, "
    "for the tables at hand.",
    "lineage": "The leader, from the tables' logs and from streams' checkpoints; "
    "sessions, for reads that a commit does not tell; `lineage` commands that record a stream's query.",
    "schemas": "The leader's sweep, when a schema has changed. Rows are only added.",
    "runs": "The leader alone, when a run is over. Rows are only added.",
    "rollbacks": "Commands and the daemon (plans), the worker that runs a rollback (its steps), "
    "sessions (statements over several tables).",
    "audit": "Whoever runs a governed use case, at its end. Rows are only added.",
}

MEANINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "tables": {
        "row": "Number of the row; 0 is `lakewarden.tables` itself. Never used twice.",
        "table_id": "The table's identity, made at registration: it stays through renames, "
        "moves and replacements.",
        "kind": "`table`, or `scope` for a row that only carries a pause, "
        "a hold or a policy of `*` or `db.*`.",
        "name": "The name it is managed under.",
        "format": "The table's format, `delta`. Null in scopes.",
        "location": "Where it lies, as a canonical URI. Null in scopes.",
        "owner": "Who may govern it beside admins. Null: nobody was named.",
        "state": "`converting`, `active`, `quarantined`, `dropped`, `purging` or `purged`.",
        "state_reason": "Why it is in this state, in a sentence.",
        "source": "How the row came to be: `self`, `convert`, `register` or `discover`.",
        "registered_at": "When it was registered.",
        "registered_by": "Who registered it.",
        "updated_at": "When the row was changed last.",
        "updated_by": "Who changed it last; `lakewarden` is the daemon.",
        "policy": "The policy keys that are set at this row; null fields are not. "
        "`policy show` tells what counts.",
        "dependencies": "Declared edges to the tables that this one is made from.",
        "properties": "What lakewarden keeps about the table for itself, "
        "such as properties to be given back.",
        "format_ids": "UUIDs that the format gave the table, newest last.",
        "aliases": "Former names and locations.",
        "paused": "Why its work is paused; null: it is not.",
        "hold": "Why nothing of it may be deleted or rewound; null: it may.",
        "marks": "Versions that were marked bad or clean.",
    },
    "health": {
        "table_id": "The table.",
        "name": "Its name when it was looked at.",
        "version": "The version that was head. Null: its log could never be read.",
        "head": "Head's state as one token: another one exactly if head is another.",
        "committed_at": "When that version was committed.",
        "files": "Live data files.",
        "bytes": "Their size in bytes.",
        "small_files": "Files below half of `compaction.target`.",
        "rows": "Rows that a scan returns; null where some file has no count.",
        "deletion_vectors": "Files with a deletion vector.",
        "deleted_rows": "Rows that deletion vectors take out.",
        "partitions": "Partitions that hold a live file.",
        "files_without_statistics": "Live files without statistics in the log.",
        "tombstones": "Removed files that no vacuum has dealt with.",
        "tombstone_bytes": "Their size in bytes.",
        "oldest_tombstone_at": "When the oldest of them was removed.",
        "commits_since_checkpoint": "Commits after the last checkpoint.",
        "schema_hash": "Another one exactly if a column's id, path, type, nullability or comment is another.",
        "first_version": "The oldest version that the log goes back to.",
        "last_write_at": "When anybody last changed data.",
        "last_vacuum_at": "When anybody last ended a vacuum, by the log.",
        "last_compaction_at": "When anybody last compacted, by the log.",
        "last_statistics_at": "When lakewarden last refreshed the statistics.",
        "unsupported": "Features of the table that keep lakewarden from acting.",
        "findings": "What the [checks](checks.md) found.",
        "checked_at": "When the daily checks ran last.",
        "observed_at": "When the table was read last.",
        "left_behind": "Versions that head showed until somebody moved it back by hand, without a RESTORE.",
        "deletes": "Deletes that are not applied yet, by kind (`position`, `equality`, `vector`, `log`): the files "
        "that hold them, their entries, their bytes.",
        "stored_rows": "Rows of its data files, deleted ones among them; null where some file has no count.",
        "backlog": "What piles up in its metadata; null what the format does not have. The files that a vacuum could "
        "reclaim are `tombstones`.",
    },
    "lineage": {
        "output_id": "The table that was written (`table_id`).",
        "output_version": "The version that was made.",
        "output_parent": "The version it was made from; -1: from nothing; -2: from one that nobody knows; "
        "null: an old row.",
        "input_id": "What was read: a `table_id`, the location of what is not managed, "
        "empty for nothing, `?` for not known.",
        "input_version": "Its version; null where there are none, or none is known.",
        "operation": "What the write did: `append`, `merge`, `update`, `delete`, `overwrite`, "
        "`replace`, `restore`, ...",
        "run_id": "The run, statement or streaming query that wrote.",
        "confidence": "Where the edge is known from: `committed`, `stream`, `plan`, `hint` or `declared`.",
        "recorded_at": "When the row was written.",
        "from_version": "Only the changes after this version were read. Null: the whole version.",
        "output_format_id": "The written table's UUID at that version.",
        "input_format_id": "The read table's UUID at that version.",
    },
    "schemas": {
        "table_id": "The table.",
        "version": "The version whose commit made this schema; the one at which it was seen first "
        "where that is not known.",
        "schema_id": "Counts the table's schemas from 0.",
        "columns": "Its columns, struct fields included, by stable id.",
        "changes": "What changed since the schema before.",
        "changed_by": "The user whom its commit names; null where it names none, its log entry is gone, "
        "or the table was registered with this schema.",
        "changed_at": "When that version was committed.",
    },
    "runs": {
        "run_id": "The run; its commits carry it, too.",
        "table_id": "The table it was for.",
        "name": "The table's name then.",
        "action": "`convert`, `vacuum`, `compact`, `statistics`, `log_care`, `metadata_care`, `sync`, `properties`, "
        "`purge` or `rollback`.",
        "because": "Why it was decided, in words.",
        "requires_version": "The version it was decided on.",
        "committed_version": "The last version it committed; null: none.",
        "outcome": "`succeeded`, `failed`, `abandoned` (its worker was lost), `skipped` or `cancelled`.",
        "error_class": "Which kind of error ended it.",
        "message": "What came of it, in a sentence.",
        "hint": "What a person can do about a failure.",
        "attempt": "Which attempt it was, from 1.",
        "predicted_files": "Files it was expected to touch.",
        "predicted_bytes": "Bytes it was expected to touch.",
        "predicted_seconds": "Seconds it was expected to take.",
        "actual_files": "Files it touched.",
        "actual_bytes": "Bytes it touched.",
        "actual_seconds": "Seconds it took.",
        "payload": "The action as it was decided, as JSON.",
        "details": "What its executor adds, as JSON.",
        "worker": "The worker that ran it.",
        "queued_at": "When it was queued.",
        "started_at": "When a worker took it; null: none did.",
        "finished_at": "When it was over.",
    },
    "rollbacks": {
        "rollback_id": "The rollback, plan, or statement over several tables.",
        "plan_hash": "The hash of its plan.",
        "step": "Number of the step; 0 is the whole.",
        "table_id": "The table of the step; in step 0 the one that it began with.",
        "from_version": "The head that the step was planned on.",
        "to_version": "The version whose content comes back; -1: there is none.",
        "state": "`planned`, `intent`, `done`, `conflict`, `undoing` or `compensated`.",
        "new_version": "What the step committed; null: nothing.",
        "recorded_at": "When the row was written last.",
        "kind": "`plan`, `restore`, `properties`, `remove_files`, `reapply`, `drop`, "
        "`quarantine` or `change`.",
        "wave": "Distance from the roots: lower waves go first.",
        "name": "The table's name then.",
        "location": "Where it lay then.",
        "payload": "The plan (step 0) or what the step needs, as JSON.",
        "message": "What stopped it, in a sentence.",
        "actor": "Who asked for it.",
        "undo": "Whether it is being taken back.",
        "undo_until": "Until when it can be undone.",
        "format_id": "The table's UUID at `from_version`; null: not known.",
    },
    "audit": {
        "audit_id": "The entry.",
        "at": "When it was over.",
        "actor": "Who asked.",
        "what": "What was asked for ([use cases](use-cases.md)).",
        "on": "What it was asked for: a table, a scope, a run, a rollback, ...",
        "origin": "From where: `cli`, `sql`, `session`, `gateway` or `daemon`.",
        "allowed": "False if it was refused or failed with an error of lakewarden's; `why` says which.",
        "why": "Why it was refused, failed or did not come to its end. Null: it was done.",
    },
}

NESTED: Final[Mapping[str, Mapping[str, str]]] = {
    "Finding": {
        "check": "The check's name.",
        "severity": "`info`, `warning` or `error`; an error quarantines.",
        "message": "What was found, in a sentence.",
        "since": "Since when it holds.",
    },
    "LeftVersions": {
        "first": "The oldest of them.",
        "last": "The newest of them.",
        "back_to": "The newest version that head then and head now were both made from.",
        "format_id": "The table's own UUID.",
    },
    "DeleteFiles": {
        "kind": "`position`, `equality`, `vector` or `log`.",
        "files": "The files that hold them; of Delta's vectors, the data files that have one.",
        "rows": "Their entries. One by equality may take away any number of rows, also none.",
        "bytes": "The size of these files; null where the log does not say.",
    },
    "Backlog": {
        "snapshots": "Snapshots that the metadata tells of, on whichever branch.",
        "manifests": "Manifests of the version that head shows.",
        "small_manifests": "Those below half of the size to aim for that could be joined with others.",
        "metadata_files": "Those that the newest one remembers, itself among them.",
        "own_branches": "Branches that runs of lakewarden work on, or have left behind.",
    },
    "Dependency": {
        "upstream": "The `table_id` of the table that this one is made from.",
        "trigger": "`on_commit`, `on_schedule` or `none`.",
        "on_rollback": "What a rollback there does here: `block`, `plan` or `cascade`.",
    },
    "Mark": {
        "version": "The version.",
        "verdict": "`bad` or `clean`.",
        "by": "Who marked it.",
        "at": "When.",
        "format_id": "The table's UUID at that version; null: not known.",
        "note": "Why, in the owner's words.",
    },
    "Column": {
        "id": "Stable across renames: the format's field id, or one that lakewarden assigned.",
        "path": "The dotted name.",
        "type": "The type, in Delta's words.",
        "nullable": "Whether it takes nulls.",
        "comment": "Its comment.",
    },
    "ColumnChange": {
        "column_id": "The column.",
        "change": "`add`, `drop`, `rename`, `move`, `type` or `nullability`.",
        "before": "What it was; null: not there, or nothing to say.",
        "after": "What it is; null: not there, or nothing to say.",
    },
}
