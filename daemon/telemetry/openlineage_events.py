"""Lineage events of one installation: its names and settings put into words, and all events on record."""

from collections.abc import Iterator, Mapping

import pyarrow.compute as pc

from lakewarden import __version__
from lakewarden.catalog.lineage.openlineage.events import EventMaker, NamedTable, VersionEvent, events_of
from lakewarden.catalog.lineage.openlineage.names import hive_namespace
from lakewarden.catalog.model.rows import RowKind
from lakewarden.catalog.system.port import LINEAGE, TABLES, At, SystemStore
from lakewarden.daemon.settings.settings import Settings

__all__ = ["MakerSource", "events_on_record"]

_COLUMNS = ("table_id", "name", "kind", "location", "format")


class MakerSource:
    """Gives the maker of events with the names that tables have by now; they are read again only when they changed."""

    def __init__(self, store: SystemStore, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._as_of: At | None = None
        self._tables: Mapping[str, NamedTable] = {}

    def __call__(self) -> EventMaker:
        rows = self._store.rows(TABLES)
        if rows.at != self._as_of:
            columns = rows.arrow(_COLUMNS)
            known = columns.filter(pc.equal(columns["kind"], RowKind.TABLE.value)).to_pylist()
            self._tables = {
                one["table_id"]: NamedTable(
                    table_id=one["table_id"],
                    name=one["name"],
                    location=one["location"],
                    format=one["format"] or "delta",
                )
                for one in known
                if one["location"] is not None
            }
            self._as_of = rows.at
        settings = self._settings
        uri, namespace = settings.metastore_uri, settings.openlineage_namespace
        return EventMaker(
            namespace=namespace,
            names=namespace if uri is None else hive_namespace(uri),
            producer=f"urn:lakewarden:{__version__}",
            tables=self._tables,
            maintenance=settings.openlineage_maintenance,
        )


def events_on_record(
    store: SystemStore, settings: Settings, *, table_id: str | None = None, since: int = 0
) -> Iterator[VersionEvent]:
    """The events of every version on record, or of one table's from version `since` on."""
    rows = store.rows(LINEAGE)
    found = rows.all() if table_id is None else rows.find(output_id=table_id)
    return events_of((row for row in found if row.output_version >= since), MakerSource(store, settings)())
