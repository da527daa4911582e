"""What a metastore entry should say about a table, and how it differs."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.catalog.formats.port import Capabilities, Observation
from lakewarden.catalog.metastore.entry_statistics import Recorded, misleads, recorded_in, without_statistics
from lakewarden.catalog.metastore.parameters import LONGEST_VALUE, long_value, with_long_value
from lakewarden.catalog.metastore.port import Entry, EntryColumn
from lakewarden.catalog.metastore.sync_plan import (
    INPUT_FORMAT,
    OUTPUT_FORMAT,
    Aspect,
    SyncPlan,
    hadoop_location,
    plan_sync,
)
from lakewarden.catalog.model.rows import DELTA, Column
from support.builders.commits import observed

HERE = "file:///lake/flights"
PLACEHOLDER = EntryColumn(name="col", type="array<string>", comment="from deserializer")
SPARKS = "org.apache.hadoop.mapred.SequenceFileInputFormat"


def seen(**changes: Any) -> Observation:
    values: dict[str, Any] = {
        "format": DELTA,
        "location": HERE,
        "version": 7,
        "committed_at": datetime(2026, 1, 1, tzinfo=UTC),
        "format_id": "f",
        "schema": (
            Column(id=1, path="Id", type="bigint", nullable=False, comment="number"),
            Column(id=2, path="day", type="date"),
        ),
        "partition_columns": ("day",),
        "capabilities": Capabilities(restore=True, vacuum=True, compact=True, file_statistics=True),
        "bytes": 1000,
        "rows": 100,
    }
    return observed(**{**values, **changes})


def made_by_spark(**changes: Any) -> Entry:
    """What `CREATE TABLE ... USING delta` leaves in the metastore."""
    values: dict[str, Any] = {
        "database": "db",
        "table": "flights",
        "location": "file:/lake/flights",
        "provider": "delta",
        "table_type": "MANAGED_TABLE",
        "columns": (PLACEHOLDER,),
        "parameters": {
            "spark.sql.sources.provider": "delta",
            "spark.sql.sources.schema": '{"type":"struct","fields":[]}',
            "totalSize": "0",
        },
        "serde_parameters": {"path": "file:/lake/flights", "serialization.format": "1"},
        "input_format": SPARKS,
        "output_format": "org.apache.hadoop.hive.ql.io.HiveSequenceFileOutputFormat",
        "serde": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    }
    return Entry(**{**values, **changes})


def planned(
    entry: Entry, table: Observation | None = None, *, strict: bool = False, share: float = 0.1
) -> SyncPlan:
    return plan_sync(table or seen(), entry, table_id="t-1", location=HERE, strict=strict, stale_share=share)


def aspects(plan: SyncPlan) -> list[Aspect]:
    return [change.aspect for change in plan.changes]


def synced(**changes: Any) -> Entry:
    return planned(made_by_spark(**changes)).wanted


def test_a_fresh_entry_gets_columns_schema_identity_and_classes_that_hive_refuses() -> None:
    plan = planned(made_by_spark())
    assert aspects(plan) == [Aspect.STORAGE, Aspect.COLUMNS, Aspect.SCHEMA, Aspect.IDENTITY]
    assert (plan.wanted.input_format, plan.wanted.output_format) == (INPUT_FORMAT, OUTPUT_FORMAT)
    assert plan.wanted.columns == (
        EntryColumn(name="id", type="bigint", comment="number"),
        EntryColumn(name="day", type="date"),
    )
    assert plan.wanted.parameters["lakewarden.table_id"] == "t-1"
    assert plan.wanted.parameters["lakewarden.version"] == "7"


def test_on_a_strict_server_sparks_placeholder_stays() -> None:
    plan = planned(made_by_spark(), strict=True)
    assert aspects(plan) == [Aspect.STORAGE, Aspect.SCHEMA, Aspect.IDENTITY]
    assert plan.wanted.columns == (PLACEHOLDER,)


def test_real_columns_are_kept_right_on_a_strict_server_too() -> None:
    entry = replace(synced(), columns=(EntryColumn(name="id", type="int"),))
    plan = planned(entry, strict=True)
    assert aspects(plan) == [Aspect.COLUMNS]
    assert plan.changes[0].message == (
        "The metastore's columns lack day; they differ in type: id is int there and bigint in the table."
    )


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(made_by_spark(), id="made by spark"),
        pytest.param(made_by_spark(provider=None, parameters={}, serde_parameters={}), id="plain hive"),
        pytest.param(made_by_spark(provider="parquet"), id="parquet"),
        pytest.param(
            made_by_spark(partition_columns=(EntryColumn(name="day", type="date"),)), id="partitioned"
        ),
        pytest.param(made_by_spark(parameters={"totalSize": "5"}), id="counted by hive"),
    ],
)
def test_planned_again_there_is_nothing_left(entry: Entry, strict: bool) -> None:
    plan = planned(entry, strict=strict)
    assert plan.changes
    again = planned(plan.wanted, strict=strict)
    assert (again.changes, again.wanted) == ((), plan.wanted)


def test_a_commit_that_changes_nothing_visible_is_no_drift() -> None:
    assert planned(synced(), seen(version=8)).changes == ()


def test_columns_that_hive_has_as_partitions_are_not_listed_twice() -> None:
    partition = EntryColumn(name="day", type="date")
    plan = planned(made_by_spark(columns=(), partition_columns=(partition,)))
    assert [column.name for column in plan.wanted.columns] == ["id"]
    assert plan.wanted.parameters["spark.sql.sources.schema.numPartCols"] == "1"
    assert plan.wanted.parameters["spark.sql.sources.schema.partCol.0"] == "day"


def test_partition_columns_that_are_gone_leave_sparks_schema() -> None:
    old = {"spark.sql.sources.schema.numPartCols": "1", "spark.sql.sources.schema.partCol.0": "gone"}
    plan = planned(made_by_spark(parameters=old))
    assert not set(old) & set(plan.wanted.parameters)


def test_a_parquet_entry_of_a_delta_table_becomes_delta() -> None:
    plan = planned(made_by_spark(provider="parquet", parameters={"spark.sql.sources.provider": "parquet"}))
    assert plan.changes[0].message == "The metastore says that this is a parquet table; its log says Delta."
    assert plan.wanted.parameters["spark.sql.sources.provider"] == "delta"


def test_an_entry_without_a_path_gets_one_where_it_is() -> None:
    plan = planned(made_by_spark(serde_parameters={}))
    assert aspects(plan)[0] is Aspect.LOCATION
    assert plan.wanted.serde_parameters["path"] == "file:/lake/flights"


def test_another_tables_entry_is_an_obstacle() -> None:
    entry = made_by_spark(location="file:/lake/other")
    plan = planned(entry)
    assert plan.obstacle is not None
    assert plan.obstacle.message == "db.flights in the metastore is another table, at file:/lake/other."
    assert (plan.changes, plan.wanted) == ((), entry)


def test_an_entry_that_keeps_the_head_of_another_format_in_the_folder_is_not_overwritten() -> None:
    """As converters of metadata leave it: a log for some engines, an entry for others."""
    entry = made_by_spark(
        provider=None,
        parameters={
            "table_type": "ICEBERG",
            "metadata_location": "file:/lake/flights/metadata/1.metadata.json",
        },
    )
    plan = planned(entry)
    assert plan.obstacle is not None and plan.obstacle.message == (
        "db.flights in the metastore keeps the head of a table of another format in the same folder; "
        f"what is managed at {HERE} is the Delta table there."
    )
    assert (plan.changes, plan.wanted) == ((), entry)
    ours = made_by_spark(parameters=dict(entry.parameters))
    assert planned(ours).obstacle is None, "by its provider it is the table's, with metadata beside the log"


def test_our_own_entry_that_points_elsewhere_is_pointed_back() -> None:
    plan = planned(replace(synced(), location="file:/lake/other"))
    assert aspects(plan) == [Aspect.LOCATION]
    assert (plan.wanted.location, plan.wanted.serde_parameters["path"]) == ("file:/lake/flights",) * 2


def test_a_view_is_an_obstacle() -> None:
    plan = planned(made_by_spark(table_type="VIRTUAL_VIEW"))
    assert plan.obstacle is not None
    assert "is a view" in plan.obstacle.message


def test_the_logs_comment_wins_and_a_missing_one_takes_nothing_away() -> None:
    commented = replace(synced(), parameters={**synced().parameters, "comment": "theirs"})
    assert planned(commented).changes == ()
    plan = planned(commented, seen(description="ours"))
    assert aspects(plan) == [Aspect.COMMENT]
    assert plan.wanted.parameters["comment"] == "ours"


def test_differences_belong_to_documented_checks() -> None:
    assert {aspect.check for aspect in Aspect} == {"metastore_entry", "schema_matches_metastore"}
    assert Aspect.COLUMNS.check == "schema_matches_metastore"


def test_a_long_comment_is_cut_for_hive_only() -> None:
    column = Column(id=1, path="id", type="int", comment="x" * 300)
    wanted = planned(made_by_spark(), seen(schema=(column,))).wanted
    assert len(wanted.columns[0].comment or "") == 256
    assert "x" * 300 in wanted.parameters["spark.sql.sources.schema"]


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"totalSize": "0", "numRows": "0"}, None, id="zeros are ignored by Spark"),
        pytest.param({"totalSize": "5"}, Recorded(total_bytes=5, rows=None), id="hive's"),
        pytest.param(
            {"rawDataSize": "6", "numRows": "2"}, Recorded(total_bytes=6, rows=2), id="hive's raw size"
        ),
        pytest.param(
            {"totalSize": "5", "spark.sql.statistics.totalSize": "7", "spark.sql.statistics.numRows": "3"},
            Recorded(total_bytes=7, rows=3),
            id="spark's win",
        ),
        pytest.param(
            {"spark.sql.statistics.totalSize": "7", "lakewarden.statistics.version": "4"},
            Recorded(total_bytes=7, rows=None, version=4),
            id="ours",
        ),
        pytest.param({"spark.sql.statistics.numRows": "3"}, None, id="rows alone are ignored by Spark"),
    ],
)
def test_what_spark_would_believe(parameters: dict[str, str], found: Recorded | None) -> None:
    assert recorded_in(parameters) == found


@pytest.mark.parametrize(
    ("recorded", "size", "rows", "share", "wrong"),
    [
        pytest.param(Recorded(total_bytes=100, rows=10), 105, 10, 0.1, False, id="a little more"),
        pytest.param(Recorded(total_bytes=100, rows=10), 120, 10, 0.1, True, id="bytes grew"),
        pytest.param(Recorded(total_bytes=100, rows=10), 100, 12, 0.1, True, id="rows grew"),
        pytest.param(Recorded(total_bytes=100, rows=10), 100, None, 0.1, False, id="rows unknown now"),
        pytest.param(Recorded(total_bytes=100, rows=None), 100, 12, 0.1, False, id="rows not recorded"),
        pytest.param(Recorded(total_bytes=100, rows=10), 50, 10, 0.1, True, id="shrank"),
        pytest.param(
            Recorded(total_bytes=100, rows=10), 10_000, 1000, 50.0, True, id="whatever a policy allows"
        ),
        pytest.param(Recorded(total_bytes=0, rows=0), 1, 1, 1.0, True, id="was empty"),
        pytest.param(Recorded(total_bytes=0, rows=0), 0, 0, 0.0, False, id="still empty"),
    ],
)
def test_when_sizes_mislead(
    recorded: Recorded, size: int, rows: int | None, share: float, wrong: bool
) -> None:
    assert (misleads(recorded, total_bytes=size, rows=rows, allowed_share=share) is not None) is wrong


def test_misleading_statistics_go_with_the_sync_and_fresh_ones_stay() -> None:
    statistics = {"spark.sql.statistics.totalSize": "1000", "spark.sql.statistics.colStats.id.max": "9"}
    entry = replace(synced(), parameters={**synced().parameters, **statistics})
    assert planned(entry).changes == ()
    grown = planned(entry, seen(bytes=100_000, rows=10_000))
    assert aspects(grown) == [Aspect.STATISTICS]
    assert grown.changes[0].message == "The metastore says that the table has 1000 B; it has 98 KiB."
    assert grown.wanted.parameters == without_statistics(synced().parameters)


def test_statistics_are_taken_away_whole() -> None:
    kept = {"comment": "x", "lakewarden.table_id": "t"}
    gone = {
        "totalSize": "1",
        "numFiles": "1",
        "spark.sql.statistics.numRows": "1",
        "lakewarden.statistics.at": "now",
    }
    assert without_statistics(kept | gone) == kept


@given(st.text(max_size=3 * LONGEST_VALUE), st.text(max_size=2 * LONGEST_VALUE))
def test_long_values_are_read_back_and_leave_no_parts(first: str, second: str) -> None:
    once = with_long_value({"other": "x"}, "key", first)
    twice = with_long_value(once, "key", second)
    assert long_value(once, "key") == first
    assert long_value(twice, "key") == second
    assert twice == with_long_value({"other": "x"}, "key", second)
    assert max(map(len, twice.values())) <= LONGEST_VALUE


def test_a_missing_part_is_no_value() -> None:
    assert long_value({"key.numParts": "2", "key.part.0": "a"}, "key") is None


@pytest.mark.parametrize(
    ("canonical", "hadoops"),
    [
        ("file:///lake/a%20b", "file:/lake/a b"),
        ("s3://bucket/t", "s3a://bucket/t"),
        ("hdfs://name:9000/t", "hdfs://name:9000/t"),
    ],
)
def test_locations_are_written_as_spark_writes_them(canonical: str, hadoops: str) -> None:
    assert hadoop_location(canonical) == hadoops


def test_entries_of_a_format_that_names_no_provider_are_left_to_its_engine() -> None:
    odd = seen(format="odd")
    plan = planned(made_by_spark(), odd)
    assert plan.obstacle is not None and "odd tables" in plan.obstacle.message
    assert (plan.wanted, plan.changes) == (plan.entry, ())


def synced_by(entry: Entry, table_id: str, installation: str | None) -> tuple[Entry, list[Aspect]]:
    plan = plan_sync(
        seen(),
        entry,
        table_id=table_id,
        location=HERE,
        strict=False,
        stale_share=0.1,
        installation=installation,
    )
    return plan.wanted, [change.aspect for change in plan.changes]


def test_two_installations_that_sync_one_entry_do_not_change_it_back_and_forth() -> None:
    first, _ = synced_by(made_by_spark(), "t-1", "one")
    assert (first.parameters["lakewarden.table_id"], first.parameters["lakewarden.installation"]) == (
        "t-1",
        "one",
    )
    assert synced_by(first, "t-2", "two") == (first, []), "the entry says whose it is"
    assert synced_by(first, "t-1", "one") == (first, [])
    drifted = replace(first, columns=())
    mended, aspects = synced_by(drifted, "t-2", "two")
    assert aspects == [Aspect.COLUMNS] and mended.parameters["lakewarden.installation"] == "one"
    assert mended.parameters["lakewarden.table_id"] == "t-1"


def test_an_entry_from_before_installations_had_ids_is_taken_once_and_kept() -> None:
    old, _ = synced_by(made_by_spark(), "t-1", None)
    assert "lakewarden.installation" not in old.parameters
    assert synced_by(old, "t-1", "one") == (old, []), "an upgrade is no reason to write to every entry"
    taken, aspects = synced_by(old, "t-2", "two")
    assert aspects == [Aspect.IDENTITY] and taken.parameters["lakewarden.installation"] == "two"
    assert synced_by(taken, "t-1", "one") == (taken, [])
