"""Changes of Iceberg tables that are partitioned by buckets: joined one by one where Spark can, and right anyway."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.session.attached import Attached
from support.builders.bucketed_lakes import executed
from support.builders.spark_iceberg import SparkIceberg
from support.cases import mostly_long

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
NEW = "UPDATE {t} AS t SET part = s.part FROM {s} AS s WHERE t.id = s.id"
MERGED = (
    "MERGE INTO {t} AS t USING {s} AS s ON t.id = s.id WHEN MATCHED AND s.id % 3 = 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET part = s.part WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, s.part)"
)
GONE = "DELETE FROM {t} AS t USING {s} AS s WHERE t.id = s.id"
NONE_MOVES = "The {count} buckets of both tables are joined one by one: no row is moved."
SOME_MOVE = "Its buckets are of no use to this statement: rows are moved between tasks."


@dataclass
class Shop:
    """A session, and tables with the ids 0 to 39, and the even ones from 20 to 58."""

    spark: SparkSession
    lw: Attached
    uri: str

    def table(self, rows: str, buckets: int | None, mode: str, version: int) -> SparkIceberg:
        modes = ", ".join(f"'write.{one}.mode'='{mode}'" for one in ("delete", "update", "merge"))
        table = SparkIceberg(
            self.spark,
            self.uri,
            "iceberg",
            partitioned_by="" if buckets is None else f"bucket({buckets}, id)",
            properties=f"'format-version'='{version}', {modes}",
        )
        self.spark.sql(f"INSERT INTO {table} SELECT id, {rows}")
        return table

    def pair(
        self, mode: str, version: int = 2, *, counts: tuple[int | None, int | None] = (4, 4)
    ) -> dict[str, SparkIceberg]:
        return {
            "t": self.table("'old', NULL FROM range(40)", counts[0], mode, version),
            "s": self.table("concat('new', id), NULL FROM range(20, 60, 2)", counts[1], mode, version),
        }

    def exchanges(self, text: str) -> int:
        """How often rows were moved while a statement ran; plans of subqueries, which ask which files to read, are left
        out."""
        seen = {number for number, _ in executed(self.spark)}
        self.lw.sql(text)
        ran = [told for number, told in executed(self.spark) if number not in seen]
        assert any("Join" in told for told in ran)
        plans = [
            told.partition("== Initial Plan ==")[0].partition("===== Subqueries =====")[0] for told in ran
        ]
        lines = [line.strip(" :+-*") for told in plans for line in told.splitlines()]
        return sum(line.startswith("Exchange") for line in lines)

    def told(self, text: str) -> str:
        return " ".join(row[-1] or "" for row in self.lw.sql(f"EXPLAIN GOVERNED {text}").collect())


SETTINGS = {
    "spark.sql.adaptive.enabled": "true",  # as the product's sessions have it
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


@pytest.fixture
def shop(spark: SparkSession, metastore: EmbeddedMetastore, lw: Attached) -> Iterator[Shop]:
    before = {key: spark.conf.get(key) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield Shop(spark, lw, metastore.uri)
    for key, old in before.items():
        spark.conf.set(key, str(old))


def rows_after(text: str) -> list[tuple[int, str]]:
    """What the table holds then, starting from `Shop.pair`."""
    old, new = dict.fromkeys(range(40), "old"), {i: f"new{i}" for i in range(20, 60, 2)}
    if text is GONE:
        return sorted((i, part) for i, part in old.items() if i not in new)
    matched = {i: part for i, part in new.items() if i in old or text is MERGED}
    gone = {i for i in old if i in new and i % 3 == 0} if text is MERGED else set()
    return sorted((i, part) for i, part in (old | matched).items() if i not in gone)


@pytest.mark.parametrize(
    ("mode", "version"),
    mostly_long([("merge-on-read", 2), ("merge-on-read", 3), ("copy-on-write", 2)], [("merge-on-read", 2)]),
)
@pytest.mark.parametrize("text", mostly_long([NEW, MERGED, GONE], [MERGED]))
def test_tables_in_buckets_alike_are_joined_without_moving_a_row(
    shop: Shop, text: str, mode: str, version: int
) -> None:
    pair = shop.pair(mode, version)
    statement = text.format(**pair)
    assert NONE_MOVES.format(count=4) in shop.told(statement)
    before = {row.key: row.value for row in shop.spark.sql("SET").collect()}
    assert shop.exchanges(statement) == 0
    assert {row.key: row.value for row in shop.spark.sql("SET").collect()} == before, (
        "for the statement alone"
    )
    table = pair["t"]
    assert sorted(table.sql(f"SELECT id, part FROM {table}")) == rows_after(text)
    newest = f"SELECT max(sequence_number) FROM {table}.entries"
    written = table.sql(
        f"SELECT data_file.partition, count(*) FROM {table}.entries "
        f"WHERE status = 1 AND data_file.content = 0 AND sequence_number = ({newest}) GROUP BY 1"
    )
    assert all(count == 1 for _, count in written), "each task wrote one bucket"


@pytest.mark.parametrize(
    "named",
    mostly_long(["4 and 8", "8 and 4", "4 and none", "4 and 3", "none and 4"], ["8 and 4", "4 and 3"]),
)
def test_other_buckets_give_the_same_rows(shop: Shop, named: str) -> None:
    first, second = (None if one == "none" else int(one) for one in named.split(" and "))
    counts = (first, second)
    pair = shop.pair("merge-on-read", counts=counts)
    statement = MERGED.format(**pair)
    divides = None not in counts and counts != (4, 3)
    told = shop.told(statement)
    assert (NONE_MOVES.format(count=counts[0]) in told) is divides
    assert (SOME_MOVE in told) is (not divides and counts[0] is not None)
    assert (shop.exchanges(statement) == 0) is divides
    assert sorted(pair["t"].sql(f"SELECT id, part FROM {pair['t']}")) == rows_after(MERGED)


def test_where_its_owner_says_where_rows_go_they_go_there(shop: Shop) -> None:
    pair = shop.pair("merge-on-read")
    pair["t"].sql(f"ALTER TABLE {pair['t']} SET TBLPROPERTIES ('write.merge.distribution-mode'='hash')")
    assert SOME_MOVE in shop.told(MERGED.format(**pair))


def test_a_small_source_is_sent_to_every_task_and_changes_of_a_table_are_no_table_in_buckets(
    shop: Shop,
) -> None:
    pair = shop.pair("merge-on-read")
    changes = f"{pair['s']}.changes"
    matched = "ON t.id = s.id WHEN MATCHED THEN UPDATE SET part = s.part"
    statement = f"MERGE INTO {pair['t']} AS t USING {changes} AS s {matched}"
    assert SOME_MOVE in shop.told(statement)
    shop.lw.sql(statement)
    assert sorted(pair["t"].sql(f"SELECT id, part FROM {pair['t']}")) == rows_after(NEW)
    shop.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10MB")
    assert SOME_MOVE in shop.told(NEW.format(**pair))
