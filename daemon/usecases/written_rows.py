"""What a governed statement changed: the rows, files and bytes of its commit, found by its run id."""

from typing import Final

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.daemon.installation.services import Services
from lakewarden.jobs.session.row_counts import NOTHING, RowCounts, counts_of, with_rows_before
from lakewarden.jobs.session.writes import Written

__all__ = ["row_counts"]

_LOOKED_BACK: Final = (1, 50)
"""So many of the newest commits are read: others may have committed since."""


def row_counts(services: Services, written: Written) -> RowCounts | None:
    """None where the table or its log cannot be read: the write is done all the same, and Spark's own result stands."""
    if written.location is None:
        return None
    try:
        reader = services.registry.reader_at(written.location)
        commit = _commit_of(reader, written.location, written)
        if commit is None:
            return NOTHING
        counts = counts_of(commit)
        if counts.num_deleted_rows is None and commit.parent is not None:
            before = _rows(reader, written.location, commit.parent)
            return with_rows_before(counts, before, _rows(reader, written.location, commit.version))
    except LakewardenError:
        return None
    return counts


def _commit_of(reader: TableReader, location: str, written: Written) -> Commit | None:
    for count in _LOOKED_BACK:
        for commit in reversed(reader.newest(location, count=count, after=written.after)):
            if commit.lineage is not None and commit.lineage.run_id == written.run_id:
                return commit
    return None


def _rows(reader: TableReader, location: str, version: int) -> int | None:
    """The rows of a version; None where a file does not say how many it has, or how many of others it
    takes away."""
    total = 0
    for file in reader.files(location, version=version):
        if file.rows is None or file.deletes is not None:
            return None
        total += file.rows - file.deleted_rows
    return total
