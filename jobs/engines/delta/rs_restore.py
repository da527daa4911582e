"""Taking a Delta table back to an older version by delta-rs: one compare-and-set commit, without Spark.

Right on plain tables and on those with the features of `rs_metadata.FEATURES` (run, with deletion vectors and column
mapping), if it spells their paths as the log does; others are left to Spark. A restore keeps `SetTransaction`, so that
a replayed batch would be skipped without a word: the commit therefore also sets the named application ids to what they
were at the target.
"""

import re
from collections.abc import Sequence
from typing import Final

from deltalake import DeltaTable, Transaction

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.heads import commit_at
from lakewarden.catalog.storage.secret_files import current
from lakewarden.jobs.engines.delta.rs_metadata import NOTHING_AFTERWARDS, RsTable, open_version

__all__ = ["restore", "took_back"]

_CHARACTER: Final = r"[A-Za-z0-9_.!$&'()+,;=@~-]|%2[0235A]|%3[CEF]|%5[BCDE]|%60|%7[BCD]"
_KEPT: Final = re.compile(rf"(?:{_CHARACTER})(?:{_CHARACTER}|/)*")
"""Paths that delta-rs 1.6 writes as it has read them (run, for every character). It removes `p=M%C3%BCnchen/f` where
the log has `p=München/f`, and Spark and itself go on to read that. Absolute paths are left to Spark, too."""
_NEVER: Final = -1
"""The number of an application id that had written nothing yet: batch 0 comes after it."""


def restore(place: RsTable, *, requires: int, to: int, run_id: str, apps: Sequence[str]) -> int | None:
    """Make the contents, schema and properties of version `to` the new head, on exactly version `requires`.

    Returns the new version, None if the table's features or a path are not ours to write. Raises `ConflictError` if
    somebody committed first, `ExecutionError` if files of `to` are gone or the commit was refused for another reason.
    """
    table = open_version(place, requires)
    if table is None:
        return None
    reader = DeltaReader(lambda _: place.storage)
    if not all(_keeps_paths(reader, place.location, version) for version in (requires, to)):
        return None
    failed = f"{place.location} could not be restored to version {to}."
    hint = "Validate the table; `lakewarden rollback show` says how far the rollback came."
    with place.committing(requires, failed=failed, hint=hint):
        table.restore(
            to,
            commit_properties=place.once(run_id, _rewound(place, to, apps)),
            post_commithook_properties=NOTHING_AFTERWARDS,
        )
    version: int = table.version()
    return version


def took_back(place: RsTable, restored: int, apps: Sequence[str]) -> bool:
    """Whether the restore at version `restored` set the numbers of all these in the same commit."""
    commit = commit_at(DeltaReader(lambda _: place.storage), place.location, restored)
    told = () if commit is None else commit.transactions
    return {app for app, _ in told}.issuperset(apps)


def _keeps_paths(reader: DeltaReader, location: str, version: int) -> bool:
    """Whether delta-rs would write the path of every file of a version as the log has it."""
    files = reader.files(location, version=version)
    return all(_KEPT.fullmatch(file.entry) is not None for file in files)


def _rewound(place: RsTable, to: int, apps: Sequence[str]) -> list[Transaction] | None:
    if not apps:
        return None
    target = DeltaTable(place.location, version=to, storage_options=current(place.storage) or None)
    numbers = {app: target.transaction_version(app) for app in apps}
    return [Transaction(app, _NEVER if number is None else number) for app, number in sorted(numbers.items())]
