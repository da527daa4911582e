"""Upserts as warehouses write them, run on Spark and on a real PostgreSQL: the same rows."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import PreconditionError, UsageError
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect
from support.builders.warehouse_upserts import COLUMNS, MERGES, REFUSED, ROWS, UPSERTS
from support.cases import mostly_long
from support.servers.mariadb import MariadbServer
from support.servers.postgres import PostgresServer
from support.two_databases.meaning import WORLD, meaning, theirs
from support.two_databases.rehearsal import World
from support.two_databases.sides import ROWS as TABLES
from support.two_databases.sides import Both, two_sides

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

SCHEMA = pa.schema([("k", pa.int32()), ("a", pa.int32()), ("s", pa.string())])


@pytest.fixture(scope="module")
def tables(
    spark: SparkSession, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    with two_sides(spark, postgres, tmp_path_factory.mktemp("upserts")) as both:
        make(both)
        yield both


def make(both: Both) -> None:
    """The table p on both sides, without rows."""
    both.connection.execute(f"CREATE TABLE p ({COLUMNS}, UNIQUE (k))".encode())
    write_deltalake(both.folder / "p", SCHEMA.empty_table())
    both.spark.sql(f"CREATE TABLE p USING delta LOCATION '{both.folder / 'p'}'")
    both.spark.sql("ALTER TABLE p SET TBLPROPERTIES ('lakewarden.keys' = 'k')")


def fill(both: Both) -> None:
    """The rows that tests begin with, and no others."""
    rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in ROWS]
    write_deltalake(both.folder / "p", pa.Table.from_pylist(rows, schema=SCHEMA), mode="overwrite")
    both.connection.execute(b"DELETE FROM p")
    with both.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO p VALUES (%s, %s, %s)", ROWS)


@pytest.fixture(scope="module")
def filled(tables: Both) -> Both:
    """p has the rows that tests begin with, in the other database."""
    fill(tables)
    return tables


@pytest.fixture
def both(tables: Both) -> Iterator[Both]:
    fill(tables)
    yield tables
    for key in ("lakewarden.dialect", "lakewarden.matches"):
        tables.spark.conf.unset(key)


def held(both: Both) -> list[tuple[object, ...]]:
    rows = DeltaTable(both.folder / "p").to_pyarrow_table().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


WITH_P = World(
    schemas={
        **WORLD.schemas,
        "p": tuple(ColumnType(name=k, type=t) for k, t in {"k": "int", "a": "int", "s": "string"}.items()),
    },
    rows={**WORLD.rows, "p": ROWS},
)


@pytest.mark.few(9)
@pytest.mark.parametrize("name", UPSERTS)
def test_an_upsert_means_what_a_warehouse_means_by_it(filled: Both, name: str) -> None:
    statement, their_words = UPSERTS[name]
    ours = meaning(filled.spark, statement, of_case(name), world=WITH_P, keys=["k"])
    assert ours.tables == theirs(filled.connection, their_words or statement, "p").tables


@pytest.mark.few(10)
@pytest.mark.parametrize("name", MERGES)
def test_a_merge_that_asks_queries_means_what_postgresql_means(tables: Both, name: str) -> None:
    ours = meaning(tables.spark, MERGES[name], of_case(name))
    assert ours == theirs(tables.connection, MERGES[name], "t")


def of_case(name: str) -> Dialect | None:
    """The dialect before the colon; lakewarden's own words have none."""
    dialect = name.partition(":")[0]
    return Dialect(dialect) if dialect in set(Dialect) else None


UPSERTED = (
    "lakewarden: UPSERT by the table's keys",
    "postgres: DO UPDATE WHERE",
    "mysql: REPLACE",
    "mysql: ON DUPLICATE KEY UPDATE",
    "teradata: found",
)
MERGED = ("postgres: WITH", "spark: SET about columns of both")
"""Of each kind one that Delta really runs, in every run; the others in the long one."""


@pytest.mark.few(2)
@pytest.mark.parametrize("name", mostly_long(UPSERTS, UPSERTED))
def test_what_a_warehouse_would_do_is_done(both: Both, name: str) -> None:
    statement, theirs = UPSERTS[name]
    both.lw.sql(statement).collect()
    both.connection.execute((theirs or statement).encode())
    assert held(both) == sorted(both.connection.execute(b"SELECT * FROM p").fetchall(), key=repr)


@pytest.mark.few(1)
@pytest.mark.parametrize("refused", mostly_long(REFUSED, [*REFUSED][:2]))
def test_what_is_refused_says_where_and_what_is_written_instead_does_the_same(
    both: Both, refused: str
) -> None:
    both.fill(TABLES)
    before = (held(both), both.ours())
    with pytest.raises(UsageError, match="Line 1, column") as caught:
        both.lw.sql(refused)
    assert caught.value.hint and (held(both), both.ours()) == before
    both.lw.sql(REFUSED[refused]).collect()
    assert (held(both), both.ours()) != before
    both.connection.execute(refused.encode())
    theirs = sorted(both.connection.execute(b"SELECT * FROM p").fetchall(), key=repr)
    assert (held(both), both.ours()) == (theirs, both.theirs())


@pytest.mark.few(1)
@pytest.mark.parametrize("name", mostly_long(MERGES, MERGED))
def test_the_queries_of_a_merge_are_answered_by_its_source(both: Both, name: str) -> None:
    both.fill(TABLES)
    if not name.startswith("spark:"):
        both.lw.sql(f"SET lakewarden.dialect = {name.partition(':')[0]}")
    (counts,) = both.lw.sql(MERGES[name]).collect()
    assert counts["num_affected_rows"] == both.connection.execute(MERGES[name].encode()).rowcount
    assert both.ours() == both.theirs()


@pytest.mark.long
@pytest.mark.mariadb
def test_mysqls_own_words_do_on_mariadb_what_they_do_here(
    spark: SparkSession, mariadb: MariadbServer, tmp_path: Path
) -> None:
    statements = [
        ours for name, (ours, _) in UPSERTS.items() if name.startswith("mysql:") and " AS new" not in ours
    ]
    done, there = [], []
    with two_sides(spark, mariadb, tmp_path) as both:
        make(both)
        for statement in statements:
            fill(both)
            both.lw.sql(statement).collect()
            done.append((statement, held(both)))
            both.connection.execute(statement.encode())
            rows = both.connection.execute(b"SELECT * FROM p").fetchall()
            there.append((statement, sorted(map(tuple, rows), key=repr)))
    assert done == there and len(done) >= 2


TWICE = "UPSERT INTO p (k, a) SELECT k, e FROM u WHERE k = 2"


def test_several_rows_with_one_key_are_an_error_and_change_nothing(both: Both) -> None:
    before = held(both)
    with pytest.raises(PreconditionError, match="Several rows of the source have one key"):
        both.lw.sql(TWICE).collect()
    with pytest.raises(PreconditionError, match="Several rows of the source have one key"):
        both.lw.sql("UPSERT INTO p (k, a) VALUES (77, 1), (77, 2)").collect()
    with pytest.raises(PreconditionError, match="Several rows of the source have one key"):
        both.lw.sql("INSERT INTO p (k, a) VALUES (77, 1), (77, 2) ON CONFLICT (k) DO NOTHING").collect()
    assert held(both) == before


@pytest.mark.few(1)
@pytest.mark.parametrize(("matches", "chosen"), [("any", 6), ("last by a", 7)])
def test_one_row_is_chosen_when_the_policy_says_how(both: Both, matches: str, chosen: int) -> None:
    both.lw.sql(f"SET lakewarden.matches = {matches}")
    both.lw.sql(TWICE).collect()
    assert [row[1] for row in held(both) if row[0] == 2] == [chosen]


def test_an_upsert_in_sql_is_one_governed_merge(both: Both) -> None:
    (counts,) = both.lw.sql("UPSERT INTO p (k, a) ON (k) SELECT k, b FROM s WHERE k < 9").collect()
    assert (counts["num_updated_rows"], counts["num_inserted_rows"]) == (2, 0)
    commit = list(both.services.readers[0].commits((both.folder / "p").as_uri(), after=-1))[-1]
    assert commit.lineage is not None and commit.lineage.operation is Operation.MERGE
    assert [one.location.rpartition("/")[2] for one in commit.lineage.inputs] == ["s"]


def test_a_session_explains_an_upsert_by_the_tables_own_keys(both: Both) -> None:
    (step,) = both.lw.sql("EXPLAIN GOVERNED UPSERT INTO p (k, a) VALUES (1, 2)").collect()
    assert (
        "ON `p`.`k` = `excluded`.`k` WHEN MATCHED THEN UPDATE SET `a` = `excluded`.`a`" in step["statement"]
    )
    both.spark.sql("CREATE TABLE IF NOT EXISTS keyless (k INT) USING delta")
    with pytest.raises(UsageError, match="Nobody says which columns are the keys of keyless"):
        both.lw.sql("EXPLAIN GOVERNED UPSERT INTO keyless VALUES (1)")
