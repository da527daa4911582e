"""An Iceberg table without a bad append and with what came later: its files alone leave, or what a rollback lost is
added again. The undo takes either back."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.iceberg.released import UNDO_TAGS
from lakewarden.catalog.formats.port import CommitKind
from lakewarden.catalog.model.lineage_record import LineageRecord, Operation
from lakewarden.catalog.model.rows import RollbackState
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.engines.iceberg.java_tables import opened
from support.builders.equality_deletes import delete_by_equality
from support.builders.iceberg_shop import Shop
from support.builders.spark_iceberg import SparkIceberg
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here
from support.processes.commands import Cli

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
MENDED, BEFORE = ([1, 2, 3], [1, 2]), ([1, 2, 3, 666], [1, 2, 666])
BESIDE = "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read'"


@pytest.fixture
def later(shop: Shop) -> Shop:
    """After the bad load, something good came."""
    with lakewarden.attach(shop.spark, home=shop.home) as lw:
        lw.sql(f"INSERT INTO {shop.raw} VALUES (3, 'x', NULL)")
    return shop


def mending(shop: Shop) -> dict[str, Any]:
    return shop.planned("--bad", "2", "--remove-files", shop.name)


@pytest.mark.long
def test_what_came_later_stays_and_the_undo_brings_the_files_again(later: Shop) -> None:
    shop = later
    planned = {one["name"]: one for one in mending(shop)["tables"]}
    assert {name: (one["step"], one["undoable"]) for name, one in planned.items()} == {
        shop.name: ("remove_files", [2]),
        shop.derived: ("restore", []),
    }
    rollback_id = shop.begun_with(mending(shop))
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.DONE, MENDED)
    (last,) = shop.raw.reader.newest(shop.raw.location, count=1)
    assert (last.version, last.kind, last.parent, last.removed_files) == (4, CommitKind.DELETE, 3, 1)
    assert last.lineage is not None and last.lineage.operation is Operation.REMOVE_FILES
    assert [(one.from_version, one.version) for one in last.lineage.inputs] == [(None, 1), (2, 3)]
    mine = f"{UNDO_TAGS}rollback-{rollback_id}-1"
    assert shop.tags() == [mine, f"{mine}-made"]
    again = mending(shop)
    assert {one["step"] for one in again["tables"]} == {"none"}, "the table is clean"
    shop.expire()
    shop.begin_undo(rollback_id)
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.COMPENSATED, BEFORE)
    shop.expire()
    assert (shop.raw.rows(), shop.raw.missing()) == (BEFORE[0], set())
    shop.raw.vacuum(full=True)
    assert (shop.raw.rows(), shop.raw.missing()) == (BEFORE[0], set())


def test_killed_while_it_removes_files_the_next_attempt_completes_it_once(later: Shop) -> None:
    shop = later
    rollback_id = shop.begun_with(mending(shop))
    for point in points_of("test_killed_while_it_removes_files_the_next_attempt_completes_it_once"):
        killed_here(point, lambda: shop.go_on(rollback_id))
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.DONE, MENDED)
    assert shop.raw.seen.version == 4, "files were removed once"
    shop.begin_undo(rollback_id)
    for point in ("iceberg.drafted", "iceberg.restored"):
        killed_here(point, lambda: shop.go_on(rollback_id))
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.COMPENSATED, BEFORE)
    assert shop.raw.seen.version == 5


@pytest.mark.long
@pytest.mark.parametrize("point", ["rollback.intent", "iceberg.removal_drafted"])
def test_whoever_writes_before_files_are_removed_wins(later: Shop, point: str) -> None:
    shop = later
    rollback_id = shop.begun_with(mending(shop))

    def listener(reached: str) -> None:
        if reached == point and 7 not in shop.raw.rows():
            shop.raw.append(7)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "listener", listener)
        assert shop.go_on(rollback_id) is RollbackState.CONFLICT
    assert shop.contents() == ([1, 2, 3, 7, 666], [1, 2, 666]), "nothing was touched"
    shop.begin_undo(rollback_id)
    assert shop.go_on(rollback_id) is RollbackState.COMPENSATED and shop.contents()[0] == [1, 2, 3, 7, 666]


@pytest.mark.long
def test_a_worker_of_its_own_removes_them(later: Shop) -> None:
    shop = later
    planned = mending(shop)["hash"]
    shop.must("rollback", "apply", planned)
    assert shop.contents() == MENDED
    shop.must("rollback", "undo", planned)
    assert shop.contents() == BEFORE


def again(shop: Shop) -> dict[str, Any]:
    return shop.planned("--bad", "2", "--reapply")


@pytest.mark.long
def test_a_lost_append_is_copied_after_the_restore_and_the_undo_takes_all_back(later: Shop) -> None:
    shop = later
    rollback_id = shop.begun_with(again(shop))
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.DONE, MENDED)
    files, old = (
        {one.path for one in shop.raw.reader.files(shop.raw.location, version=version)} for version in (5, 3)
    )
    assert len(files - old) == 1, "a file that left never comes back"
    (last,) = shop.raw.reader.newest(shop.raw.location, count=1)
    assert (last.version, last.kind, last.parent) == (5, CommitKind.APPEND, 4)
    assert last.lineage is not None
    assert [(one.from_version, one.version) for one in last.lineage.inputs] == [(2, 3)]
    assert {one["step"] for one in again(shop)["tables"]} == {"none"}, "the table is clean"
    assert shop.planned("--bad", "3")["tables"][0]["tainted"] == [3, 5], (
        "the copy is as bad as what it copied"
    )
    shop.expire()
    assert (shop.raw.rows(), shop.raw.missing()) == (MENDED[0], set())
    shop.begin_undo(rollback_id)
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.COMPENSATED, BEFORE)
    shop.expire()
    shop.raw.vacuum(full=True)
    assert (shop.raw.rows(), shop.raw.missing()) == (BEFORE[0], set())


@pytest.mark.long
def test_killed_while_it_adds_rows_again_the_next_attempt_completes_it_once(later: Shop) -> None:
    shop = later
    rollback_id = shop.begun_with(again(shop))
    for point in points_of("test_killed_while_it_adds_rows_again_the_next_attempt_completes_it_once"):
        killed_here(point, lambda: shop.go_on(rollback_id))
        shop.expire()
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.DONE, MENDED)
    assert shop.raw.seen.version == 5, "they were added once"


@pytest.mark.long
@pytest.mark.parametrize("deed", ["append", "delete"])
def test_whoever_writes_before_rows_are_added_again_goes_first(later: Shop, deed: str) -> None:
    shop = later
    rollback_id = shop.begun_with(again(shop))

    def listener(reached: str) -> None:
        if reached == "iceberg.copied" and shop.raw.seen.version == 4:
            shop.raw.append(7) if deed == "append" else shop.raw.sql(f"DELETE FROM {shop.raw} WHERE id = 1")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "listener", listener)
        state = shop.go_on(rollback_id)
    if deed == "append":
        assert (state, shop.raw.rows()) == (RollbackState.DONE, [1, 2, 3, 7])
    else:
        assert (state, shop.raw.rows()) == (RollbackState.CONFLICT, [2])
    assert shop.raw.unnamed() == set(), "the copy of the try that lost is gone"


@pytest.mark.long
def test_why_files_cannot_be_removed_is_told(
    spark: SparkSession, metastore: EmbeddedMetastore, metastore_cli: Cli
) -> None:
    """`keep_unknown`: writes without a record may have read the bad rows."""
    deeds: dict[str, tuple[str, Callable[[SparkIceberg], object]]] = {
        "compacted": ("files of version 2 were taken out or written anew since", compacted),
        "deleted beside": (
            "rows of version 2 may have been deleted or updated since",
            lambda one: one.sql(f"DELETE FROM {one} WHERE id = 666"),
        ),
        "deleted by equality": (
            "rows of version 2 may have been deleted or updated since",
            lambda one: delete_by_equality(one, 666),
        ),
        "updated elsewhere": (
            "version 3 (partial overwrite) may come of the bad rows, too",
            lambda one: one.sql(f"UPDATE {one} SET part = 'z' WHERE id = 1"),
        ),
    }
    for what, (why, deed) in deeds.items():
        table = bad_load(spark, metastore, metastore_cli)
        deed(table)
        said = metastore_cli(
            "rollback", "plan", f"{table.database}.{table.name}", "--bad", "2", "--consent", "keep_unknown",
            "--remove-files", f"{table.database}.{table.name}", "-o", "json",
        )  # fmt: skip
        assert said.code == 4 and f"would have to go: {why}" in str(said.json["why_not"]), (what, said.json)


def compacted(table: SparkIceberg) -> None:
    change = table.engine.compact(
        table.location, requires=table.seen.at, partitions=None, target_bytes=2**20, run_id="c"
    )
    assert change.version == 3


def bad_load(spark: SparkSession, metastore: EmbeddedMetastore, cli: Cli) -> SparkIceberg:
    table = SparkIceberg(spark, metastore.uri, "iceberg", properties=f"'format-version'='2', {BESIDE}")
    table.append(1, 2)
    one_file = "/*+ COALESCE(1) */ id, 'x', TIMESTAMP '2026-03-01'"
    table.sql(f"INSERT INTO {table} SELECT {one_file} FROM VALUES (666), (667) AS v (id)")
    assert cli("tables", "register", f"{table.database}.{table.name}").code == 0
    return table


RECORD = LineageRecord(run_id="rollback-1-1", operation=Operation.REMOVE_FILES, user="ana")


@pytest.mark.long
@pytest.mark.parametrize("version", ["2", "3"])
def test_deletes_that_came_before_or_lie_elsewhere_stay_as_they_are(
    spark: SparkSession, metastore: EmbeddedMetastore, version: str
) -> None:
    table = SparkIceberg(
        spark, metastore.uri, "iceberg", partitioned_by="part", properties=f"'format-version'='{version}', {BESIDE}"
    )  # fmt: skip
    table.append(1, 2, 3)
    table.sql(f"DELETE FROM {table} WHERE id = 1")
    table.append(666, 667)
    table.append(8, 9, part="b")
    table.sql(f"DELETE FROM {table} WHERE id = 8")
    delete_by_equality(table, 9, partition="part=b")
    removed = table.engine.remove_files(table.location, requires=table.seen.at, versions=[3], record=RECORD)
    assert (removed, table.rows()) == (7, [2, 3])
    table.engine.restore(table.location, requires=table.seen.at, to=6, apps=(), run_id="rollback-1-1-undo")
    assert table.rows() == [2, 3, 666, 667]
    table.vacuum()
    assert table.rows() == [2, 3, 666, 667]
    assert all((table.folder / path).exists() for path in table.named())


@pytest.mark.long
def test_appends_with_other_columns_do_not_come_again(later: Shop) -> None:
    shop = later
    shop.raw.sql(f"ALTER TABLE {shop.raw} ADD COLUMN kind STRING")
    with lakewarden.attach(shop.spark, home=shop.home) as lw:
        for one in (4, 5):
            lw.sql(f"INSERT INTO {shop.raw} VALUES ({one}, 'x', NULL, 'k')")
    planned = {one["name"]: one for one in again(shop)["tables"]}[shop.name]
    can = {one["version"]: one["can_reapply"] for one in planned["collateral"]}
    assert can == {3: True, 4: False, 5: False}


@pytest.mark.long
def test_rows_come_again_whatever_was_deleted_and_partitioned_since(
    spark: SparkSession, metastore: EmbeddedMetastore
) -> None:
    nested = SparkIceberg(
        spark, metastore.uri, "iceberg", partitioned_by="part", properties=f"'format-version'='3', {BESIDE}"
    )
    nested.sql(f"ALTER TABLE {nested} ADD COLUMNS (tags ARRAY<STRING>, more MAP<STRING, STRUCT<n: INT>>)")
    row = "'x', NULL, array('a', NULL), map('k', named_struct('n', 1))"
    nested.sql(f"INSERT INTO {nested} VALUES (1, {row}), (2, {row})")
    nested.sql(f"INSERT INTO {nested} VALUES (3, {row}), (4, 'y', NULL, NULL, NULL)")
    wanted = nested.sql(f"SELECT * FROM {nested} ORDER BY id")
    assert len(wanted) == 4
    nested.sql(f"DELETE FROM {nested} WHERE id = 3")
    opened(spark, nested.heads, nested.location).table.updateSpec().addField("id").commit()
    nested.engine.restore(nested.location, requires=nested.seen.at, to=1, apps=(), run_id="rollback-1-1")
    record = LineageRecord(run_id="rollback-1-2", operation=Operation.APPEND, user="ana")
    nested.engine.add_again(nested.location, requires=nested.seen.at, version=2, record=record)
    assert nested.sql(f"SELECT * FROM {nested} ORDER BY id") == wanted
    nested.sql(f"ALTER TABLE {nested} ADD COLUMN kind STRING")
    with pytest.raises(PreconditionError, match="has other columns than at version 2"):
        nested.engine.add_again(nested.location, requires=nested.seen.at, version=2, record=record)


def test_files_that_are_not_as_they_were_added_stay(
    spark: SparkSession, metastore: EmbeddedMetastore
) -> None:
    table = SparkIceberg(spark, metastore.uri, "iceberg", properties=f"'format-version'='2', {BESIDE}")
    table.append(1, 2)
    table.append(666)
    java = opened(spark, table.heads, table.location).table
    (file,) = java.currentSnapshot().addedDataFiles(java.io())
    java.newAppend().appendFile(file).commit()
    assert table.rows() == [1, 2, 666, 666]
    for version in (2, 3):
        with pytest.raises(PreconditionError, match="no longer has .* as it was added"):
            table.engine.remove_files(
                table.location, requires=table.seen.at, versions=[version], record=RECORD
            )
    table.sql(f"ALTER TABLE {table} ADD COLUMN kind STRING")
    with pytest.raises(PreconditionError, match="Somebody has changed columns"):
        table.engine.remove_files(table.location, requires=table.seen.at, versions=[1], record=RECORD)
    assert table.seen.version == 3
