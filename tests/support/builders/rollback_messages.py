"""What the user reads when a rollback cannot be done:
the CLI tests look for these sentences, docs/incident.md quotes them."""

__all__ = ["SAYS"]

SAYS = {
    "taken back": "taken back, as the plan says for moved heads: ",
    "stale plan": "The plan is stale: db.derived is at version 2, the plan speaks of 1.",
    "expired version": "Version 1 of db.source has expired: its log goes back to version 3.",
    "vacuumed file": "Version 0 of db.derived cannot be restored: 1 file is gone or damaged, the first is ",
    "unreadable table": "db.first cannot be restored, because its log cannot be read: ",
    "unreadable table, never seen": "db.first cannot be read, so nobody knows what it was made from: ",
    "replaced table": "The plan is stale: db.derived was replaced (CREATE OR REPLACE) in version 2.",
    "recreated table": "db.derived was dropped and created anew since the plan: "
    "the versions it speaks of are gone.",
    "append-only table": "db.source is append-only: its readers rely on nothing being taken away.",
    "missing consent": "1 clean commit of db.derived (1 row) would be lost.",
    "a table of somebody else": "may not roll back db.derived (owner: bob).",
    "never clean": "No version of db.born is without taint; it has to be dropped or quarantined.",
    "not quarantined": "db.born was not quarantined by a rollback.",
    "files that cannot be removed": "db.source cannot be mended by removing files: "
    "more than whole appends would have to go: "
    "files of version 2 were taken out or written anew since.",
    "changed before an append came again": "Somebody changed db.source (version 5, DELETE) "
    "before version 3 was added again.",
    "legal hold": "db.source is on hold (db.source: case 4711): a legal hold forbids rewinding it.",
    "held table": "db.source is held by rollback",
    "undo after a write": "db.derived was written to after its rollback (version 3, WRITE); "
    "it stays as it is.",
}
