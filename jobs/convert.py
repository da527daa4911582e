"""Convert a Parquet table to Delta: check everything before anything is touched, convert, set the properties.

Every step can be done again: a conversion that was killed anywhere is finished by the next one.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from lakewarden.catalog.errors import ConflictError, PreconditionError, RefusedError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.base import Observation
from lakewarden.catalog.metastore.base import Entry, Metastore
from lakewarden.catalog.storage import FileEntry, canonical, open_store
from lakewarden.catalog.units import about_bytes, count_of
from lakewarden.jobs.actions import Convert
from lakewarden.jobs.base import JobContext, Report
from lakewarden.jobs.observed import observe
from lakewarden.jobs.parquet_folder import (
    data_files,
    folder_of,
    partition_columns,
    registered_folders,
    writers_at_work,
)

__all__ = ["WRITER_REST", "convert"]

WRITER_REST: Final = timedelta(hours=1)
"""A committer's folder with a file younger than this belongs to a writer at work; an older one is a crashed job's."""

_PARQUET_SERDE: Final = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_BUCKETS: Final = "spark.sql.sources.schema.numBuckets"
_FORBIDDEN_LETTERS: Final = frozenset(" ,;{}()\n\t=")
_FOREIGN_FILES: Final = (".orc", ".csv", ".json", ".avro", ".txt", ".gz")
_SHOWN: Final = 5


def convert(ctx: JobContext, action: Convert) -> Report:
    """Convert the table that `action` names.

    Raises `RefusedError` for what is no plain Parquet table or a Delta table already, `ConflictError` while somebody
    writes to it. Files that a writer adds during the conversion are not part of the table: the report names them.
    """
    before: frozenset[str] | None = None
    if ctx.reader.is_table(action.location):
        _refuse_foreign(ctx, action)
    else:
        before = _check(ctx, action)
    reach("convert.checked")
    ctx.still_ours()
    ctx.engine.convert(
        name=action.name,
        location=action.location,
        partitioned_by=action.partitioned_by,
        statistics=action.statistics,
        run_id=ctx.run_id,
    )
    reach("convert.converted")
    ctx.still_ours()
    seen = observe(ctx)
    version = _set_properties(ctx, action, seen)
    reach("convert.properties")
    return _report(seen, version, _left_out(ctx, action, seen, before))


def _refuse_foreign(ctx: JobContext, action: Convert) -> None:
    """A table whose first commit carries a run id is a conversion of ours that was interrupted; others are not ours."""
    first = next(ctx.reader.commits(action.location, after=-1, upto=0), None)
    if first is None or first.run_id is None:
        raise RefusedError(
            f"{_shown(action)} is a Delta table already; there is nothing to convert.",
            hint="Bring it under management with `lakewarden tables register`.",
        )


def _check(ctx: JobContext, action: Convert) -> frozenset[str]:
    """Refuse what cannot be converted whole and right. Returns the data files that are there, relative to the table."""
    entries = list(open_store(action.location, ctx.storage).list("", recursive=True))
    _refuse_writers(ctx, action, entries)
    files = [file.path for file in data_files(entries)]
    if action.name is None:
        _check_folder(action, files)
    else:
        metastore = _metastore(ctx, action)
        _check_entry(action, metastore)
        _check_partitions(action, metastore, files)
    return frozenset(files)


def _refuse_writers(ctx: JobContext, action: Convert, entries: list[FileEntry]) -> None:
    now = ctx.clock.now()
    young = [entry for entry in entries if now - entry.modified_at < WRITER_REST]
    busy = writers_at_work(young)
    if busy:
        raise ConflictError(
            f"Somebody is writing to {_shown(action)}: {_few(busy)} has files that are not committed yet.",
            hint="Convert it when the writer is done.",
        )


def _check_folder(action: Convert, files: list[str]) -> None:
    foreign = [path for path in files if path.endswith(_FOREIGN_FILES)]
    if foreign:
        raise RefusedError(
            f"{action.location} does not hold Parquet files alone: {_few(foreign)}.",
            hint="Move the others away.",
        )
    folders = {folder_of(path) for path in files}
    found = partition_columns(folders)
    if found and not action.partitioned_by:
        columns = ", ".join(f"{column} STRING" for column in found)
        raise RefusedError(
            f"{action.location} has partition folders ({', '.join(found)}), and their types were not given.",
            hint=f"Add PARTITIONED BY ({columns}), with the right types.",
        )
    given = tuple(column for column, _ in action.partitioned_by)
    if files and tuple(map(str.lower, given)) != tuple(map(str.lower, found)):
        raise RefusedError(
            f"{action.location} is partitioned by ({', '.join(found)}), not by ({', '.join(given)}).",
            hint="Name the columns as the folders do, in their order.",
        )


def _check_entry(action: Convert, metastore: Metastore) -> None:
    entry = metastore.get(*_name(action))
    if entry is None:
        raise RefusedError(f"The metastore has no table {action.name}.", hint="Check the name.")
    if entry.location is None or canonical(entry.location) != action.location:
        raise ConflictError(
            f"{action.name} no longer lies at {action.location}.", hint="Convert it anew by its name."
        )
    if not _is_parquet(entry):
        raise RefusedError(
            f"{action.name} is not a Parquet table but {_kind(entry)}.",
            hint="Only Parquet tables are converted.",
        )
    if _BUCKETS in entry.parameters:
        raise RefusedError(
            f"{action.name} is bucketed, and Delta would silently drop the buckets.",
            hint="Write it anew without CLUSTERED BY, then convert that.",
        )
    odd = [column.name for column in entry.columns if _FORBIDDEN_LETTERS.intersection(column.name)]
    if odd:
        raise RefusedError(
            f"{action.name} has column names that Delta does not allow: {_few(odd)}.",
            hint="Rename them: no spaces and none of ,;{}()= are allowed.",
        )


def _check_partitions(action: Convert, metastore: Metastore, files: list[str]) -> None:
    """Delta takes only registered partitions, and a later vacuum would delete the files of the others."""
    entry = metastore.get(*_name(action))
    place = entry.location if entry is not None and entry.location is not None else action.location
    if entry is not None and not entry.partition_columns:
        stray = sorted({folder_of(path) for path in files} - {""})
        if stray:
            raise RefusedError(
                f"{action.name} is not partitioned, but has files in folders that Spark does not read: {_few(stray)}.",
                hint="Move them into the table's own folder, or away.",
            )
        return
    registered = registered_folders(metastore.partitions(*_name(action)), place)
    elsewhere = sorted(name for name, folder in registered.items() if folder is None)
    if elsewhere:
        raise RefusedError(
            f"{action.name} has partitions outside its folder: {_few(elsewhere)}.",
            hint="Move them inside, or leave it a Parquet table.",
        )
    stray = sorted({folder_of(path) or "." for path in files} - set(registered.values()))
    if stray:
        raise RefusedError(
            f"{action.name} has folders with files that the metastore does not know: {_few(stray)}.",
            hint=f"Run MSCK REPAIR TABLE {action.name}, or move them away.",
        )


def _set_properties(ctx: JobContext, action: Convert, seen: Observation) -> int:
    """All in one commit; none where they are there already."""
    if all(seen.properties.get(key) == value for key, value in action.properties):
        return seen.version
    return ctx.engine.set_properties(
        action.location, requires=seen.version, properties=action.properties, run_id=ctx.run_id
    )


def _left_out(
    ctx: JobContext, action: Convert, seen: Observation, before: frozenset[str] | None
) -> tuple[str, ...]:
    """Data files that came while the table was being converted and are not in it; none when it had been interrupted."""
    if before is None:
        return ()
    now = {
        file.path for file in data_files(open_store(action.location, ctx.storage).list("", recursive=True))
    }
    new = now - before
    if new:
        new -= {file.path for file in ctx.reader.files(action.location, version=seen.version)}
    return tuple(sorted(new))


def _report(seen: Observation, version: int, left_out: tuple[str, ...]) -> Report:
    message = f"converted {count_of(seen.files, 'file')} ({about_bytes(seen.bytes)})"
    details: Mapping[str, object] = {}
    if left_out:
        message += (
            f"; {count_of(len(left_out), 'file')} that came meanwhile are not in the table: {_few(left_out)}"
        )
        details = {"left_out": left_out}
    return Report(
        message=message,
        committed_version=version,
        files=seen.files,
        bytes=seen.bytes,
        details=json.dumps(details) if details else None,
    )


def _metastore(ctx: JobContext, action: Convert) -> Metastore:
    if ctx.metastore is None:
        raise PreconditionError(
            f"{action.name} cannot be converted by name: no metastore is configured.",
            hint="Set metastore.uri, or convert the folder by its path.",
        )
    return ctx.metastore


def _is_parquet(entry: Entry) -> bool:
    if "VIEW" in entry.table_type.upper():
        return False
    provider = (entry.provider or "hive").lower()
    return provider == "parquet" or (provider == "hive" and entry.serde == _PARQUET_SERDE)


def _kind(entry: Entry) -> str:
    if "VIEW" in entry.table_type.upper():
        return "a view"
    return entry.provider or (entry.serde or "of an unknown kind").rpartition(".")[2]


def _name(action: Convert) -> tuple[str, str]:
    database, _, table = (action.name or "").partition(".")
    return database, table


def _shown(action: Convert) -> str:
    return action.name or action.location


def _few(names: Iterable[str]) -> str:
    """The first few of them, and how many more there are."""
    listed = list(names)
    more = len(listed) - _SHOWN
    return ", ".join(listed[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
