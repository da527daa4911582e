"""Iceberg tables at both ends of a session's streaming queries, as their progress and their plans name them."""

from dataclasses import dataclass, replace
from typing import Any, Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.clock import from_millis
from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.formats.stream_sources import KnownTable
from lakewarden.catalog.model.rows import UNKNOWN_PARENT
from lakewarden.catalog.storage.file_store import from_hadoop
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.session.plans import kind

__all__ = ["StreamedTable", "initial_offset", "sink_location", "table_streamed"]

_CATALOGS: Final = "spark.sql.catalog."
_PACKAGE: Final = "org.apache.iceberg.spark."
_LEAF: Final = "StreamingDataSourceV2ScanRelation"
_ADDED: Final = "added-data-files"
_STREAM: Final = "SparkMicroBatchStream"


def sink_location(session: Any, jvm: Any, description: str) -> str | None:
    """The canonical location of the table that a sink is, by the name that its catalog has for it; None for another
    kind of sink. Raises Spark's own errors."""
    catalog, _, name = description.partition(".")
    if not name or not _is_of_iceberg(session, catalog):
        return None
    spelled = ".".join(quoted(part) for part in (catalog, *name.split(".")))
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, spelled)
    return from_hadoop(str(table.location()))


def initial_offset(source: Any) -> str | None:
    """What a running query began to read with, by its source; None where that is another one. Raises Spark's own
    errors."""
    return str(source.initialOffset().json()) if kind(source) == _STREAM else None


@dataclass(frozen=True, slots=True)
class StreamedTable:
    """A table that a running query reads."""

    location: str
    """Canonical."""
    metadata: Any

    def known(self, own_id: str, near: str | None) -> KnownTable | None:
        """The table's line from one snapshot back to another, known by its place; None where it does not have the
        first one. Raises Spark's own errors."""
        found, at = list[Commit](), self.metadata.snapshot(int(own_id))
        while at is not None:
            parent_id = at.parentId()
            parent = None if parent_id is None else self.metadata.snapshot(int(parent_id))
            found.append(_commit(at, UNKNOWN_PARENT if parent is None else int(parent.sequenceNumber())))
            if parent_id is None:
                found[-1] = replace(found[-1], parent=None)
            at = None if found[-1].own_id == near else parent
        if not found:
            return None
        return KnownTable(table_id=self.location, format_id=str(self.metadata.uuid()), commits=tuple(found))


def table_streamed(leaf: Any) -> StreamedTable | None:
    """The table that a leaf of a running query reads; None for another source, and for a table whose snapshots have no
    numbers. Raises Spark's own errors."""
    if kind(leaf) != _LEAF or kind(leaf.stream()) != _STREAM:
        return None
    table = leaf.relation().table().table()
    metadata = table.operations().refresh()
    if int(metadata.formatVersion()) == 1:
        return None
    return StreamedTable(from_hadoop(str(table.location())), metadata)


def _commit(snapshot: Any, parent: int) -> Commit:
    """What a snapshot did, as far as a stream is concerned."""
    return Commit(
        version=int(snapshot.sequenceNumber()),
        parent=parent,
        committed_at=from_millis(int(snapshot.timestampMillis())),
        kind=CommitKind.UNKNOWN,
        operation=str(snapshot.operation()),
        added_files=as_whole(str(snapshot.summary().get(_ADDED))) or 0,
        own_id=str(snapshot.snapshotId()),
    )


def _is_of_iceberg(session: Any, catalog: str) -> bool:
    told = session.conf().getOption(f"{_CATALOGS}{catalog}")
    return bool(told.isDefined()) and str(told.get()).startswith(_PACKAGE)
