"""Taking a Delta table back to an older version by delta-rs: one compare-and-set commit, without Spark.

Right on plain tables and on those with the features of `rs_metadata.FEATURES` (run, with deletion vectors and column
mapping); others are left to Spark. A restore keeps `SetTransaction`, so that a replayed batch would be skipped without
a word: the commit therefore also sets the named application ids to what they were at the target.
"""

from collections.abc import Sequence
from typing import Final

from deltalake import DeltaTable, Transaction

from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.storage.secret_files import current
from lakewarden.jobs.engines.delta.rs_metadata import (
    NOTHING_AFTERWARDS,
    committing,
    marks,
    once,
    open_version,
)

__all__ = ["restore"]

_NEVER: Final = -1
"""The number of an application id that had written nothing yet: batch 0 comes after it."""


def restore(
    location: str,
    *,
    requires: int,
    to: int,
    run_id: str,
    apps: Sequence[str],
    storage: StorageOptions,
    installation: str | None = None,
) -> int | None:
    """Make the contents, schema and properties of version `to` the new head, on exactly version `requires`.

    Returns the new version, None if the table's features are not ours to write. Raises `ConflictError` if somebody
    committed first, `ExecutionError` if files of `to` are gone or the commit was refused for another reason.
    """
    table = open_version(location, requires, storage)
    if table is None:
        return None
    failed = f"{location} could not be restored to version {to}."
    hint = "Validate the table; `lakewarden rollback show` says how far the rollback came."
    with committing(location, requires, storage, failed=failed, hint=hint):
        table.restore(
            to,
            commit_properties=once(marks(run_id, installation), _rewound(location, to, apps, storage)),
            post_commithook_properties=NOTHING_AFTERWARDS,
        )
    version: int = table.version()
    return version


def _rewound(
    location: str, to: int, apps: Sequence[str], storage: StorageOptions
) -> list[Transaction] | None:
    if not apps:
        return None
    target = DeltaTable(location, version=to, storage_options=current(storage) or None)
    numbers = {app: target.transaction_version(app) for app in apps}
    return [Transaction(app, _NEVER if number is None else number) for app, number in sorted(numbers.items())]
