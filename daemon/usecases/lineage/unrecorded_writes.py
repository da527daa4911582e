"""What was seen of a governed write beyond its own record becomes edges of `lakewarden.lineage`.

The record is in the commit and cannot be changed any more. What the executed plan read besides is as certain as a plan
is, and is added with that confidence. What cannot be recorded is said, and the sweep still has the commit.
"""

import logging

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.table_index import TableDirectory
from lakewarden.catalog.model.rows import NO_PARENT, Confidence, LineageRow
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.daemon.installation.services import Services
from lakewarden.jobs.session.writes import Written

__all__ = ["record_unrecorded"]


def record_unrecorded(services: Services, directory: TableDirectory, written: Written) -> None:
    """Add what was read without being in the record, if there is any. Never raises for what the catalog lacks."""
    if not written.observed.unrecorded:
        return
    try:
        rows = _edges(services, directory, written)
        if rows:
            services.store.append(LINEAGE, rows, because="a plan read more than its commit says")
    except LakewardenError as error:
        logging.getLogger("lakewarden").warning(
            "Run %s read more than its commit says, and that could not be recorded (%s).",
            written.run_id,
            error,
        )


def _edges(services: Services, directory: TableDirectory, written: Written) -> list[LineageRow]:
    location, extra = written.location, written.observed.unrecorded
    if location is None:
        return []
    ids = directory.table_ids([location, *(read.location for read in extra)])
    if location not in ids:
        return []  # not managed: the catalog keeps no edges of it
    commit = _commit_of(services, location, written.run_id)
    if commit is None:
        return []
    return [
        LineageRow(
            output_id=ids[location],
            output_version=commit.version,
            output_parent=NO_PARENT if commit.parent is None else commit.parent,
            input_id=ids.get(read.location, read.location),
            input_version=read.version,
            operation=written.record.operation,
            run_id=written.run_id,
            confidence=Confidence.PLAN,
            recorded_at=services.clock.now(),
            from_version=read.from_version,
            output_format_id=commit.format_id,
            input_format_id=read.format_id,
        )
        for read in extra
        if read.version is not None
    ]


def _commit_of(services: Services, location: str, run_id: str) -> Commit | None:
    """The commit that carries a run id, None if the run made none. A folder may hold tables of several formats."""
    for reader in services.readers:
        if reader.is_table(location):
            found = [one for one in reader.commits(location, after=-1) if one.run_id == run_id]
            if found:
                return found[-1]
    return None
