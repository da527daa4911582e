"""Files that single commits added, taken out of an Iceberg table: a snapshot made from head, without them.

Nothing is added again, now or by the undo, which makes the head before main once more (going_back.py): a file that left
and came back is deleted by a later expiry (apache/iceberg#2131). The head before has a tag, as a rollback leaves it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.iceberg.commits import LEFT
from lakewarden.catalog.formats.iceberg.file_paths import FilePaths
from lakewarden.jobs.engines.iceberg.going_back import left_tag, made_tag, require_told, until
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable
from lakewarden.jobs.engines.iceberg.staged import staged
from lakewarden.jobs.engines.spark.errors import translated

__all__ = ["take_out"]


def take_out(
    table: JavaTable,
    versions: Sequence[int],
    *,
    whole: Collection[str],
    marks: Mapping[str, str],
    run_id: str,
    lasts: timedelta,
) -> int:
    """Take the data files that these versions added out of head; the new version. `whole` are the paths of head's files
    of which no rows are deleted. Raises `PreconditionError` if one of the files is not among them, a version has
    expired, or columns were changed since head was made, `ConflictError` if anybody committed since the table was
    opened."""
    head = table.base.currentSnapshot()
    require_told(table, head)
    left = int(head.sequenceNumber())
    files = [file for version in versions for file in _added(table, version)]
    paths = FilePaths(table.location, str(table.base.location()))
    gone = [path for path in (paths.path(str(one.location())) for one in files) if path not in whole]
    if gone:
        raise PreconditionError(
            f"Version {left} of {table.location} no longer has {gone[0]} as it was added.",
            hint="Make a new plan; rewind the table instead.",
        )
    inner = staged(table)
    with translated(f"write a snapshot of {table.location}"):
        draft = inner.table.newDelete().validateFilesExist()
        for file in files:
            draft.deleteFile(file)
        for key, value in {**marks, LEFT: str(left)}.items():
            draft.set(key, value)
        draft.commit()
    reach("iceberg.removal_drafted")

    def tagged(builder: Any, made: Any) -> None:
        for name, snapshot in ((left_tag(run_id), head), (made_tag(run_id), made)):
            builder.setRef(name, until(table, snapshot, lasts))

    published = inner.publish(f"remove files of {table.location}", also=tagged)
    assert published is not None, "there is a snapshot"
    reach("iceberg.removed")
    return int(published.currentSnapshot().sequenceNumber())


def _added(table: JavaTable, version: int) -> Iterator[Any]:
    """The data files by which a version came, as its manifests have them."""
    for one in table.base.snapshots():
        if int(one.sequenceNumber()) == version:
            with translated(f"list the files of version {version} of {table.location}"):
                yield from one.addedDataFiles(table.table.io())
            return
    raise PreconditionError(
        f"Version {version} of {table.location} has expired: nobody can tell its files any more.",
        hint="Make a new plan, without the files of that version.",
    )
