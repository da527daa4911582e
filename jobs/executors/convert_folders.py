"""Whether each folder of a Parquet table that has files is one of its partitions, and so is read by whoever reads the
table. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.registry import spec_of
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.executors.convert_types import refuse_partition_types
from lakewarden.jobs.executors.convert_words import few, with_article
from lakewarden.jobs.runs.parquet_folder import (
    columns_of,
    folder_of,
    has_null,
    misnamed,
    partition_columns,
    registered_folders,
)

__all__ = ["check_folder", "check_partitions"]

_FOREIGN_FILES: Final = (".orc", ".csv", ".json", ".avro", ".txt", ".gz")


def check_folder(action: Convert, files: Sequence[str], format_: TableFormat) -> None:
    """Raise `RefusedError` unless the files of a table that is named by its path are Parquet, and the folder of each
    says exactly the partition columns that were given: Spark reads no others, and a conversion would make rows of
    them, or lose what their folders say."""
    foreign = [path for path in files if path.endswith(_FOREIGN_FILES)]
    if foreign:
        raise RefusedError(
            f"{action.location} does not hold Parquet files alone: {few(foreign)}.",
            hint="Move the others away.",
        )
    if not files:
        raise RefusedError(
            f"{action.location} holds no Parquet file, so nothing tells its columns.",
            hint=f"Create it as {with_article(spec_of(format_).label)} table, or convert it by its metastore name.",
        )
    folders = {folder_of(path) for path in files}
    odd = sorted(folder for folder in folders if columns_of(folder) is None)
    if odd:
        raise RefusedError(
            f"{action.location} has files in folders that are no partitions, which Spark does not read with it: "
            f"{few(odd)}.",
            hint="Move them into the folder where they belong, or away; tables in it are converted one by one.",
        )
    found = partition_columns(folders)
    if found is None:
        raise RefusedError(
            f"{action.location} has files in folders that do not say the same partition columns: "
            f"{few(_one_of_each(folders))}.",
            hint="Bring all files into partitions by the same columns, or move the others away.",
        )
    if found and not action.partitioned_by:
        columns = ", ".join(f"{column} STRING" for column in found)
        raise RefusedError(
            f"{action.location} has partition folders ({', '.join(found)}), and their types were not given.",
            hint=f"Add PARTITIONED BY ({columns}), with the right types.",
        )
    given = tuple(column for column, _ in action.partitioned_by)
    if tuple(map(str.lower, given)) != tuple(map(str.lower, found)):
        raise RefusedError(
            f"{action.location} is partitioned by ({', '.join(found)}), not by ({', '.join(given)}).",
            hint="Name the columns as the folders do, in their order.",
        )


def _one_of_each(folders: set[str]) -> list[str]:
    """One folder for each list of partition columns that there is; `.` for the table's own."""
    kinds = {partition_columns([folder]): folder or "." for folder in sorted(folders, reverse=True)}
    return sorted(kinds.values())


def check_partitions(
    action: Convert, entry: Entry, partitions: Mapping[str, str], files: Sequence[str], format_: TableFormat
) -> None:
    """Raise `RefusedError` unless all files lie in partitions that the metastore knows, by name their places: a later
    vacuum would delete the files of the others."""
    folders = {folder_of(path) for path in files}
    if not entry.partition_columns:
        stray = sorted(folders - {""})
        if stray:
            raise RefusedError(
                f"{action.name} is not partitioned, but has files in folders that Spark does not read: "
                f"{few(stray)}.",
                hint="Move them into the table's own folder, or away.",
            )
        return
    # Hive writes 1.5 where Spark writes 1.50
    decimals = [(one.name, one.type) for one in entry.partition_columns if one.type.startswith("decimal")]
    refuse_partition_types(decimals, folders, format_=format_)
    registered = registered_folders(partitions, entry.location or action.location)
    elsewhere = sorted(name for name, folder in registered.items() if folder is None)
    if elsewhere:
        raise RefusedError(
            f"{action.name} has partitions outside its folder: {few(elsewhere)}.",
            hint="Move them inside, or leave it a Parquet table.",
        )
    owners = Counter(registered.values())
    shared = sorted(name for name, folder in registered.items() if owners[folder] > 1)
    if shared:
        raise RefusedError(
            f"{action.name} has partitions that share a folder, and a file has the values of one: {few(shared)}.",
            hint="Drop all but one of them from the metastore, with the files left there, or write the table anew.",
        )
    other = misnamed(registered)
    if other and format_ == DELTA and has_null(registered):
        raise RefusedError(
            f"{action.name} has a partition whose value is NULL, so that values are read from the names of folders, "
            f"and partitions whose folders say others: {few(f'{name} in {registered[name]}' for name in other)}.",
            hint="Move each into the folder of its name and say so in the metastore (ALTER TABLE ... PARTITION ... SET "
            "LOCATION), or leave it a Parquet table.",
        )
    stray = sorted({folder or "." for folder in folders} - set(registered.values()))
    if stray:
        raise RefusedError(
            f"{action.name} has folders with files that the metastore does not know: {few(stray)}.",
            hint=f"Run MSCK REPAIR TABLE {action.name}, or move them away.",
        )
