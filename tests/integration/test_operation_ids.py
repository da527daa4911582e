"""SET lakewarden.operation: the next statement is done once under that id, unless it was undone."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import Row, SparkSession

import lakewarden
from lakewarden.catalog.errors import PreconditionError, UsageError
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.upserts.operations import Once

pytestmark = pytest.mark.spark

STATEMENTS = {
    "insert": "INSERT INTO {t} SELECT k + 10, v FROM {s}",
    "insert values": "INSERT INTO {t} VALUES (7, 7)",
    "insert overwrite": "INSERT OVERWRITE {t} SELECT k, v + 1 FROM {t}",
    "update": "UPDATE {t} SET v = v + 1 WHERE k = 1",
    "update from": "UPDATE {t} AS t FROM {s} AS s SET v = t.v + s.v WHERE t.k = s.k",
    "delete": "DELETE FROM {t} WHERE k = (SELECT max(k) FROM {t})",
    "merge": "MERGE INTO {t} t USING {s} s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = t.v + s.v",
    "upsert": "UPSERT INTO {t} (k, v) ON (k) SELECT k, v + 1 FROM {t}",
    "on conflict": "INSERT INTO {t} (k, v) VALUES (1, 5), (8, 8) ON CONFLICT (k) DO UPDATE SET v = excluded.v + {t}.v",
}


@dataclass
class Table:
    lw: Attached
    spark: SparkSession
    place: Path

    def run(self, statement: str, operation: str = "") -> Row:
        if operation:
            self.lw.sql(f"SET lakewarden.operation = {operation}")
        (row,) = self.lw.sql(statement.format(t="ids.t", s="ids.s")).collect()
        assert isinstance(row, Row)
        return row

    def rows(self) -> list[tuple[int, int]]:
        rows = DeltaTable(self.place).to_pyarrow_table().to_pylist()
        return sorted((row["k"], row["v"]) for row in rows)

    def version(self) -> int:
        return DeltaTable(self.place).version()


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    folder = tmp_path_factory.mktemp("ids")
    initialise(open_services(home=folder / "home"), real_user())
    spark.sql("CREATE DATABASE ids")
    for name in ("t", "s"):
        fill(folder / name)
        spark.sql(f"CREATE TABLE ids.{name} USING delta LOCATION '{folder / name}'")
    with lakewarden.attach(spark, home=folder / "home") as lw:
        yield Table(lw, spark, folder / "t")
    spark.sql("DROP DATABASE ids CASCADE")


@pytest.fixture(autouse=True)
def as_before(table: Table) -> Iterator[None]:
    fill(table.place)
    yield
    table.spark.conf.unset("lakewarden.operation")


def fill(place: Path) -> None:
    columns = {"k": pa.array([1, 2], pa.int32()), "v": pa.array([10, 20], pa.int32())}
    write_deltalake(place, pa.table(columns), mode="overwrite")


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_repeated_statement_is_done_once_and_says_so(table: Table, name: str) -> None:
    first = table.run(STATEMENTS[name], f"once {name}")
    assert (first["operation"], first["done_before"]) == (f"once {name}", False)
    assert first["num_affected_rows"] > 0 and first["version"] == table.version()
    rows = table.rows()
    again = table.run(STATEMENTS[name] + ";", f"'once {name}'")
    assert (again["operation"], again["done_before"]) == (f"once {name}", True)
    assert (again["num_affected_rows"], again["version"]) == (0, None)
    assert (table.rows(), table.version()) == (rows, first["version"])


def test_the_id_is_for_one_statement(table: Table) -> None:
    assert table.run(STATEMENTS["update"], "alone")["done_before"] is False
    assert "done_before" not in table.run(STATEMENTS["update"])
    assert table.rows()[0] == (1, 12)
    table.lw.sql("SET lakewarden.operation = later")
    table.lw.sql("SELECT count(*) FROM ids.t").collect()
    assert table.run("UPDATE ids.t SET v = 0 WHERE k = 1")["operation"] == "later"


def test_a_statement_that_failed_was_not_done_and_has_used_up_its_id(table: Table) -> None:
    with pytest.raises(PreconditionError):
        table.run(
            "UPDATE {t} AS t FROM (VALUES (1, 1), (1, 2)) AS s(k, v) SET v = s.v WHERE t.k = s.k", "failed"
        )
    assert table.spark.conf.get("lakewarden.operation", None) is None
    assert table.run(STATEMENTS["update"], "failed")["done_before"] is False


def test_another_statement_under_the_same_id_is_an_error(table: Table) -> None:
    table.run(STATEMENTS["update"], "taken")
    rows = table.rows()
    with pytest.raises(
        PreconditionError, match="Another statement was done on this table as operation taken"
    ):
        table.run("UPDATE {t} SET v = v + 2 WHERE k = 1", "taken")
    assert table.rows() == rows


def test_what_was_undone_is_done_again_also_by_another_statement(table: Table) -> None:
    before = table.version()
    for value in (1, 1, 2):
        done = table.run(f"UPDATE {{t}} SET v = v + {value} WHERE k = 1", "undone")
        assert done["done_before"] is False
        assert table.rows()[0] == (1, 10 + value)
        table.spark.sql(f"RESTORE TABLE ids.t TO VERSION AS OF {before}")
        assert table.rows()[0] == (1, 10)


def test_what_found_nothing_to_change_is_not_taken_for_done(table: Table) -> None:
    statement = "DELETE FROM {t} WHERE k = 99"
    assert table.run(statement, "nothing")["done_before"] is False
    write_deltalake(
        table.place,
        pa.table({"k": pa.array([99], pa.int32()), "v": pa.array([1], pa.int32())}),
        mode="append",
    )
    assert table.run(statement, "nothing")["done_before"] is False
    assert (99, 1) not in table.rows()
    assert table.run(statement, "nothing")["done_before"] is True


def test_two_sessions_with_one_id_do_it_once(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other session is quicker, after this one has looked."""
    look, others = Once.head, list[Row]()

    def head(once: Once) -> int:
        version = look(once)
        if not others:
            others.append(Row())  # the other one looks, too
            others.append(table.run(STATEMENTS["update"], "shared"))
        return version

    monkeypatch.setattr(Once, "head", head)
    assert table.run(STATEMENTS["update"], "shared")["done_before"] is True
    assert others[1]["done_before"] is False
    assert table.rows()[0] == (1, 11)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TABLE ids.made USING delta AS SELECT * FROM {t}", "makes a table takes no operation id"),
        ("INSERT INTO ids.plain SELECT k FROM {t}", "Only what writes a Delta table takes an operation id"),
        ("CREATE OR REPLACE TABLE {s} USING delta AS SELECT 1 AS k, 2 AS v", "makes a table takes no"),
        ("DELETE t, s FROM {t} t JOIN {s} s ON t.k = s.k", "several tables takes no operation id"),
    ],
)
def test_what_takes_no_id_is_refused(table: Table, statement: str, said: str) -> None:
    table.spark.sql("CREATE TABLE IF NOT EXISTS ids.plain (k INT) USING parquet")
    with pytest.raises(UsageError, match=said):
        table.run(statement, "refused")
    assert table.spark.conf.get("lakewarden.operation", None) is None
    assert table.spark.table("ids.plain").count() == 0
    assert len(table.rows()) == 2
