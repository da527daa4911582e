"""The record of a governed write, and what was seen of its execution beside it. Pure."""

from collections.abc import Mapping, Sequence
from itertools import chain

from lakewarden.catalog.model.identity import ancestors
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation
from lakewarden.catalog.policy.rows_write import ChosenWay
from lakewarden.jobs.session.writes import Directory, Observed, Read
from lakewarden.jobs.sql.compile.values import Chosen

__all__ = ["compare", "record_of"]


def record_of(
    *,
    run_id: str,
    operation: Operation,
    user: str,
    reads: Sequence[Read],
    reads_self: bool,
    user_metadata: str | None,
    directory: Directory,
    statement: str | None = None,
    chosen: Chosen | None = None,
    query: str | None = None,
    way: ChosenWay | None = None,
) -> LineageRecord:
    """The record of a write. The same version read twice is one input; tables come before what has no version. Files in
    a managed table's folder that are read past its log count as that table at an unknown version."""
    distinct = {read.key: read for read in reads}
    folders = {key: _folders(read) for key, read in distinct.items()}
    ids = directory.table_ids(list(dict.fromkeys(chain.from_iterable(folders.values()))))
    ordered = sorted(
        distinct.values(),
        key=lambda read: (read.version is None, read.location, read.format, read.version or 0),
    )
    return LineageRecord(
        run_id=run_id,
        operation=operation,
        user=user,
        inputs=tuple(
            LineageInput(
                table_id=next((ids[one] for one in folders[read.key] if one in ids), None),
                location=read.location,
                format=read.format,
                version=read.version,
                from_version=read.from_version,
                format_id=read.format_id,
            )
            for read in ordered
        ),
        reads_self=reads_self,
        user_metadata=user_metadata,
        statement=statement,
        dialect=None if chosen is None else chosen.dialect.value,
        matches=None if chosen is None or chosen.matches is None else str(chosen.matches),
        query=query,
        rows_write=None if way is None else way.way.value,
        because=None if way is None else way.because,
    )


def _folders(read: Read) -> tuple[str, ...]:
    """Where the table may be that a read is of: there, or where files alone are read, in a folder above."""
    if read.version is not None:
        return (read.location,)
    return (read.location, *ancestors(read.location)) if "://" in read.location else ()


def compare(recorded: Sequence[Read], executed: Sequence[Read] | None, target: str | None) -> Observed:
    """What was read beyond the record, and what was not needed. `executed` None: Spark told nothing.

    Only what has a version is compared: Delta's own work shows up as reads of other kinds. Reads of the target that
    are not recorded are the write's own (its transaction's version, or `reads_self`).
    """
    if executed is None:
        return Observed(seen=False)
    known, found = _versioned(recorded), _versioned(executed)
    return Observed(
        seen=True,
        unrecorded=tuple(read for key, read in found.items() if key not in known and read.location != target),
        unused=tuple(read for key, read in known.items() if key not in found),
    )


def _versioned(reads: Sequence[Read]) -> Mapping[tuple[str, str, int | None, int | None, str | None], Read]:
    return {read.key: read for read in reads if read.version is not None}
