"""Versions as OpenLineage events: one for each committed version, both ends with their versions. Pure.

An event says again what rows of `lakewarden.lineage` say, so it can be made again at any time, and is the
same then: its run id is computed from table, UUID and version.
The words are those of the OpenLineage specification 2-0-2.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from itertools import groupby
from typing import Any, Final

import orjson

from lakewarden.catalog.lineage.edges import ALIAS, NOT_KNOWN, NOTHING, parent_of
from lakewarden.catalog.lineage.graph.build import TRUSTED
from lakewarden.catalog.lineage.openlineage.names import DatasetName, dataset_of
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.model.rows import NO_PARENT, Confidence, LineageRow

__all__ = ["EventMaker", "NamedTable", "VersionEvent", "events_of"]

_SPEC: Final = "https://openlineage.io/spec"
_RUNS: Final = uuid.uuid5(uuid.NAMESPACE_URL, "urn:lakewarden:openlineage")
"""Namespace of run ids (RFC 9562, version 5). It never changes, or replayed events would be new ones."""
_FACET: Final = "urn:lakewarden:openlineage:1-0-0"
"""Name of the schema of our own facets, docs/openlineage-facets.json."""

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedTable:
    """What events tell of a managed table."""

    table_id: str
    name: str
    """`db.t`."""
    location: str
    format: str
    """The format's word, `delta`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionEvent:
    """One event: the version it is about, and its JSON text, without a line end."""

    table_id: str
    version: int
    run_id: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EventMaker:
    """Makes events of one installation."""

    namespace: str
    """The namespace of jobs."""
    names: str
    """The namespace of table names: the metastore's, if there is one."""
    producer: str
    """A URI that says who made an event."""
    tables: Mapping[str, NamedTable] = field(default_factory=dict)
    maintenance: bool = False
    """Make events of versions that change no content, too."""

    def event(self, rows: Sequence[LineageRow]) -> VersionEvent | None:
        """The event of one version from all its rows. None if its table is unknown, for maintenance, and while only a
        session has told of the version: the sweep will, once it has seen the commit."""
        first = rows[0]
        table = self.tables.get(first.output_id)
        if table is None or all(row.confidence is Confidence.PLAN for row in rows):
            return None
        if _operation(rows) == ALIAS and not self.maintenance:
            return None
        format_id = next((row.output_format_id for row in rows if row.output_format_id is not None), "")
        run_id = str(uuid.uuid5(_RUNS, f"{table.table_id}/{format_id}/{first.output_version}"))
        at = max(row.recorded_at for row in rows).astimezone(UTC)
        body = {
            "eventType": "COMPLETE",
            "eventTime": at.isoformat().replace("+00:00", "Z"),
            "producer": self.producer,
            "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {"runId": run_id, "facets": {"lakewarden_version": self._version_facet(rows)}},
            "job": {"namespace": self.namespace, "name": f"{table.name}.{_word(_operation(rows))}"},
            "inputs": [self._input(row) for row in rows if row.input_id not in (NOTHING, NOT_KNOWN)],
            "outputs": [self._output(table, rows)],
        }
        return VersionEvent(
            table_id=table.table_id,
            version=first.output_version,
            run_id=run_id,
            text=orjson.dumps(body).decode(),
        )

    def _input(self, row: LineageRow) -> Json:
        read: Json = {**self._facet("ReadInputDatasetFacet"), "confidence": row.confidence.value}
        if row.from_version is not None:
            read["fromVersion"] = str(row.from_version)
        facets = self._at(self.tables.get(row.input_id), row.input_version)
        return {**self._named(row.input_id), "facets": facets, "inputFacets": {"lakewarden_read": read}}

    def _output(self, table: NamedTable, rows: Sequence[LineageRow]) -> Json:
        facets = self._at(table, rows[0].output_version)
        change = _lifecycle(_operation(rows), parent_of(rows[0]))
        if change is not None:
            facets["lifecycleStateChange"] = {
                **self._standard("1-0-1/LifecycleStateChangeDatasetFacet"),
                "lifecycleStateChange": change,
            }
        return {**self._named(table.table_id), "facets": facets}

    def _named(self, table_id: str) -> Json:
        """A dataset by `table_id`, or by the location of what is not managed."""
        table = self.tables.get(table_id)
        place = table.location if table is not None else table_id
        known = dataset_of(place) if "://" in place else DatasetName(self.namespace, place)
        return {"namespace": known.namespace, "name": known.name}

    def _at(self, table: NamedTable | None, version: int | None) -> Json:
        """Facets of a dataset: its version, and what its name and format are, if it is managed."""
        facets: Json = {}
        if version is not None:
            facets["version"] = {
                **self._standard("1-0-1/DatasetVersionDatasetFacet"),
                "datasetVersion": str(version),
            }
        if table is not None:
            facets["symlinks"] = {
                **self._standard("1-0-1/SymlinksDatasetFacet"),
                "identifiers": [{"namespace": self.names, "name": table.name, "type": "TABLE"}],
            }
            facets["storage"] = {
                **self._standard("1-0-1/StorageDatasetFacet"),
                "storageLayer": table.format,
                "fileFormat": "parquet",
            }
        return facets

    def _version_facet(self, rows: Sequence[LineageRow]) -> Json:
        body: Json = {
            **self._facet("VersionRunFacet"),
            "tableId": rows[0].output_id,
            "operation": _operation(rows),
            "lineage": _how_known(rows),
        }
        run_id = next((row.run_id for row in rows if row.run_id is not None), None)
        return body if run_id is None else {**body, "runId": run_id}

    def _standard(self, schema: str) -> Json:
        name = schema.rpartition("/")[2]
        return {"_producer": self.producer, "_schemaURL": f"{_SPEC}/facets/{schema}.json#/$defs/{name}"}

    def _facet(self, name: str) -> Json:
        return {"_producer": self.producer, "_schemaURL": f"{_FACET}#/$defs/Lakewarden{name}"}


def events_of(rows: Iterable[LineageRow], maker: EventMaker) -> Iterator[VersionEvent]:
    """The events of versions from all their rows, in any order: by table, then by version.

    A table that was made anew at the same place has versions of the same numbers as its predecessor. They are
    told apart by UUID; a row without one, as sessions write them, counts for each.
    """
    for _, found in groupby(sorted(rows, key=_version_of), key=_version_of):
        edges = sorted(found, key=_edge)
        ids = sorted({row.output_format_id for row in edges if row.output_format_id is not None})
        for format_id in ids or [""]:
            event = maker.event([row for row in edges if row.output_format_id in (None, format_id)])
            if event is not None:
                yield event


def _version_of(row: LineageRow) -> tuple[str, int]:
    return row.output_id, row.output_version


def _edge(row: LineageRow) -> tuple[str, int, int]:
    """Order of the inputs in an event: the same however rows were stored."""
    return row.input_id, _number(row.input_version), _number(row.from_version)


def _number(version: int | None) -> int:
    return -1 if version is None else version


def _operation(rows: Sequence[LineageRow]) -> str:
    """What made the version: as its commit says, which knows better than what a session saw."""
    return next((row.operation for row in rows if row.confidence in TRUSTED), rows[0].operation)


def _how_known(rows: Sequence[LineageRow]) -> str:
    """`complete`: the inputs are all there were. `incomplete`: there may be more. `unknown`: there may be any."""
    sure = [row for row in rows if row.confidence in TRUSTED]
    if sure and all(row.input_id != NOT_KNOWN for row in sure):
        return "complete"
    known = any(row.input_id not in (NOTHING, NOT_KNOWN) for row in rows)
    return "incomplete" if known else "unknown"


def _lifecycle(operation: str, parent: int) -> str | None:
    if parent == NO_PARENT:
        return "CREATE"
    return "OVERWRITE" if operation in (Operation.OVERWRITE, Operation.REPLACE) else None


def _word(operation: str) -> str:
    return operation.lower().replace(" ", "_")
