"""What keeps a table from being more than observed, each with the way out. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.formats.iceberg.errors import OBSERVED_ONLY
from lakewarden.catalog.formats.iceberg.file_paths import FilePaths
from lakewarden.catalog.formats.iceberg.metadata import TableMetadata
from lakewarden.catalog.formats.iceberg.schema import unknown_types
from lakewarden.catalog.formats.port import Capabilities, LogProblem

__all__ = ["ObservedOnly", "capabilities_of", "obstacles_of", "warning_of"]

_DATA_PATHS: Final = (
    "write.data.path",
    "write.folder-storage.path",
    "write.metadata.path",
    "write.object-storage.path",
)
_FORMATS: Final = frozenset({"avro", "orc", "parquet", "puffin"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedOnly:
    """One reason: in a few words, and as two sentences, the second of which is the way out."""

    feature: str
    message: str


def obstacles_of(
    metadata: TableMetadata,
    paths: FilePaths,
    *,
    formats: frozenset[str],
    has_files_elsewhere: bool,
    commits_may_be_lost: bool,
    other_names: tuple[str, ...] = (),
) -> tuple[ObservedOnly, ...]:
    """Every reason that the metadata tells; `formats` are those of head's files."""
    return tuple(
        ObservedOnly(feature=feature, message=f"{why} {way_out}")
        for feature, why, way_out in (
            *_version(metadata),
            *_place(metadata, paths),
            *_commits(commits_may_be_lost),
            *_names(other_names),
            *_files(metadata, paths, has_files_elsewhere),
            *_unknown(metadata, formats),
        )
    )


def capabilities_of(obstacles: tuple[ObservedOnly, ...]) -> Capabilities:
    """What may be done to the table: nothing if anything stands against it."""
    return Capabilities(
        restore=not obstacles,
        vacuum=not obstacles,
        compact=not obstacles,
        file_statistics=False,
        purge=not obstacles,
        unsupported=tuple(one.feature for one in obstacles),
    )


def warning_of(obstacle: ObservedOnly) -> LogProblem:
    """The same as a finding."""
    return LogProblem(check=OBSERVED_ONLY, message=obstacle.message)


def _version(metadata: TableMetadata) -> Iterator[tuple[str, str, str]]:
    if metadata.format_version == 1:
        yield (
            "format version 1",
            (
                "The table has format version 1, which does not number its snapshots: "
                "it is only observed, without its history."
            ),
            "Its owner can set the property format-version to 2.",
        )
    elif any(not one.sequence for one in metadata.snapshots.values()):
        yield (
            "snapshots of format version 1",
            (
                "The table has snapshots from when its format version was 1, which have no numbers: "
                "it is only observed."
            ),
            "Its owner can expire them with the procedure expire_snapshots.",
        )
    if metadata.encrypted:
        yield (
            "encryption",
            "The table is encrypted: it is only observed, and its files are counted by its summary.",
            "Nothing has to be done.",
        )


def _place(metadata: TableMetadata, paths: FilePaths) -> Iterator[tuple[str, str, str]]:
    if paths.is_relative:
        yield (
            "a relative location",
            (
                f"The metadata names the table's place as {metadata.location}, which is no whole path: "
                "it is only observed."
            ),
            "Rewrite its paths with the procedure rewrite_table_path.",
        )
    elif not paths.is_here:
        yield (
            "another location",
            (
                f"The metadata says that the table lies at {metadata.location}, where its files are: "
                "this copy of its metadata is only observed."
            ),
            "Register the table there, or give the copy paths of its own with the procedure rewrite_table_path.",
        )


def _commits(may_be_lost: bool) -> Iterator[tuple[str, str, str]]:
    if may_be_lost:
        yield (
            "Hadoop's layout on an object store",
            (
                "Commits to the table are renames, which an object store does not have, so that one of two at a "
                "time is lost: it is only observed."
            ),
            "Its owner can register it in a catalog.",
        )


def _names(others: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    if others:
        yield (
            "a second name",
            (
                f"The table's folder has another name, {', '.join(others)}: what one of them deletes, the other may "
                "need, so it is only observed."
            ),
            "Remove the other name from its catalog, with its files left there.",
        )


def _files(
    metadata: TableMetadata, paths: FilePaths, has_files_elsewhere: bool
) -> Iterator[tuple[str, str, str]]:
    if metadata.properties.get("gc.enabled", "true").lower() != "true":  # as Iceberg reads it
        yield (
            "gc.enabled=false",
            "The property gc.enabled says that others need the table's files: it is only observed.",
            "Its owner can set it to true once nobody does.",
        )
    shared = [
        f"{key}={metadata.properties[key]}"
        for key in _DATA_PATHS
        if key in metadata.properties and paths.is_elsewhere(metadata.properties[key])
    ]
    if shared:
        yield (
            "a data path outside its folder",
            (
                f"The table writes outside its folder ({', '.join(shared)}), where other tables may write as well: "
                "it is only observed."
            ),
            "Its owner can unset the property, and rewrite the files that are there.",
        )
    elif has_files_elsewhere and paths.is_here:
        yield (
            "files outside its folder",
            (
                "Some of the table's files lie outside its folder, where they may be another table's as well: "
                "it is only observed."
            ),
            "Its owner can rewrite them with the procedure rewrite_data_files.",
        )


def _unknown(metadata: TableMetadata, formats: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    found = [f"the type {one}" for one in unknown_types(metadata.schema)]
    found += [f"files of the format {one}" for one in sorted(formats - _FORMATS)]
    if found:
        yield (
            ", ".join(found),
            f"The table has {', '.join(found)}, which this lakewarden does not know: it is only observed.",
            "A newer lakewarden may know more.",
        )
