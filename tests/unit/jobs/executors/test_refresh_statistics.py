"""The executors that write to the metastore, with fakes: what they say, what they repeat, what they refuse."""

import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.errors import ConflictError, PreconditionError, RefusedError, UnavailableError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.metastore.entry_statistics import recorded_in
from lakewarden.catalog.metastore.parameters import long_value
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.actions.statistics import RefreshStatistics
from lakewarden.jobs.actions.sync import SyncMetastore
from lakewarden.jobs.executors.statistics import refresh_statistics, with_statistics
from lakewarden.jobs.executors.sync import sync_metastore
from lakewarden.jobs.runs.port import ColumnStatistics, JobContext, TableStatistics
from support.builders.entries import enlist
from support.builders.runs import Bench
from support.fakes.metastore import FakeMetastore

NAME = "db.flights"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Listed:
    """A Delta table with an entry in a metastore in memory."""

    bench: Bench
    folder: Path

    @property
    def location(self) -> str:
        return canonical(str(self.folder))

    @property
    def context(self) -> JobContext:
        return self.bench.context(self.location, name=NAME)

    @property
    def version(self) -> int:
        return self.bench.seen(self.location).version

    def entry(self) -> Entry:
        found = self.bench.metastore.get(*NAME.split("."))
        assert found is not None
        return found

    def append(self, rows: int) -> None:
        write_deltalake(self.folder, pa.table({"id": pa.array(range(rows), pa.int64())}), mode="append")


@pytest.fixture
def listed(tmp_path: Path) -> Listed:
    table = Listed(Bench(), tmp_path / "t")
    table.append(10)
    enlist(
        table.bench.metastore,
        table.bench.seen(table.location),
        database="db",
        table="flights",
        table_id=table.context.target.table_id,
        location=table.location,
    )
    return table


def refresh(table: Listed, **changes: object) -> RefreshStatistics:
    values: dict[str, object] = {"requires": Head(table.version), "name": NAME, "fill_files": False}
    return RefreshStatistics(**(values | changes))  # type: ignore[arg-type]  # by name


def test_a_refresh_is_recorded_with_its_version_and_done_once(listed: Listed) -> None:
    report = refresh_statistics(listed.context, refresh(listed))
    assert (report.skipped, report.committed_version) == (False, None)
    assert report.message == "10 rows and 1 column described in the metastore"
    recorded = recorded_in(listed.entry().parameters)
    assert recorded is not None
    assert (recorded.rows, recorded.version) == (10, 0)
    again = refresh_statistics(listed.context, refresh(listed))
    assert again.skipped
    assert again.message == "the metastore has the statistics of version 0 already"


def test_a_refresh_of_a_version_that_is_no_longer_head_is_refused(listed: Listed) -> None:
    listed.append(1)
    with pytest.raises(ConflictError, match="is at version 1; this was decided on 0"):
        refresh_statistics(listed.context, refresh(listed, requires=Head(0)))


def test_without_an_entry_or_a_metastore_there_is_nothing_to_refresh(listed: Listed) -> None:
    listed.bench.metastore.drop("db", "flights")
    assert refresh_statistics(listed.context, refresh(listed)).skipped
    assert refresh_statistics(replace(listed.context, metastore=None), refresh(listed)).skipped


def test_another_tables_entry_gets_no_statistics(listed: Listed) -> None:
    entry = listed.entry()
    elsewhere = replace(entry, location="file:/elsewhere")
    listed.bench.metastore.replace(elsewhere, expected=entry)
    report = refresh_statistics(listed.context, refresh(listed))
    assert (report.skipped, report.message) == (True, "db.flights in the metastore is another table")


def test_an_entry_that_users_point_at_another_table_is_not_pointed_back(
    listed: Listed, tmp_path: Path
) -> None:
    """ALTER TABLE ... SET LOCATION to what was written beside it: the entry still carries our id."""
    write_deltalake(tmp_path / "green", pa.table({"id": [1]}))
    entry = listed.entry()
    pointed = replace(entry, location=f"file:{tmp_path / 'green'}")
    listed.bench.metastore.replace(pointed, expected=entry)
    action = SyncMetastore(requires=Head(listed.version), name=NAME)
    with pytest.raises(RefusedError, match="was pointed at another table, at file:.*green") as caught:
        sync_metastore(listed.context, action)
    assert "point it back at" in (caught.value.hint or "")
    assert listed.entry().location == pointed.location
    shutil.rmtree(tmp_path / "green")
    assert not sync_metastore(listed.context, action).skipped, "where no table is, the entry is behind"
    assert listed.entry().location == entry.location


def test_an_entry_that_users_point_at_what_nobody_can_ask_is_not_pointed_back(listed: Listed) -> None:
    entry = listed.entry()
    pointed = replace(entry, location="cosn://bucket/green")
    listed.bench.metastore.replace(pointed, expected=entry)
    with pytest.raises(RefusedError, match="was pointed at another table, at cosn:"):
        sync_metastore(listed.context, SyncMetastore(requires=Head(listed.version), name=NAME))
    assert listed.entry().location == pointed.location


def test_a_change_of_the_entry_meanwhile_is_kept(listed: Listed) -> None:
    real = listed.bench.metastore

    class Busy(FakeMetastore):
        """Somebody comments the table between our reading and our writing, once."""

        def replace(self, entry: Entry, *, expected: Entry) -> None:
            current = listed.entry()
            if "comment" not in current.parameters:
                theirs = replace(current, parameters={**current.parameters, "comment": "theirs"})
                real.replace(theirs, expected=current)
            real.replace(entry, expected=expected)

        def get(self, database: str, table: str) -> Entry | None:
            return real.get(database, table)

    refresh_statistics(replace(listed.context, metastore=Busy()), refresh(listed))
    assert listed.entry().parameters["comment"] == "theirs"
    assert recorded_in(listed.entry().parameters) is not None


def test_columns_are_written_as_spark_reads_them() -> None:
    column = ColumnStatistics(
        name="Delay",
        type="int",
        distinct_count=3,
        null_count=1,
        minimum="-5",
        maximum="7",
        histogram="x" * 9000,
    )
    found = TableStatistics(version=4, total_bytes=100, rows=10, columns=(column,), sampled_share=0.25)
    old = {"comment": "kept", "totalSize": "5", "spark.sql.statistics.colStats.gone.max": "1"}
    written = with_statistics(old, found, at=NOON)
    key = "spark.sql.statistics.colStats.Delay"
    assert long_value(written, f"{key}.histogram") == "x" * 9000
    assert {name: value for name, value in written.items() if ".histogram" not in name} == {
        "comment": "kept",
        "spark.sql.statistics.totalSize": "100",
        "spark.sql.statistics.numRows": "10",
        f"{key}.version": "2",
        f"{key}.distinctCount": "3",
        f"{key}.nullCount": "1",
        f"{key}.min": "-5",
        f"{key}.max": "7",
        "lakewarden.statistics.version": "4",
        "lakewarden.statistics.at": "2026-01-01T12:00:00+00:00",
        "lakewarden.statistics.sampled_share": "0.2500",
    }


def test_a_sync_repeats_quietly_and_says_what_it_changed(listed: Listed) -> None:
    action = SyncMetastore(requires=Head(0), name=NAME)
    assert sync_metastore(listed.context, action).message == "the metastore agrees already"
    entry = listed.entry()
    listed.bench.metastore.replace(replace(entry, columns=()), expected=entry)
    report = sync_metastore(listed.context, action)
    assert (report.skipped, report.message) == (False, "the metastore agrees with version 0 again: columns")
    assert sync_metastore(listed.context, action).skipped


def test_a_table_that_grew_loses_its_statistics_without_spark(listed: Listed) -> None:
    refresh_statistics(listed.context, refresh(listed))
    listed.append(1000)
    assert not sync_metastore(listed.context, SyncMetastore(requires=Head(1), name=NAME)).skipped
    assert recorded_in(listed.entry().parameters) is None


def test_a_sync_waits_for_a_metastore_that_is_away_and_then_catches_up(listed: Listed) -> None:
    entry = listed.entry()
    listed.bench.metastore.replace(replace(entry, provider="parquet"), expected=entry)
    listed.bench.metastore.down = True
    with pytest.raises(UnavailableError) as error:
        sync_metastore(listed.context, SyncMetastore(requires=Head(0), name=NAME))
    assert error.value.retry
    listed.bench.metastore.down = False
    assert not sync_metastore(listed.context, SyncMetastore(requires=Head(0), name=NAME)).skipped
    assert listed.entry().provider == "delta"


def test_a_sync_refuses_what_it_cannot_do(listed: Listed) -> None:
    action = SyncMetastore(requires=Head(0), name=NAME)
    with pytest.raises(PreconditionError, match="no metastore is configured"):
        sync_metastore(replace(listed.context, metastore=None), action)
    with pytest.raises(ConflictError, match="is at version 0; this was decided on 9"):
        sync_metastore(listed.context, replace(action, requires=Head(9)))
    entry = listed.entry()
    stranger = {key: value for key, value in entry.parameters.items() if key != "lakewarden.table_id"}
    moved = replace(entry, location="file:/elsewhere", parameters=stranger)
    listed.bench.metastore.replace(moved, expected=entry)
    with pytest.raises(RefusedError, match="is another table"):
        sync_metastore(listed.context, action)
