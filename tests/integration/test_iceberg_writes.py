"""Governed statements that change Iceberg tables: each is one snapshot with its record, on exactly what was read."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.errors import (
    ConflictError,
    NotAllowedError,
    PreconditionError,
    RefusedError,
    UsageError,
)
from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.model.rows import RollbackState
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.daemon.attach import Writes
from lakewarden.daemon.gateway.access.owned_tables import require_own
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.jobs.rollback.execute.saga import Saga
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor
from lakewarden.jobs.session import write_recorder
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.conflicts.retries import RETRIES_KEY
from lakewarden.jobs.session.iceberg.staged_writes import StagedWrite
from lakewarden.jobs.session.judgement.reading_rules import Reading
from support.builders.callers import actor
from support.builders.spark_iceberg import SparkIceberg
from support.cases import mostly_long
from support.fakes.engine import FakeEngine
from support.fakes.tools import SeveralFormats
from support.processes.commands import Cli, Said, command

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
MODES = {"copy-on-write": "2", "merge-on-read": "3"}


def properties_of(mode: str) -> str:
    modes = ", ".join(f"'write.{one}.mode'='{mode}'" for one in ("delete", "update", "merge"))
    return f"'format-version'='{MODES[mode]}', {modes}"


@dataclass
class Shop:
    """A managed Iceberg table with the rows 1, 2, 3, and a session that changes it."""

    spark: SparkSession
    lw: Attached
    cli: Cli
    metastore: EmbeddedMetastore
    raw: SparkIceberg
    home: Path

    def must(self, *arguments: str) -> Said:
        said = self.cli(*arguments)
        assert said.code == 0, said.err
        return said

    def managed(self, table: SparkIceberg) -> SparkIceberg:
        self.must("tables", "register", f"{table.database}.{table.name}")
        return table

    def another(self, mode: str = "copy-on-write", **more: Any) -> SparkIceberg:
        table = SparkIceberg(
            self.spark, self.metastore.uri, "iceberg", properties=properties_of(mode), **more
        )
        table.append(1, 2, 3)
        return self.managed(table)

    def counts(self, text: str) -> tuple[int | None, int | None, int | None]:
        """The rows that a statement inserted, updated, deleted."""
        (row,) = self.lw.sql(text).collect()
        return row.num_inserted_rows, row.num_updated_rows, row.num_deleted_rows


def java_table(spark: SparkSession, table: SparkIceberg) -> Any:
    """In Iceberg's own library."""
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, str(table))


def newest(table: SparkIceberg) -> Commit:
    (last,) = table.reader.newest(table.location, count=1)
    return last


def inputs(table: SparkIceberg) -> list[tuple[str, int | None]]:
    record = newest(table).lineage
    assert record is not None
    return [(one.location, one.version) for one in record.inputs]


@pytest.fixture
def shop(
    spark: SparkSession, metastore: EmbeddedMetastore, metastore_cli: Cli, tmp_path: Path
) -> Iterator[Shop]:
    raw = SparkIceberg(spark, metastore.uri, "iceberg", name="raw", properties=properties_of("copy-on-write"))
    raw.append(1, 2, 3)
    with lakewarden.attach(spark, home=tmp_path / "home", settings={"metastore.uri": metastore.uri}) as lw:
        made = Shop(spark, lw, metastore_cli, metastore, raw, tmp_path / "home")
        made.managed(raw)
        yield made


@contextmanager
def between(act: Callable[[], Any], *, judged_only: bool = False) -> Iterator[None]:
    """Let somebody act once between the moment when a statement is pinned and its commit: when its rows are ready, or
    before Spark has begun."""
    waiting = [act]

    def once() -> None:
        if waiting:
            waiting.pop()()

    with pytest.MonkeyPatch.context() as patch:
        if judged_only:
            patch.setattr(write_recorder, "require_wanted", once)
        else:
            publish = StagedWrite._publish

            def later(self: StagedWrite, plan: Any) -> None:
                once()
                publish(self, plan)

            patch.setattr(StagedWrite, "_publish", later)
        yield


MERGE = "MERGE INTO {} t USING (SELECT explode(array(2, 20)) AS id) s ON t.id = s.id "
STATEMENTS: Sequence[tuple[str, list[int], CommitKind, tuple[int, int, int]]] = (
    ("INSERT INTO {} VALUES (4, 'a', NULL)", [1, 2, 3, 4], CommitKind.APPEND, (1, 0, 0)),
    ("DELETE FROM {} WHERE id = 1", [2, 3, 4], CommitKind.DELETE, (0, 0, 1)),
    (
        "INSERT INTO {0} SELECT id + 10, part, at FROM {0}",
        [2, 3, 4, 12, 13, 14],
        CommitKind.APPEND,
        (3, 0, 0),
    ),
    ("DELETE FROM {0} WHERE id IN (SELECT max(id) FROM {0})", [2, 3, 4, 12, 13], CommitKind.MERGE, (0, 0, 1)),
    (
        MERGE + "WHEN MATCHED THEN UPDATE SET part = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        [2, 3, 4, 12, 13, 20],
        CommitKind.MERGE,
        (1, 1, 0),
    ),
    (
        MERGE.replace("2, 20", "1, 20") + "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        [1, 2, 3, 4, 12, 13, 20],
        CommitKind.MERGE,
        (1, 0, 0),
    ),
    ("INSERT OVERWRITE {} VALUES (7, 'a', NULL), (8, 'b', NULL)", [7, 8], CommitKind.OVERWRITE, (2, 0, 7)),
    ("DELETE FROM {}", [], CommitKind.DELETE, (0, 0, 2)),
)


@pytest.mark.parametrize("mode", mostly_long(MODES, ["copy-on-write"]))
def test_each_statement_is_one_version_with_its_record_and_counts(shop: Shop, mode: str) -> None:
    table = shop.another(mode)
    for text, rows, kind, counts in STATEMENTS:
        before = table.seen.version
        assert shop.counts(text.format(table)) == counts, text
        commit = newest(table)
        assert table.rows() == rows, text
        assert (commit.version, commit.parent, commit.kind) == (before + 1, before, kind), text
        assert commit.lineage is not None and commit.run_id == commit.lineage.run_id, text
    head = table.seen.head
    assert shop.counts(f"DELETE FROM {table} WHERE id = 99") == (0, 0, 0)
    assert table.seen.head == head  # nothing to change, no version


@pytest.mark.long
@pytest.mark.parametrize("mode", mostly_long(MODES, ["merge-on-read"]))
def test_tables_that_are_partitioned_by_transforms_are_changed_alike(shop: Shop, mode: str) -> None:
    table = shop.another(mode, partitioned_by="bucket(3, id), truncate(1, part), day(at)")
    shop.lw.sql(f"INSERT INTO {table} VALUES (4, 'b', TIMESTAMP '2026-01-01 00:00:00')")
    shop.lw.sql(f"UPDATE {table} SET part = 'z' WHERE id = 2")
    shop.lw.sql(f"DELETE FROM {table} WHERE id = 1")
    shop.lw.sql(
        f"MERGE INTO {table} AS t USING (SELECT 3L AS id UNION ALL SELECT 9L) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET part = 'm' WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 'n')"
    )
    frame = shop.spark.createDataFrame(
        [(9, "u", None), (10, "u", None)], "id BIGINT, part STRING, at TIMESTAMP"
    )
    shop.lw.upsert(frame, str(table), "id")
    shop.lw.write(frame.where("id = 10")).append(str(table))
    found = sorted(table.sql(f"SELECT id, part FROM {table}"), key=str)
    assert found == [(10, "u"), (10, "u"), (2, "z"), (3, "m"), (4, "b"), (9, "u")]
    shop.lw.sql(f"INSERT OVERWRITE {table} SELECT * FROM {table} WHERE id < 4")
    assert table.rows() == [2, 3]


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_rows_are_changed_by_those_of_a_delta_table(shop: Shop, mode: str) -> None:
    """Spark asks by the source which files of a copy-on-write table to read."""
    table = shop.another(mode, partitioned_by="bucket(3, id)")
    by = f"{table.database}.by_{mode[:4]}"
    shop.spark.sql(f"CREATE TABLE {by} USING delta AS SELECT 2L AS id, 'd' AS part UNION ALL SELECT 9L, 'n'")
    matched = "WHEN MATCHED THEN UPDATE SET part = s.part"
    assert shop.counts(f"MERGE INTO {table} t USING {by} s ON t.id = s.id {matched}") == (0, 1, 0)
    assert inputs(table) == [(canonical(location_of(shop, by)), 0)]
    shop.lw.sql(f"UPDATE {table} AS t SET part = s.part || '!' FROM {by} AS s WHERE t.id = s.id")
    inserts = "WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, s.part)"
    deletes = "WHEN MATCHED AND t.part = 'd!' THEN DELETE"
    assert shop.counts(f"MERGE INTO {table} t USING {by} s ON t.id = s.id {deletes} {inserts}") == (1, 0, 1)
    found = sorted(table.sql(f"SELECT id, part FROM {table}"), key=str)
    assert found == [(1, "a"), (3, "a"), (9, "n")]
    assert inputs(table) == [(canonical(location_of(shop, by)), 0)]


def location_of(shop: Shop, name: str) -> str:
    (found,) = shop.spark.sql(f"DESCRIBE DETAIL {name}").select("location").collect()
    return str(found.location).removeprefix("file:")


@pytest.mark.long
def test_a_bare_name_is_a_table_of_the_catalog_that_the_session_uses(shop: Shop) -> None:
    raw, spark = shop.raw, shop.spark
    spark.sql(f"CREATE DATABASE {raw.database}_delta")
    spark.sql(f"CREATE TABLE {raw.database}_delta.raw USING delta AS SELECT id FROM {raw}")
    try:
        spark.sql(f"USE spark_catalog.{raw.database}_delta")
        spark.sql(f"USE iceberg.{raw.database}")
        shop.lw.sql("INSERT INTO raw VALUES (4, 'a', NULL)")
        shop.lw.sql("DELETE FROM raw WHERE id = 1")
        shop.lw.sql("UPDATE raw SET id = 20 FROM (SELECT 2 AS old) AS s WHERE raw.id = s.old")
        spark.sql("USE iceberg")
        shop.lw.sql(f"UPDATE {raw.database}.raw SET id = 5 WHERE id = 4")
        assert raw.rows() == [3, 5, 20]
        left = spark.table(f"spark_catalog.{raw.database}_delta.raw").collect()
        assert sorted(row.id for row in left) == [1, 2, 3], "another table of that name"
    finally:
        spark.sql("USE spark_catalog.default")
        spark.sql(f"DROP DATABASE spark_catalog.{raw.database}_delta CASCADE")


@pytest.mark.long
def test_a_catalog_of_the_session_that_keeps_tables_shows_what_was_written(shop: Shop) -> None:
    keys = {f"spark.sql.catalog.kept{key}": value for key, value in {
        "": "org.apache.iceberg.spark.SparkCatalog", ".type": "hive", ".uri": shop.metastore.uri,
    }.items()}  # fmt: skip
    named = f"kept.{shop.raw.database}.{shop.raw.name}"
    for key, value in keys.items():
        shop.spark.conf.set(key, value)
    try:
        for write, text in ((None, "INSERT INTO {} VALUES (4, 'a', NULL)"), ("position", "DELETE FROM {}")):
            rows = shop.spark.table(named).count()
            shop.lw.sql(text.format(named), write=write)
            assert shop.spark.table(named).count() == len(shop.raw.rows()) != rows
        frame = shop.spark.createDataFrame([(1, "u", None)], "id BIGINT, part STRING, at TIMESTAMP")
        shop.lw.upsert(frame, named, "id", write="equality")
        assert [row.id for row in shop.spark.table(named).collect()] == shop.raw.rows() == [1]
    finally:
        for key in keys:
            shop.spark.conf.unset(key)


@pytest.mark.long
def test_rows_that_were_deleted_before_are_not_counted_again(shop: Shop) -> None:
    table = shop.another()
    modes = ", ".join(f"'write.{one}.mode'='merge-on-read'" for one in ("delete", "update"))
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({modes})")
    shop.lw.sql(f"INSERT OVERWRITE {table} VALUES (1, 'a', NULL), (2, 'a', NULL)")
    shop.lw.sql(f"UPDATE {table} SET part = 'b' WHERE id = 1")
    assert shop.counts(f"DELETE FROM {table} WHERE part = 'a'")[2] in (None, 1)
    assert shop.counts(f"INSERT OVERWRITE {table} SELECT * FROM {table}")[2] in (None, 1)


def test_what_it_read_is_on_record_version_by_version(shop: Shop) -> None:
    raw, database = shop.raw, shop.raw.database
    other = shop.another("merge-on-read", database=f"{database}x")
    seen = raw.seen
    with between(lambda: raw.append(4), judged_only=True):
        shop.lw.sql(f"INSERT INTO {other} SELECT id + 100, part, at FROM {raw}")
    assert other.rows() == [1, 2, 3, 101, 102, 103]  # not what came in between
    assert inputs(other) == [(raw.location, seen.version)]
    shop.lw.sql(
        f"MERGE INTO {other} t USING {raw} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET part = s.part "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert other.rows() == [1, 2, 3, 4, 101, 102, 103]
    assert inputs(other) == [(raw.location, raw.seen.version)]
    assert newest(other).kind is CommitKind.MERGE
    # Earlier versions by their numbers, by its plain name; what a tag means is fixed as well.
    short, table = f"{database}.raw", java_table(shop.spark, raw)
    table.manageSnapshots().createTag("first", table.currentSnapshot().parentId()).commit()
    for point in (f"VERSION {seen.version}", "TAG 'first'"):
        assert len(shop.lw.sql(f"SELECT id FROM {short} AT {point}").collect()) == 3
        shop.lw.sql(f"INSERT OVERWRITE {other} SELECT * FROM {short} AT {point} WHERE id > 1")
        assert (other.rows(), inputs(other)) == ([2, 3], [(raw.location, seen.version)])


def test_whoever_commits_in_between_is_never_overwritten(shop: Shop) -> None:
    raw = shop.raw
    raw.sql(f"ALTER TABLE {raw} SET TBLPROPERTIES ('write.delete.isolation-level'='snapshot')")
    # Tried anew, on what is there by then.
    with between(lambda: raw.append(4)):
        assert shop.counts(f"DELETE FROM {raw} WHERE id > 2") == (0, 0, 2)
    assert raw.rows() == [1, 2]
    # Rows that are only added come after.
    with between(lambda: raw.append(5)):
        shop.lw.sql(f"INSERT INTO {raw} VALUES (6, 'a', NULL)")
    assert raw.rows() == [1, 2, 5, 6] and newest(raw).kind is CommitKind.APPEND
    # But not those that were made from its own.
    with between(lambda: raw.append(7)):
        shop.lw.sql(f"INSERT INTO {raw} SELECT id + 10, part, at FROM {raw}")
    assert raw.rows() == [1, 2, 5, 6, 7, 11, 12, 15, 16, 17]
    shop.spark.conf.set(RETRIES_KEY, "0")
    try:
        with between(lambda: raw.append(8)), pytest.raises(ConflictError, match="committed to .* first"):
            shop.lw.sql(f"UPDATE {raw} SET id = 0")
        with between(lambda: raw.append(9), judged_only=True), pytest.raises(ConflictError, match="first"):
            shop.lw.sql(f"INSERT OVERWRITE {raw} VALUES (0, 'a', NULL)")
        with (
            between(lambda: raw.sql(f"DROP TABLE {raw}")),
            pytest.raises(ConflictError, match="first"),
        ):
            shop.lw.sql(f"INSERT INTO {raw} VALUES (10, 'a', NULL)")
        assert shop.spark.catalog.tableExists(str(raw)) is False
    finally:
        shop.spark.conf.unset(RETRIES_KEY)


REFUSED = {
    "INSERT INTO {0}.branch_side VALUES (9, 'a', NULL)": NotAllowedError,
    "INSERT INTO {0} WITH ('branch' = 'side') VALUES (9, 'a', NULL)": UsageError,
    "INSERT INTO {0} WITH ('snapshot-property.x' = '1') VALUES (9, 'a', NULL)": UsageError,
    "TRUNCATE TABLE {0}": NotAllowedError,
    "CREATE OR REPLACE TABLE {0} USING iceberg AS SELECT 1 AS id": NotAllowedError,
    "CALL iceberg.system.rollback_to_snapshot('{1}.raw', 1)": NotAllowedError,
    "CALL iceberg.system.rollback_to_snapshot(table => concat('{1}', '.raw'), snapshot_id => 1)": NotAllowedError,
}


def test_what_is_not_done_is_refused_and_nothing_lands_elsewhere(shop: Shop) -> None:
    raw = shop.raw
    java_table(shop.spark, raw).manageSnapshots().createBranch("side").commit()
    for text, error in REFUSED.items():
        with pytest.raises(error, match="Nothing was run"):
            shop.lw.sql(text.format(raw, raw.database))
    raw.sql(f"ALTER TABLE {raw} SET TBLPROPERTIES ('write.wap.enabled'='true')")
    for key in ("spark.wap.branch", "spark.wap.id"):
        shop.spark.conf.set(key, "side")
        try:
            with pytest.raises(RefusedError, match="Nothing was run"):
                shop.lw.sql(f"INSERT INTO {raw} VALUES (9, 'a', NULL)")
        finally:
            shop.spark.conf.unset(key)
    shop.spark.conf.set("spark.sql.iceberg.snapshot-property.lakewarden.restored", "1")
    try:
        shop.lw.sql(f"INSERT INTO {raw} VALUES (4, 'a', NULL)")
    finally:
        shop.spark.conf.unset("spark.sql.iceberg.snapshot-property.lakewarden.restored")
    assert (newest(raw).kind, newest(raw).restored) == (CommitKind.APPEND, None)
    assert raw.rows() == [1, 2, 3, 4] and raw.rows("VERSION AS OF 'side'") == [1, 2, 3]


@pytest.mark.long
def test_one_plan_takes_back_delta_iceberg_and_delta_and_is_undone(shop: Shop) -> None:
    database, raw = shop.raw.database, shop.raw
    first, last = f"{database}.first", f"{database}.last"

    def load(ids: str) -> None:
        shop.lw.sql(f"INSERT INTO {first} SELECT explode(array({ids})) AS id")
        shop.lw.sql(
            f"INSERT OVERWRITE {raw} SELECT id, 'a' AS part, CAST(NULL AS TIMESTAMP) AS at FROM {first}"
        )
        shop.lw.sql(f"INSERT OVERWRITE {last} SELECT id FROM {raw}")

    def contents() -> list[list[object]]:
        rows = (shop.spark.table(one).collect() for one in (first, last))
        return [raw.rows(), *(sorted(row[0] for row in each) for each in rows)]

    for name in (first, last):
        shop.lw.sql(f"CREATE TABLE {name} (id BIGINT) USING delta")
        shop.must("tables", "register", name)
    load("1, 2")
    before = raw.seen.version
    load("666")
    bad = contents()
    assert bad == [[1, 2, 666]] * 3
    swept = command(shop.home, "daemon", "--once", settings={"LAKEWARDEN_HTTP_PORT": "0"})
    assert swept.returncode == 0, swept.stderr
    shown = shop.must("lineage", "show", f"{database}.raw", "--upstream", "--versions", "-o", "json").json
    edges = {
        (one["input"], one["input_version"], one["output_version"])
        for one in shown["edges"]
        if one["output"] == f"{database}.raw" and one["input"] == first
    }
    assert edges == {(first, 1, before), (first, 2, before + 1)}, shown
    planned = shop.must("rollback", "plan", first, "--to-version", "1", "--cascade", "-o", "json").json
    assert {one["name"]: (one["step"], one["to"]) for one in planned["tables"]} == {
        first: ("restore", 1),
        f"{database}.raw": ("restore", before),
        last: ("restore", 1),
    }
    services = open_services(home=shop.home)
    tools = SeveralFormats(services.readers, (FakeEngine(services.clock), raw.engine))
    journal = rollbacks_of_services(services).journal
    saga = Saga(
        journal=journal,
        executor=StepExecutor(tools=tools, storage=services.storage),
        undo_for=timedelta(days=7),
    )
    one = rollbacks_of_services(services).begin(planned["hash"], actor=actor("root", admin=True)).rollback_id
    assert (saga.go_on(one).head.state, contents()) == (RollbackState.DONE, [[1, 2]] * 3)
    rollback = journal.get(one)
    journal.save(
        rollback.with_head(RollbackState.UNDOING, undo=True), expects=rollback.head.state, because="test"
    )
    assert (saga.go_on(one).head.state, contents()) == (RollbackState.COMPENSATED, bad)


def test_under_an_operation_id_it_is_done_once_and_again_after_it_was_undone(shop: Shop) -> None:
    raw = shop.raw
    first = raw.sql(f"SELECT snapshot_id FROM {raw}.snapshots")[0][0]
    statement = f"INSERT INTO {raw} VALUES (4, 'a', NULL)"

    def once(lw: Attached, text: str = statement) -> tuple[int | None, bool]:
        lw.sql("SET lakewarden.operation = 'load-1'")
        (row,) = lw.sql(text).collect()
        return row.num_inserted_rows, row.done_before

    assert once(shop.lw) == (1, False)
    raw.append(5)
    assert once(shop.lw) == (0, True)
    with pytest.raises(PreconditionError, match="Another statement"):
        once(shop.lw, f"DELETE FROM {raw} WHERE id = 1")
    raw.sql(f"CALL iceberg.system.rollback_to_snapshot('{raw.database}.raw', {first})")
    settings = {"metastore.uri": shop.metastore.uri}
    attached = lakewarden.attach(shop.spark.newSession(), home=shop.home, settings=settings)
    with attached as other, between(lambda: once(other)):
        assert once(shop.lw) == (0, True)
    assert raw.rows() == [1, 2, 3, 4]


def test_frames_are_written_and_upserted(shop: Shop) -> None:
    raw, lw = shop.raw, shop.lw

    def frame(*ids: int | None, part: str = "f") -> Any:
        rows = [(one, part, None) for one in ids]
        return shop.spark.createDataFrame(rows, "id BIGINT, part STRING, at TIMESTAMP")

    def parts() -> dict[object, object]:
        return {row[0]: row[1] for row in raw.sql(f"SELECT id, part FROM {raw}")}

    lw.write(frame(4)).append(str(raw))
    lw.write(frame(5)).overwrite(str(raw), where="id = 4")
    assert parts() == {1: "a", 2: "a", 3: "a", 5: "f"}
    lw.write(frame(7, 8).coalesce(1)).append(str(raw))
    with pytest.raises(RefusedError, match="replaces whole files"):
        lw.write(frame(9)).overwrite(str(raw), where="id = 7")  # nobody else has written
    lw.write(frame(6)).overwrite(str(raw), where="id >= 7")
    assert parts() == {1: "a", 2: "a", 3: "a", 5: "f", 6: "f"}
    lw.write(frame(5, 6, part="g")).merge(str(raw), on="target.id = source.id")
    assert parts() == {1: "a", 2: "a", 3: "a", 5: "g", 6: "g"}
    assert newest(raw).kind is CommitKind.MERGE
    lw.write(lw.table(str(raw)).where("id < 3")).overwrite(str(raw))
    assert parts() == {1: "a", 2: "a"}
    assert sorted(row.id for row in lw.table(str(raw), version=1).collect()) == [1, 2, 3]
    kept = lw.table(str(raw))
    raw.append(3)
    with between(lambda: raw.append(8)), pytest.raises(ConflictError, match="first"):
        lw.write(kept).overwrite(str(raw))  # which would take back what came after it was read
    lw.write(kept).overwrite(str(raw))
    assert parts() == {1: "a", 2: "a"} and inputs(raw) == [(raw.location, raw.seen.version - 3)]
    with pytest.raises(UsageError, match="options"):
        lw.write(frame(9), options={"branch": "side"}).append(str(raw))

    done = lw.upsert(frame(2, 7, part="u"), str(raw), "id", operation="u1")
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 1, 0)
    assert lw.upsert(frame(2, 7, part="u"), str(raw), "id", operation="u1").done_before
    assert parts() == {1: "a", 2: "u", 7: "u"}
    with pytest.raises(PreconditionError, match="have the key"):
        lw.upsert(frame(8, 8), str(raw), "id")
    lw.upsert(frame(None, None), str(raw), "id")  # as new rows, unless told otherwise
    lw.upsert(frame(None, part="n"), str(raw), "id", null_keys="match", duplicates="any")
    assert sorted(str(row[0]) for row in raw.sql(f"SELECT part FROM {raw} WHERE id IS NULL")) == ["n", "n"]
    with between(lambda: raw.append(10)):
        lw.upsert(frame(1, 10, part="late"), str(raw), "id", delete_when="id = 1")
    assert parts() == {2: "u", 7: "u", 10: "late", None: "n"}


@pytest.mark.long
def test_each_batch_of_a_stream_is_upserted_once(shop: Shop, tmp_path: Path) -> None:
    raw, source = shop.raw, f"{shop.raw.database}.source"
    shop.lw.sql(
        f"CREATE TABLE {source} USING delta AS SELECT 3L AS id, 's' AS part, current_timestamp() AS at"
    )

    def run() -> None:
        query = shop.lw.upsert_stream(
            shop.spark.readStream.table(source),
            f"{raw.database}.raw",  # by the name that it is managed under
            "id",
            checkpoint=str(tmp_path / "checkpoint"),
            trigger={"availableNow": True},
        )
        query.awaitTermination()
        assert query.exception() is None

    run()
    (transaction,) = newest(raw).transactions
    assert transaction[1] == 0 and raw.rows() == [1, 2, 3]
    raw.sql(f"UPDATE {raw} SET part = 'mine' WHERE id = 3")
    for commit in (tmp_path / "checkpoint" / "commits").iterdir():
        commit.unlink()  # as if it had died before it noted that the batch was done
    run()
    assert raw.sql(f"SELECT part FROM {raw} WHERE id = 3") == [("mine",)]

    def back_to(last: int) -> None:
        """Its checkpoint is put back to where it was before a batch."""
        for kind in ("commits", "offsets"):
            for file in (tmp_path / "checkpoint" / kind).iterdir():
                if int(file.name.removeprefix(".").partition(".")[0]) >= last:
                    file.unlink()

    shop.lw.sql(f"INSERT INTO {source} VALUES (4, 's', NULL)")
    run()
    shop.lw.sql(f"INSERT INTO {source} VALUES (5, 's', NULL)")
    back_to(1)
    with pytest.raises(StreamingQueryException, match="Batch 1 was done with the changes"):
        run()  # which would skip row 5
    assert raw.rows() == [1, 2, 3, 4]
    back_to(1)
    first = raw.sql(f"SELECT snapshot_id FROM {raw}.snapshots ORDER BY committed_at LIMIT 1")[0][0]
    go_back = f"CALL iceberg.system.rollback_to_snapshot('{raw.database}.raw', {first})"
    shop.spark.sql(go_back)
    run()  # what was undone is done again
    assert raw.rows() == [1, 2, 3, 4, 5]
    shop.spark.sql(go_back)
    shop.lw.sql(f"INSERT INTO {source} VALUES (6, 's', NULL)")
    run()
    back_to(1)
    with pytest.raises(StreamingQueryException, match="Batch 1 is not in the table"):
        run()  # a later one is: what it has is older
    assert raw.rows() == [1, 2, 3, 6]


def test_who_only_reads_changes_own_tables_and_no_others(shop: Shop) -> None:
    services, session = open_services(home=shop.home), shop.spark.newSession()
    rita = actor("rita")
    judge = Reading(session, lambda _: None, partial(require_own, services.store, rita))
    lw = Writes(services, session, user="rita", caller=lambda: rita, tell=lambda _: None, judge=judge)
    hers = SparkIceberg(shop.spark, shop.metastore.uri, "iceberg")
    shop.must("tables", "register", f"{hers.database}.{hers.name}", "--owner", "rita")
    for text in (
        "INSERT INTO {} VALUES (4, 'a', NULL)",
        "INSERT OVERWRITE {} VALUES (4, 'a', NULL)",
        "UPDATE {} SET part = 'b'",
        "DELETE FROM {}",
        f"{MERGE}WHEN MATCHED THEN DELETE",
        f"{MERGE}WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    ):
        for name in (str(shop.raw), f"{shop.raw.database}.raw"):
            with pytest.raises(NotAllowedError, match="rita may not change rows"):
                lw.sql(text.format(name))
        if "WHEN MATCHED" not in text:
            lw.sql(text.format(hers))
    with pytest.raises(NotAllowedError, match="A reader may not use"):
        lw.sql(f"UPDATE {hers} SET part = (SELECT max(part) FROM {shop.raw})")
    assert shop.raw.rows() == [1, 2, 3] and hers.rows() == [2, 20]


DIALECTS = {
    "postgres": "UPDATE {0} SET part = s.part FROM (VALUES (1, 'p')) AS s(id, part) WHERE {0}.id = s.id",
    "mysql": "UPDATE {0} JOIN (SELECT 1 AS id, 'p' AS part) s ON {0}.id = s.id SET {0}.part = s.part",
    "tsql": "UPDATE t SET part = s.part FROM {0} t JOIN (SELECT 1 AS id, 'p' AS part) s ON t.id = s.id",
    "teradata": "UPDATE t FROM {0} t, (SELECT 1 AS id, 'p' AS part) s SET part = s.part WHERE t.id = s.id",
}


@pytest.mark.long
def test_other_dialects_change_it_and_several_matches_are_refused(shop: Shop) -> None:
    raw, lw = shop.raw, shop.lw
    try:
        for dialect, text in DIALECTS.items():
            lw.sql(f"SET lakewarden.dialect = {dialect}")
            assert shop.counts(text.format(raw)) == (0, 1, 0), dialect
            assert raw.sql(f"SELECT part FROM {raw} WHERE id = 1") == [("p",)], dialect
            raw.sql(f"UPDATE {raw} SET part = 'a' WHERE id = 1")
        lw.sql("SET lakewarden.dialect = postgres")
        short = f"{raw.database}.raw"  # as it is managed, and as the metastore has it
        lw.sql(
            f"WITH one AS (SELECT max(id) AS id FROM {short}) DELETE FROM {short} USING one WHERE raw.id = one.id"
        )
        assert raw.rows() == [1, 2]
        lw.sql(f"INSERT INTO {short} WITH one AS (SELECT 3L AS id) SELECT id, 'a', NULL FROM one")
        assert [row.id for row in lw.sql(f"SELECT id FROM {short} ORDER BY id").collect()] == [1, 2, 3]
        twice = (
            f"UPDATE {raw} SET part = s.p FROM (VALUES (1, 'x'), (1, 'y')) AS s(id, p) WHERE {raw}.id = s.id"
        )
        with pytest.raises(PreconditionError, match="several matches"):
            lw.sql(twice)
        assert raw.sql(f"SELECT DISTINCT part FROM {raw}") == [("a",)]
    finally:
        shop.spark.conf.unset("lakewarden.dialect")
