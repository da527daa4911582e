"""Lineage rows as OpenLineage events: what they say, that they are what the specification asks for,
and always the same."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from lakewarden.catalog.lineage.edges import ALIAS, NOT_KNOWN, NOTHING, RESTORE
from lakewarden.catalog.lineage.openlineage.events import EventMaker, NamedTable, events_of
from lakewarden.catalog.lineage.openlineage.names import DatasetName, dataset_of, hive_namespace
from lakewarden.catalog.model.rows import Confidence, LineageRow

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
SCHEMAS = Path(__file__).parents[3] / "data" / "openlineage"
OWN_SCHEMA = Path(__file__).parents[4] / "docs" / "openlineage-facets.json"
PRODUCER = "urn:lakewarden:test"


def table(name: str, location: str) -> NamedTable:
    return NamedTable(table_id=name, name=f"db.{name}", location=location, format="delta")


MAKER = EventMaker(
    namespace="prod",
    names="hive://metastore:9083",
    producer=PRODUCER,
    tables={
        "flights": table("flights", "hdfs://name:9000/lake/flights"),
        "daily": table("daily", "s3://bucket/lake/daily"),
    },
)


def row(version: int, input_id: str, input_version: int | None = None, **changes: Any) -> LineageRow:
    base = LineageRow(
        output_id="daily",
        output_version=version,
        input_id=input_id,
        input_version=input_version,
        operation="append",
        confidence=Confidence.COMMITTED,
        recorded_at=NOW,
        output_format_id="u1",
    )
    return replace(base, **changes)


def registry() -> tuple[Registry[Any], dict[str, Any]]:
    """Everything that a `_schemaURL` may point to, by its address."""
    found = {}
    for path in (*SCHEMAS.glob("*.json"), OWN_SCHEMA):
        schema = json.loads(path.read_text(encoding="utf-8"))
        found[schema["$id"]] = schema
    return Registry().with_resources(
        (name, Resource.from_contents(one)) for name, one in found.items()
    ), found


def check(event: dict[str, Any]) -> None:
    """The event is valid, and so is each facet by the schema it names itself;
    no schema is named that is not at hand."""
    known, schemas = registry()
    facets = [*_facets(event["run"]), *_facets(event["job"])]
    for one in (*event["inputs"], *event["outputs"]):
        facets.extend(_facets(one))
    for facet in facets:
        assert facet["_producer"] == PRODUCER
        assert facet["_schemaURL"].partition("#")[0] in schemas
        _validate(facet, facet["_schemaURL"], known)
    _validate(event, event["schemaURL"], known)


def _validate(value: object, reference: str, known: Registry[Any]) -> None:
    checker = Draft202012Validator.FORMAT_CHECKER
    Draft202012Validator({"$ref": reference}, registry=known, format_checker=checker).validate(value)


def _facets(holder: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for kind in ("facets", "inputFacets") for one in holder.get(kind, {}).values()]


def told(*rows: LineageRow, maker: EventMaker = MAKER) -> list[dict[str, Any]]:
    events = [json.loads(event.text) for event in events_of(rows, maker)]
    for event in events:
        check(event)
    return events


def ends(datasets: Sequence[dict[str, Any]]) -> list[tuple[str, str, str | None]]:
    return [
        (one["namespace"], one["name"], one["facets"].get("version", {}).get("datasetVersion"))
        for one in datasets
    ]


def test_an_event_names_both_ends_with_their_versions() -> None:
    (event,) = told(row(7, "flights", 3, run_id="run-1"))
    assert (event["eventType"], event["eventTime"]) == ("COMPLETE", "2026-06-01T12:00:00Z")
    assert event["job"] == {"namespace": "prod", "name": "db.daily.append"}
    assert ends(event["inputs"]) == [("hdfs://name:9000", "/lake/flights", "3")]
    assert ends(event["outputs"]) == [("s3://bucket", "lake/daily", "7")]
    (name,) = event["outputs"][0]["facets"]["symlinks"]["identifiers"]
    assert name == {"namespace": "hive://metastore:9083", "name": "db.daily", "type": "TABLE"}
    facet = event["run"]["facets"]["lakewarden_version"]
    assert {key: facet[key] for key in ("tableId", "operation", "lineage", "runId")} == {
        "tableId": "daily",
        "operation": "append",
        "lineage": "complete",
        "runId": "run-1",
    }


def test_the_same_version_is_the_same_run_whenever_it_is_told() -> None:
    rows = [row(7, "flights", 3), row(7, "daily", 6)]
    first, again = told(*rows), told(*reversed(rows))
    assert first == again
    run_id = first[0]["run"]["runId"]
    assert uuid.UUID(run_id).version == 5
    assert run_id == "99d5c3a2-3982-538f-9308-e99c251444a7", "consumers out there know it by this one"
    later = told(row(7, "flights", 3, recorded_at=NOW + timedelta(days=9)))
    assert later[0]["run"]["runId"] == run_id


def test_versions_of_a_table_come_in_their_order_one_event_each() -> None:
    rows = [row(version, "flights", version) for version in (10, 2, 9)]
    events = told(*rows)
    assert [one["outputs"][0]["facets"]["version"]["datasetVersion"] for one in events] == ["2", "9", "10"]
    assert len({one["run"]["runId"] for one in events}) == 3


def test_a_table_made_anew_has_runs_of_its_own() -> None:
    events = told(row(1, "flights", 3), row(1, NOTHING, output_format_id="u2"))
    assert len(events) == 2
    assert len({one["run"]["runId"] for one in events}) == 2


@pytest.mark.parametrize(
    ("operation", "version", "change"),
    [
        ("append", 0, "CREATE"),
        ("replace", 0, "CREATE"),
        ("replace", 4, "OVERWRITE"),
        ("overwrite", 4, "OVERWRITE"),
        ("partial overwrite", 4, None),
        ("merge", 4, None),
        (RESTORE, 4, None),
    ],
)
def test_what_became_of_the_dataset_is_said_where_the_specification_has_a_word(
    operation: str, version: int, change: str | None
) -> None:
    (event,) = told(row(version, NOTHING, operation=operation))
    facet = event["outputs"][0]["facets"].get("lifecycleStateChange", {})
    assert facet.get("lifecycleStateChange") == change
    assert event["job"]["name"] == f"db.daily.{operation.replace(' ', '_')}"


def test_a_restore_reads_the_version_it_went_back_to() -> None:
    (event,) = told(row(7, "daily", 4, operation=RESTORE))
    assert ends(event["inputs"]) == [("s3://bucket", "lake/daily", "4")]
    assert ends(event["outputs"]) == [("s3://bucket", "lake/daily", "7")]


def test_maintenance_has_events_only_if_they_are_asked_for() -> None:
    kept = row(7, "daily", 6, operation=ALIAS)
    assert told(kept) == []
    (event,) = told(kept, maker=replace(MAKER, maintenance=True))
    assert ends(event["inputs"]) == [("s3://bucket", "lake/daily", "6")]


@pytest.mark.parametrize(
    ("rows", "known", "inputs"),
    [
        pytest.param([row(7, NOTHING)], "complete", 0, id="nothing was read"),
        pytest.param([row(7, NOT_KNOWN, confidence=Confidence.HINT)], "unknown", 0, id="foreign"),
        pytest.param([row(7, NOT_KNOWN), row(7, "flights", 3)], "incomplete", 1, id="inputs did not fit"),
        pytest.param(
            [row(7, NOT_KNOWN, confidence=Confidence.HINT), row(7, "flights", 3, confidence=Confidence.PLAN)],
            "incomplete",
            1,
            id="a listener saw the plan of a foreign write",
        ),
        pytest.param(
            [
                row(7, NOT_KNOWN, confidence=Confidence.HINT),
                row(7, "flights", 3, confidence=Confidence.STREAM),
            ],
            "complete",
            1,
            id="a stream's checkpoint knows better",
        ),
    ],
)
def test_how_far_the_inputs_are_known_is_said(rows: list[LineageRow], known: str, inputs: int) -> None:
    (event,) = told(*rows)
    assert event["run"]["facets"]["lakewarden_version"]["lineage"] == known
    assert len(event["inputs"]) == inputs


def test_each_input_says_how_it_is_known_and_which_changes_were_read() -> None:
    (event,) = told(row(7, "flights", 9, from_version=4, confidence=Confidence.STREAM))
    read = event["inputs"][0]["inputFacets"]["lakewarden_read"]
    assert (read["confidence"], read["fromVersion"]) == ("stream", "4")


def test_what_a_session_saw_waits_for_the_sweep_and_joins_its_event() -> None:
    seen = row(7, "flights", 3, confidence=Confidence.PLAN, output_format_id=None)
    assert told(seen) == []
    (event,) = told(seen, row(7, NOTHING))
    assert len(event["inputs"]) == 1
    assert event["run"]["runId"] == told(row(7, NOTHING))[0]["run"]["runId"]


def test_inputs_that_nobody_manages_are_named_by_their_place() -> None:
    (event,) = told(row(7, "file:///raw/a%20b"), row(7, "gone"))
    assert ends(event["inputs"]) == [("file", "/raw/a b", None), ("prod", "gone", None)]


def test_tables_that_nobody_knows_have_no_events() -> None:
    assert told(row(7, "flights", 3, output_id="never heard of")) == []


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        ("file:///lake/t", "file", "/lake/t"),
        ("file:///lake/a%20b/day=1", "file", "/lake/a b/day=1"),
        ("hdfs://name:9000/lake/t", "hdfs://name:9000", "/lake/t"),
        ("hdfs://cluster/lake/t", "hdfs://cluster", "/lake/t"),
        ("s3://bucket/lake/t", "s3://bucket", "lake/t"),
        ("s3://bucket", "s3://bucket", "/"),
        ("gs://bucket/t", "gs://bucket", "t"),
        ("abfs://box@store.dfs.core.windows.net/t", "abfss://box@store.dfs.core.windows.net", "t"),
    ],
)
def test_datasets_are_called_what_other_producers_call_them(location: str, namespace: str, name: str) -> None:
    assert dataset_of(location) == DatasetName(namespace, name)


def test_of_several_metastores_the_first_gives_the_names() -> None:
    assert hive_namespace("thrift://a:9083, thrift://b:9083") == "hive://a:9083"
