"""Adding the files of an older commit again by delta-rs: one compare-and-set commit, without Spark.

Only for tables with the features of `rs_metadata.FEATURES` and paths that every writer spells the same; others are left
to Spark (file_transactions.py), and so is taking files out: deltalake has no door for that.
"""

from typing import Any

import orjson
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.model.lineage_record import LineageRecord, custom_metadata
from lakewarden.catalog.storage.file_store import open_store
from lakewarden.catalog.storage.secret_files import current
from lakewarden.jobs.engines.delta.added_files import Addition, additions, require_on_disk
from lakewarden.jobs.engines.delta.file_statistics import SAFE_PATH
from lakewarden.jobs.engines.delta.rs_metadata import RsTable, append, open_version

__all__ = ["add_again", "other_columns"]


def add_again(place: RsTable, *, requires: int, version: int, record: LineageRecord) -> int | None:
    """Append the files that `version` added, on exactly version `requires`. Returns the new version, None if
    the table's features or a path are not ours to write.

    Raises `ConflictError` if somebody committed first, `PreconditionError` if the table has other columns by
    now or a file is gone.
    """
    table = open_version(place, requires)
    if table is None:
        return None
    store = open_store(place.location, place.storage)
    files = additions(store, [version])
    if not all(SAFE_PATH.match(one.file.entry) for one in files):
        return None
    before = DeltaTable(place.location, version=version, storage_options=current(place.storage) or None)
    if _columns(before) != _columns(table):
        raise other_columns(place.location, version)
    require_on_disk(store, files)
    failed = f"The files of version {version} of {place.location} could not be added again."
    how = place.once(record.run_id, also=custom_metadata(record))
    with place.committing(requires, failed=failed):
        append(table, [_action(one) for one in files], how)
    return requires + 1


def other_columns(location: str, version: int) -> PreconditionError:
    """What to raise where files of `version` do not fit the table any more."""
    return PreconditionError(
        f"{location} has other columns than at version {version}: its files do not fit any more.",
        hint="Write those rows again by hand; `lakewarden tables history` shows who wrote them.",
    )


def _columns(table: DeltaTable) -> tuple[Any, tuple[str, ...]]:
    schema: Any = orjson.loads(table.schema().to_json())  # delta-rs writes a field's metadata in any order
    return schema, tuple(table.metadata().partition_columns)


def _action(one: Addition) -> AddAction:
    stats: Any = orjson.loads(one.line)["add"].get("stats")  # None, where there are none, is not in the stub
    return AddAction(
        path=one.file.path,
        size=one.file.size_bytes,
        partition_values=dict(one.file.partition),
        modification_time=one.file.modified_ms,
        data_change=True,
        stats=stats,
    )
