"""Iceberg tables go back together with the Delta tables made from them, and come back by the undo."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.catalog.formats.iceberg.released import UNDO_TAGS
from lakewarden.catalog.formats.port import CommitKind
from lakewarden.catalog.model.rows import RollbackState
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.jobs.engines.iceberg.java_tables import opened
from support.builders.iceberg_shop import Shop
from support.builders.spark_iceberg import SparkIceberg, iceberg_catalogs
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
CHANGES = {
    "rows": "INSERT INTO {} VALUES (7, 'x', NULL)",
    "columns": "ALTER TABLE {} ADD COLUMN kind STRING",
    "properties": "ALTER TABLE {} SET TBLPROPERTIES ('mine'='new')",
}
LEAST = "history.expire.min-snapshots-to-keep"
GOOD, BAD = ([1, 2], [1, 2]), ([1, 2, 666], [1, 2, 666])


def test_one_plan_takes_both_back_and_the_undo_brings_both_again(shop: Shop) -> None:
    planned = {one["name"]: one for one in shop.plan()["tables"]}
    assert {name: (one["step"], one["from"], one["to"]) for name, one in planned.items()} == {
        shop.name: ("restore", 2, 1),
        shop.derived: ("restore", 1, 0),
    }
    rollback_id = shop.begun()
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.DONE, GOOD)
    (last,) = shop.raw.reader.newest(shop.raw.location, count=1)
    assert (last.version, last.kind, last.restored, last.parent) == (3, CommitKind.RESTORE, 1, 2)
    mine = f"{UNDO_TAGS}rollback-{rollback_id}-1"
    assert shop.tags() == [mine, f"{mine}-made"]
    shop.must("rollback", "show", rollback_id)
    java = opened(shop.spark, shop.raw.heads, shop.raw.location)
    java.table.manageSnapshots().createBranch("audit").commit()
    shop.raw.sql(f"INSERT INTO {shop.raw}.branch_audit VALUES (7, 'x', NULL)")
    assert shop.raw.rows() == GOOD[0], "main has nothing of it"
    shop.begin_undo(rollback_id)
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.COMPENSATED, BAD)
    assert (shop.tags(), shop.raw.missing()) == ([f"{mine}-made", f"{mine}-undo-made"], set())


@pytest.mark.long
def test_a_worker_of_its_own_does_it_by_two_steps(shop: Shop) -> None:
    planned = shop.plan()["hash"]
    shop.must("rollback", "apply", planned)
    assert shop.contents() == GOOD
    rollback = rollbacks_of_services(shop.services).journal.find(planned)
    assert [one.state for one in rollback.steps] == [RollbackState.DONE, RollbackState.DONE]
    shop.must("rollback", "undo", planned)
    assert shop.contents() == BAD


@pytest.mark.long
def test_a_plan_shows_which_rows_of_both_formats_go(shop: Shop) -> None:
    planned = shop.plan("--diff", shop.name, "--diff", shop.derived, "--key", "id")
    assert [one["name"] for one in planned["diffs"]] == [shop.name, shop.derived]
    for one in planned["diffs"]:
        assert (one["goes"], one["comes_back"], one["keys"]) == (
            1,
            0,
            {"goes": 1, "comes_back": 0, "changes": 0},
        )
        assert one["samples"][0]["key"] == {"id": "666"}
    assert shop.contents() == BAD


def test_killed_forwards_the_next_attempt_completes_it_once_on_iceberg(shop: Shop) -> None:
    shop.keep(days=5)
    rollback_id = shop.begun()
    for point in points_of("test_killed_forwards_the_next_attempt_completes_it_once_on_iceberg"):
        killed_here(point, lambda: shop.go_on(rollback_id))
    shop.keep(days=30)
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.DONE, GOOD)
    assert shop.raw.seen.version == 3, "there is one restore"
    assert shop.kept_days == 30, "what its owner said meanwhile"
    shop.begin_undo(rollback_id)
    for point in ("iceberg.drafted", "iceberg.restored"):
        killed_here(point, lambda: shop.go_on(rollback_id))
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.COMPENSATED, BAD)
    assert (shop.raw.seen.version, shop.kept_days) == (4, 30)


@pytest.mark.parametrize("point", mostly_long(["rollback.intent", "iceberg.drafted"], ["iceberg.drafted"]))
def test_whoever_writes_first_wins(shop: Shop, point: str) -> None:
    rollback_id = shop.begun()

    def listener(reached: str) -> None:
        if reached == point and 7 not in shop.raw.rows():
            shop.raw.append(7)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "listener", listener)
        assert shop.go_on(rollback_id) is RollbackState.CONFLICT
    assert shop.contents() == ([1, 2, 7, 666], [1, 2, 666]), "nothing was touched"
    shop.begin_undo(rollback_id)
    assert shop.go_on(rollback_id) is RollbackState.COMPENSATED and shop.contents()[0] == [1, 2, 7, 666]


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    mostly_long(CHANGES, ["rows"]),
)
def test_what_somebody_did_after_the_rollback_keeps_the_undo_from_being_made(shop: Shop, change: str) -> None:
    rollback_id = shop.begun()
    shop.go_on(rollback_id)
    shop.raw.sql(CHANGES[change].format(shop.raw))
    seen = shop.raw.seen
    shop.begin_undo(rollback_id)
    assert shop.go_on(rollback_id) is RollbackState.CONFLICT
    assert shop.raw.seen == seen


def test_an_expiry_by_somebody_else_leaves_what_the_undo_needs(shop: Shop) -> None:
    rollback_id = shop.begun()
    shop.go_on(rollback_id)
    shop.expire()
    assert (shop.raw.rows(), shop.raw.missing()) == ([1, 2], set())
    shop.begin_undo(rollback_id)
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.COMPENSATED, BAD)


@pytest.mark.long
def test_a_rewrite_and_an_expiry_leave_what_the_undo_needs(shop: Shop) -> None:
    rollback_id = shop.begun()
    shop.go_on(rollback_id)
    shop.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    shop.expire()
    shop.begin_undo(rollback_id)
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.COMPENSATED, BAD)


@pytest.mark.long
def test_an_undo_leaves_what_that_of_an_earlier_rollback_needs(shop: Shop) -> None:
    first = shop.begun()
    shop.go_on(first)
    second = shop.begun(to=2)
    assert (shop.go_on(second), shop.raw.rows()) == (RollbackState.DONE, BAD[0])
    shop.expire()
    shop.begin_undo(second)
    assert (shop.go_on(second), shop.raw.rows()) == (RollbackState.COMPENSATED, GOOD[0])
    shop.expire()
    shop.begin_undo(first)
    assert (shop.go_on(first), shop.contents()) == (RollbackState.COMPENSATED, BAD)
    assert shop.raw.missing() == set()


@pytest.mark.long
def test_what_a_killed_run_did_is_found_whatever_expired_since(shop: Shop) -> None:
    rollback_id = shop.begun()
    killed_here("iceberg.restored", lambda: shop.go_on(rollback_id))
    shop.raw.append(7)
    shop.expire()
    shop.go_on(rollback_id)
    shop.begin_undo(rollback_id)
    assert (shop.go_on(rollback_id), shop.raw.rows()) == (RollbackState.CONFLICT, [1, 2, 7])


@pytest.mark.long
def test_our_own_vacuum_leaves_it_too(shop: Shop) -> None:
    rollback_id = shop.begun()
    shop.go_on(rollback_id)
    shop.raw.vacuum()
    shop.begin_undo(rollback_id)
    assert (shop.go_on(rollback_id), shop.contents()) == (RollbackState.COMPENSATED, BAD)
    shop.raw.vacuum()
    assert (shop.raw.unnamed(), shop.raw.missing(), shop.raw.rows()) == (set(), set(), BAD[0])


@pytest.fixture(params=["iceberg", pytest.param("by_path", marks=pytest.mark.long)])
def table(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[SparkIceberg]:
    with iceberg_catalogs(spark, metastore.uri, tmp_path_factory.mktemp("iceberg")):
        yield SparkIceberg(spark, metastore.uri, request.param)


def restored(table: SparkIceberg, to: int, run_id: str = "r") -> int:
    return table.engine.restore(table.location, requires=table.seen.at, to=to, apps=(), run_id=run_id)


def test_columns_and_properties_go_back_with_the_rows_and_come_again(table: SparkIceberg) -> None:
    table.append(1)
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('mine'='before', 'lakewarden.kept'='a')")
    before = table.seen
    table.sql(f"ALTER TABLE {table} RENAME COLUMN part TO region")
    table.sql(f"INSERT INTO {table} VALUES (666, 'x', NULL)")
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('mine'='after', 'lakewarden.kept'='b', '{LEAST}'='9')")
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('new'='c')")
    bad = table.seen
    assert restored(table, before.version, "rollback-1-1") == bad.version + 1
    again = table.seen
    java = opened(table.spark, table.heads, table.location).base
    assert java.currentSnapshot().schemaId() == java.currentSchemaId(), (
        "as for whoever reads this version later"
    )
    assert (again.schema, table.rows()) == (before.schema, [1])
    own = {key: again.properties.get(key) for key in ("mine", "new", "lakewarden.kept", LEAST)}
    assert own == {"mine": "before", "new": None, "lakewarden.kept": "b", LEAST: "9"}
    restored(table, bad.version, "rollback-1-1-undo")
    undone = table.seen
    assert (undone.schema, undone.properties, table.rows()) == (bad.schema, bad.properties, [1, 666])
    table.append(2)
    assert table.rows() == [1, 2, 666]


@pytest.mark.long
def test_columns_that_were_changed_after_the_last_version_are_nobodys_to_take_back(
    table: SparkIceberg,
) -> None:
    table.append(1)
    table.append(666)
    table.sql(f"ALTER TABLE {table} ADD COLUMN kind STRING")
    before = table.seen
    with pytest.raises(PreconditionError, match="since version 2 was made"):
        restored(table, 1)
    assert table.seen.head == before.head
    table.sql(f"INSERT INTO {table} VALUES (7, 'x', NULL, 'k')")
    bad = table.seen
    restored(table, 2, "rollback-1-1")
    assert "kind" not in [one.path for one in table.seen.schema]
    restored(table, bad.version, "rollback-1-1-undo")
    assert (table.seen.schema, table.rows()) == (bad.schema, [1, 7, 666])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("change", "back"),
    [
        pytest.param("ADD COLUMN kind STRING", "DROP COLUMN kind", id="columns"),
        pytest.param("SET TBLPROPERTIES ('mine'='new')", "UNSET TBLPROPERTIES ('mine')", id="properties"),
    ],
)
def test_an_undo_does_not_take_back_what_an_owner_changed_before_a_compaction(
    table: SparkIceberg, change: str, back: str
) -> None:
    for one in (1, 2, 3, 666):
        table.append(one)
    restored(table, 3, "rollback-1-1")
    table.sql(f"ALTER TABLE {table} {change}")
    before = table.seen
    compacted = table.engine.compact(
        table.location, requires=before.at, partitions=None, target_bytes=2**20, run_id="c"
    )
    seen = table.seen
    assert compacted.version == seen.version == before.version + 1
    with pytest.raises(PreconditionError, match="has changed (columns|properties) of .* since its rollback"):
        restored(table, 4, "rollback-1-1-undo")
    assert table.seen.head == seen.head
    table.sql(f"ALTER TABLE {table} {back}")
    restored(table, 4, "rollback-1-1-undo")
    assert table.rows() == [1, 2, 3, 666]


def test_a_column_that_came_later_goes(table: SparkIceberg) -> None:
    table.append(1)
    table.sql(f"ALTER TABLE {table} ADD COLUMN kind STRING")
    table.sql(f"INSERT INTO {table} VALUES (666, 'x', NULL, 'k')")
    restored(table, 1)
    assert [one.path for one in table.seen.schema] == ["id", "part", "at"] and table.rows() == [1]


def test_what_the_metastore_does_not_take_changes_nothing(
    spark: SparkSession, metastore: EmbeddedMetastore
) -> None:
    table = SparkIceberg(spark, metastore.uri, "iceberg")
    table.sql(f"ALTER TABLE {table} ADD COLUMN n INT")
    table.sql(f"INSERT INTO {table} VALUES (1, 'x', NULL, 1)")
    table.sql(f"ALTER TABLE {table} ALTER COLUMN n TYPE BIGINT")
    table.sql(f"INSERT INTO {table} VALUES (666, 'x', NULL, 2)")
    before = table.seen
    with pytest.raises(PreconditionError, match="does not take the columns that version 1"):
        restored(table, 1)
    assert (table.seen.head, table.rows()) == (before.head, [1, 666])


def test_a_table_partitioned_by_a_column_of_later_is_left_as_it_is(table: SparkIceberg) -> None:
    table.append(1)
    table.sql(f"ALTER TABLE {table} ADD COLUMN kind STRING")
    table.sql(f"INSERT INTO {table} VALUES (666, 'x', NULL, 'k')")
    java = opened(table.spark, table.heads, table.location)
    java.table.updateSpec().addField("kind").commit()
    seen = table.seen
    with pytest.raises(PreconditionError, match="is partitioned by kind, a column that"):
        restored(table, 1)
    assert table.seen.head == seen.head


def test_it_is_made_on_exactly_the_head_that_was_decided_on(table: SparkIceberg) -> None:
    table.append(1)
    table.append(2)
    was = table.seen.at
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a'='b')")
    with pytest.raises(ConflictError):
        table.engine.restore(table.location, requires=was, to=1, apps=(), run_id="r")
    assert table.rows() == [1, 2]
    table.engine.fence(table.location, requires=table.seen.at, run_id="f")
    with pytest.raises(ConflictError):
        table.engine.restore(table.location, requires=was, to=1, apps=(), run_id="r")
    assert (table.rows(), table.seen.version) == ([1, 2], 3)
    assert [one.run_id for one in table.reader.newest(table.location, count=1)] == ["f"]


@pytest.mark.long
def test_deletes_that_were_bad_bring_their_rows_back(
    spark: SparkSession, metastore: EmbeddedMetastore, table: SparkIceberg
) -> None:
    made = SparkIceberg(
        spark, metastore.uri, table.catalog,
        properties="'format-version'='3', 'write.delete.mode'='merge-on-read'",
    )  # fmt: skip
    made.append(*range(10))
    made.sql(f"DELETE FROM {made} WHERE id > 4")
    restored(made, 1)
    assert made.rows() == list(range(10))
    made.append(10)
    restored(made, 3)
    made.vacuum()
    assert (made.rows(), made.missing()) == (list(range(10)), set())
