"""How a statement reads the Iceberg table that it writes to: as of the write, on whose metadata alone it is published.

It may read the table by the name that another catalog of the session has for the same entry, with options, or in a
frame that was analysed long before: what others have committed since is in what it reads, or nothing is written.
"""

from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError
from lakewarden.jobs.session.formats.plan_parts import PinnedLeaf, Pinning
from lakewarden.jobs.session.iceberg.snapshot_reads import (
    is_fixed,
    is_whole,
    leaf_at,
    location_of_table,
    named_table,
    place_of,
    tells_of,
    unpinned_read,
)
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["own_leaf"]

_ANEW: Final = "Make the frame anew, then run it again."


def own_leaf(plans: Plans, leaf: JavaPlan, by: Pinning) -> PinnedLeaf | None:
    """The leaf, reading the table that the query will be written to as the write has it; None where it is another
    table, or a version that the statement names. Raises `LostRaceError` for what tells of the table as it was before
    others' commits, `PreconditionError` for a frame of columns that it has no more."""
    table = leaf.table()
    found = next((key for key in by.own if key.startswith(f"{place_of(table)} ")), None)
    if found is None or is_fixed(leaf):
        return None
    base, real = by.snapshots[found], named_table(table)
    is_by_name = is_whole(table) and str(real.name()).lower() == _name(found, table)
    if not is_by_name and _file_now(real) != base.metadataFileLocation():
        if not _is_entry(plans, leaf, real, _name(found, table)):
            return None
        raise LostRaceError(
            f"Somebody else committed to {location_of_table(table)} first, while the statement was analysed.",
            is_mendable=True,
        )
    if not is_whole(table):
        return _told_of_it(table, base)
    pinned = leaf_at(plans, leaf, base)
    if pinned is None:
        raise PreconditionError(
            f"A frame reads {location_of_table(table)} as it was before its columns changed. Nothing was written.",
            hint=_ANEW,
        )
    return PinnedLeaf(leaf=pinned, is_own=True)


def _name(key: str, table: Any) -> str:
    """What the statement calls its target, in lower case."""
    return key.removeprefix(f"{place_of(table)} ")


def _file_now(real: Any) -> str | None:
    """The metadata file that a table's catalog names now; None where it has the table no more. It is read anew also for
    those whom the catalog keeps the table for; what is analysed keeps its snapshot."""
    try:
        return str(real.operations().refresh().metadataFileLocation())
    except (Py4JJavaError, PySparkException):
        return None


def _is_entry(plans: Plans, leaf: JavaPlan, real: Any, target: str) -> bool:
    """Whether a name, in whichever catalog, is that of the target's entry, or a place: one table may be registered
    under several names, each with rows of its own."""
    name, catalog = str(real.name()).lower(), plans.option(leaf.catalog())
    entry = name if catalog is None else name.removeprefix(f"{str(catalog.name()).lower()}.")
    return "/" in entry or f".{target}".endswith(f".{entry}")


def _told_of_it(table: Any, base: Any) -> PinnedLeaf:
    """Metadata and changes of the target. They are read when Spark gets there, and the commit is on `base` alone."""
    if not tells_of(table, base):
        raise LostRaceError(
            f"A frame reads what tells of {location_of_table(table)} from before somebody else's commit. Nothing was "
            "written.",
            is_mendable=False,
            hint=_ANEW,
        )
    return PinnedLeaf(read=unpinned_read(table), is_own=True)
