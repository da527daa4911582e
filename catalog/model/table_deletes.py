"""What a version carries beside its rows: deletes by kind, what has piled up in its metadata, and what tells of its
columns. Pure."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Backlog", "DeleteFiles", "DeleteKind", "OwnStatistics"]


class DeleteKind(StrEnum):
    """How rows are deleted that stay in their data files: by file and position, by the values of columns, by a vector
    that belongs to one data file, or by a log of changes beside the data files."""

    POSITION = "position"
    EQUALITY = "equality"
    VECTOR = "vector"
    LOG = "log"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeleteFiles:
    """The deletes of one kind that a version has: so many files with so many entries."""

    kind: DeleteKind
    files: int
    """The files that hold them; of Delta's vectors, the data files that have one."""
    rows: int
    """One by equality may take away any number of rows, also none."""
    bytes: int | None = None
    """None where the log does not say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Backlog:
    """What piles up in a table's metadata until somebody cleans up. None where the format has no such thing, or the
    number was not looked at."""

    snapshots: int | None = None
    """Those that the metadata tells of, on whichever branch."""
    manifests: int | None = None
    """Of the version that head shows."""
    small_manifests: int | None = None
    """Those below half of the size to aim for that could be joined with others."""
    metadata_files: int | None = None
    """Those that the newest one remembers, itself among them."""
    own_branches: int | None = None
    """Branches that runs of lakewarden work on, or have left behind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnStatistics:
    """Statistics of columns that tables of a format keep in their own metadata."""

    recorded: bool
    """The version that head shows has some."""
    columns: tuple[str, ...] = ()
    """The names of those that get some."""
    left_out: tuple[str, ...] = ()
    """Those that get none: their type has none, their owner wants none, or there are too many."""
