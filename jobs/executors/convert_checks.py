"""What stands in the way of converting a Parquet table whole and right. Reads listings and the metastore, no Spark."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from lakewarden.catalog.clock import to_millis
from lakewarden.catalog.errors import (
    ConflictError,
    PreconditionError,
    RefusedError,
    RevokedError,
    UnreadableError,
)
from lakewarden.catalog.formats.inner_tables import formats_at_root, inner_tables
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import spec_of
from lakewarden.catalog.metastore.port import Entry, Metastore
from lakewarden.catalog.model.bucket_layout import has_spark_buckets
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.storage.file_store import (
    FileEntry,
    StorageOptions,
    below,
    from_hadoop,
    open_store,
)
from lakewarden.catalog.units import about_bytes, count_of
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.deletion.file_places import FilePlaces
from lakewarden.jobs.executors.convert_folders import check_folder, check_partitions
from lakewarden.jobs.executors.convert_owners import refuse_owned
from lakewarden.jobs.executors.convert_types import refuse_columns, refuse_partition_types
from lakewarden.jobs.executors.convert_words import few, shown, with_article
from lakewarden.jobs.runs.parquet_folder import (
    data_files,
    folder_of,
    sinks_of,
    source_of,
    writers_at_work,
)

__all__ = ["WRITER_REST", "check_again", "check_source", "refuse_foreign"]

WRITER_REST: Final = timedelta(hours=1)
"""A committer's folder with a file younger than this belongs to a writer at work; an older one is a crashed job's."""

_PARQUET_SERDE: Final = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_FORBIDDEN_LETTERS: Final = frozenset(" ,;{}()\n\t=")
_RENAMING: Final = ("file://", "hdfs://", "viewfs://")
"""Storages where a rename is one step."""


def refuse_foreign(action: Convert, reader: TableReader) -> None:
    """A table whose first commit carries a run id is a conversion of ours that was interrupted; others are not ours."""
    first = None
    with suppress(UnreadableError):  # one that nobody can read is not ours either
        first = next(iter(reader.commits(action.location, after=-1)), None)
    if first is None or first.run_id is None:
        raise RefusedError(
            f"{shown(action)} is {with_article(spec_of(reader.format).label)} table already; "
            "there is nothing to convert.",
            hint="Bring it under management with `lakewarden tables register`.",
        )


def check_source(
    action: Convert,
    *,
    format_: TableFormat,
    metastore: Metastore | None,
    storage: StorageOptions,
    now: datetime,
) -> tuple[FileEntry, ...]:
    """Refuse what cannot be converted whole and right to a format. Returns the data files that are there, relative to
    the table.

    Raises `RefusedError` unless it is a plain Parquet table, `ConflictError` while somebody writes to it,
    `RevokedError` if its files are not those of the request.
    """
    store = open_store(action.location, storage)
    entries = list(store.list("", recursive=True))
    _refuse_sinks(action, entries, format_)
    _refuse_writers(action, entries, now)
    _refuse_tables(action, entries, format_)
    found = tuple(data_files(entries))
    _refuse_others(action, found)
    _refuse_links(action, found)
    _check_layout(action, found, metastore, format_)
    if format_ != DELTA:
        _refuse_object_stores(action)
    refuse_columns(store, found, shown=shown(action), format_=format_)
    return found


def check_again(
    action: Convert,
    *,
    format_: TableFormat,
    metastore: Metastore | None,
    storage: StorageOptions,
    now: datetime,
) -> None:
    """Right before the table becomes another: what others may have done since `check_source`. Raises as that does."""
    entries = list(open_store(action.location, storage).list("", recursive=True))
    _refuse_sinks(action, entries, format_)
    _refuse_writers(action, entries, now)
    _check_layout(action, data_files(entries), metastore, format_)


def _check_layout(
    action: Convert, found: Iterable[FileEntry], metastore: Metastore | None, format_: TableFormat
) -> None:
    """Where the files lie, and whose they are."""
    files = [file.path for file in found]
    refuse_partition_types(action.partitioned_by, {folder_of(path) for path in files}, format_=format_)
    if action.name is None:
        check_folder(action, files, format_)
    else:
        known = _configured(metastore, action)
        entry = _checked_entry(action, known, format_)
        check_partitions(action, entry, known.partitions(*_name(action)), files, format_)
    refuse_owned(action, metastore)


def _refuse_links(action: Convert, found: Iterable[FileEntry]) -> None:
    """A link may lead to another table's files: a later deletion would delete these."""
    places = FilePlaces(action.location)
    led = sorted(entry.path for entry in found if not places.inside(places.of(entry.path)))
    if led:
        raise RefusedError(
            f"{shown(action)} has files that lie outside its folder, behind a link: {few(led)}.",
            hint="Move them inside, or leave it a Parquet table.",
        )


def _refuse_others(action: Convert, found: tuple[FileEntry, ...]) -> None:
    """A folder that was written to, or replaced, since somebody decided to convert it is not what they decided on."""
    asked, now = action.source, source_of(found)
    if asked is None or asked == now:
        return
    then, here = (f"{count_of(one.files, 'file')} ({about_bytes(one.bytes)})" for one in (asked, now))
    new = sorted(entry.path for entry in found if to_millis(entry.modified_at) > asked.newest)
    came = f"; written since: {few(new)}" if new else ""
    changed = (
        f"its {here} are not the ones that it held then"
        if then == here
        else f"it held {then} then and holds {here} now"
    )
    raise RevokedError(
        f"{shown(action)} is not what it was when its conversion was asked for: {changed}{came}.",
        hint="Nothing was changed. Look at what is there; if that is right, ask for the conversion again.",
    )


def _refuse_sinks(action: Convert, entries: Iterable[FileEntry], format_: TableFormat) -> None:
    """What lies in the folder of a streaming query is not all rows of it, and whatever the query still writes would be
    in no log. Nobody can tell whether it will go on."""
    sinks = sinks_of(entries)
    if sinks:
        query = (
            f"CREATE TABLE ... USING {format_} AS SELECT * FROM parquet.`{below(action.location, sinks[0])}`"
        )
        raise RefusedError(
            f"{shown(action)} cannot be converted: streaming queries write to {few(one or '.' for one in sinks)}, and "
            "only their notes in _spark_metadata tell which files are rows.",
            hint=f"Copy the rows with a query, which reads these notes: {query}.",
        )


def _refuse_writers(action: Convert, entries: Iterable[FileEntry], now: datetime) -> None:
    """Raise `ConflictError` while somebody's files are there that he has not committed."""
    young = [entry for entry in entries if now - entry.modified_at < WRITER_REST]
    busy = writers_at_work(young)
    if busy:
        raise ConflictError(
            f"Somebody is writing to {shown(action)}: {few(busy)} has files that are not committed yet.",
            hint="Convert it when the writer is done.",
        )


def _refuse_tables(action: Convert, entries: list[FileEntry], format_: TableFormat) -> None:
    """Files of a table of another format are not all rows of it: those it replaced or deleted would come back."""
    inner = inner_tables(entry.path for entry in entries)
    if inner:
        raise RefusedError(
            f"{shown(action)} has {count_of(len(inner), 'other table')} in its folder: {few(inner)}.",
            hint="Move such a table out of the folder, then convert.",
        )
    # An empty log may be left of a conversion that was interrupted.
    left = spec_of(DELTA).label if format_ == DELTA else None
    own = [one for one in formats_at_root(entry.path for entry in entries) if one != left]
    if own:
        raise RefusedError(
            f"{shown(action)} is not a plain Parquet table: its folder holds the metadata "
            f"of {_of_formats(own)} table.",
            hint="Write its rows to a new table instead; files that the table replaced "
            "or deleted lie in it, too.",
        )


def _of_formats(formats: list[str]) -> str:
    return " and ".join(map(with_article, formats))


def _refuse_object_stores(action: Convert) -> None:
    """Two writers of a table in Hadoop's layout are told apart by a rename."""
    if action.name is None and not action.location.startswith(_RENAMING):
        raise RefusedError(
            f"{action.location} cannot be converted by its path: where a rename is a copy, one of two commits to "
            "such a table could be lost.",
            hint="Give the folder a name in the metastore, and convert that.",
        )


def _checked_entry(action: Convert, metastore: Metastore, format_: TableFormat) -> Entry:
    """The metastore's entry of a table that is named so, if it can be converted."""
    entry = metastore.get(*_name(action))
    if entry is None:
        raise RefusedError(f"The metastore has no table {action.name}.", hint="Check the name.")
    if entry.location is None or from_hadoop(entry.location) != action.location:
        raise ConflictError(
            f"{action.name} no longer lies at {action.location}.", hint="Convert it anew by its name."
        )
    if not _is_parquet(entry):
        raise RefusedError(
            f"{action.name} is not a Parquet table but {_kind(entry)}.",
            hint="Only Parquet tables are converted.",
        )
    if has_spark_buckets(entry.parameters) and format_ != DELTA:
        raise RefusedError(
            f"{action.name} is bucketed, and {spec_of(format_).label} would silently drop the buckets.",
            hint="Write it anew without CLUSTERED BY, then convert that.",
        )
    if has_spark_buckets(entry.parameters) and entry.partition_columns:
        raise RefusedError(
            f"{action.name} is bucketed and partitioned; a Delta table has buckets or partitions.",
            hint="Write it anew without CLUSTERED BY, then convert that.",
        )
    odd = [column.name for column in entry.columns if _FORBIDDEN_LETTERS.intersection(column.name)]
    if odd and format_ == DELTA:
        raise RefusedError(
            f"{action.name} has column names that Delta does not allow: {few(odd)}.",
            hint="Rename them: no spaces and none of ,;{}()= are allowed.",
        )
    return entry


def _configured(metastore: Metastore | None, action: Convert) -> Metastore:
    if metastore is None:
        raise PreconditionError(
            f"{action.name} cannot be converted by name: no metastore is configured.",
            hint="Set metastore.uri, or convert the folder by its path.",
        )
    return metastore


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
