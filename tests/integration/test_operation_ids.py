"""SET lakewarden.operation: the next statement is done once under that id, unless it was undone."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import Row, SparkSession

import lakewarden
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError, PreconditionError, UsageError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.lineage_record import STATEMENT
from lakewarden.catalog.model.rows import RollbackStep
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.rollback.execute.commit_records import removal_record
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.delta.operation_ids import Once
from lakewarden.jobs.session.frames import taken_setting
from support.cases import mostly_long
from support.histories.operation_lives import OperationLife, clean_before

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
    "on conflict": "INSERT INTO {t} (k, v) VALUES (1, 5), (8, 8) ON CONFLICT (k) DO UPDATE "
    "SET v = excluded.v + {t}.v",
}


@dataclass
class Table:
    lw: Attached
    spark: SparkSession
    place: Path
    home: Path

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
        yield Table(lw, spark, folder / "t", folder / "home")
    spark.sql("DROP DATABASE ids CASCADE")


@pytest.fixture(autouse=True)
def as_before(table: Table) -> Iterator[None]:
    fill(table.place)
    yield
    table.spark.conf.unset("lakewarden.operation")


def fill(place: Path) -> None:
    columns = {"k": pa.array([1, 2], pa.int32()), "v": pa.array([10, 20], pa.int32())}
    write_deltalake(place, pa.table(columns), mode="overwrite")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", mostly_long(STATEMENTS, ["insert", "update from", "on conflict"]))
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
    for value, undo in ((1, by_spark), (1, by_delta_rs), (2, by_delta_rs)):
        done = table.run(f"UPDATE {{t}} SET v = v + {value} WHERE k = 1", "undone")
        assert done["done_before"] is False
        assert table.rows()[0] == (1, 10 + value)
        undo(table, before)
        assert table.rows()[0] == (1, 10)


def by_spark(table: Table, version: int) -> None:
    """Somebody's RESTORE."""
    table.spark.sql(f"RESTORE TABLE ids.t TO VERSION AS OF {version}")


def by_delta_rs(table: Table, version: int) -> None:
    """The same, in milliseconds: Spark's takes seconds."""
    DeltaTable(table.place).restore(version)


@pytest.mark.long
def test_what_a_later_restore_brings_back_was_done(table: Table) -> None:
    before = table.version()
    done = table.run(STATEMENTS["insert values"], "back")["version"]
    by_delta_rs(table, before)
    assert table.run("DELETE FROM {t} WHERE k = 99", "back")["done_before"] is False  # nothing to change
    by_spark(table, done)
    assert table.run(STATEMENTS["insert values"], "back")["done_before"] is True
    assert table.rows() == [(1, 10), (2, 20), (7, 7)]


@pytest.mark.long
def test_what_a_rollback_took_the_files_of_is_done_again(table: Table) -> None:
    before = table.version()
    for value in (7, 8):
        table.run(f"INSERT INTO {{t}} VALUES ({value}, {value})", f"files {value}")
    step = TableStep(
        table_id="t",
        name="ids.t",
        location=canonical(str(table.place)),
        from_version=before + 2,
        to_version=before,
        kind=RollbackStep.REMOVE_FILES,
        versions=(before + 1,),
    )
    record = removal_record(step, [before + 1, before + 2], mark="rollback", user="ana")
    engine = DeltaEngine(lambda: table.spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    engine.remove_files(step.location, requires=Head(before + 2), versions=step.versions, record=record)
    assert table.rows() == [(1, 10), (2, 20), (8, 8)]
    assert table.run("INSERT INTO {t} VALUES (8, 8)", "files 8")["done_before"] is True
    assert table.run("INSERT INTO {t} VALUES (7, 7)", "files 7")["done_before"] is False
    assert table.run("INSERT INTO {t} VALUES (7, 7)", "files 7")["done_before"] is True
    assert table.rows() == [(1, 10), (2, 20), (7, 7), (8, 8)]


def long_log(table: Table, name: str, *, engine: bool = True) -> Table:
    """A table of its own, eleven commits long."""
    table.spark.sql(
        f"CREATE TABLE ids.{name} (k INT, v INT) USING delta {'' if engine else 'CLUSTER BY (k)'}"
    )
    table.spark.sql(f"INSERT INTO ids.{name} VALUES (1, 10), (2, 20)")
    (location,) = table.spark.sql(f"DESCRIBE DETAIL ids.{name}").select("location").collect()
    made = replace(table, place=Path(location[0].removeprefix("file:")))
    for _ in range(9):
        if engine:
            DeltaTable(made.place).update({"v": "v + 1"})
        else:
            table.spark.sql(f"UPDATE ids.{name} SET v = v + 1")
    return made


def roll_back(table: Table, operation: str, *, to: int, mark: str = "rollback-1") -> None:
    """As a rollback does: contents, and then numbers where the table's features leave that to Spark."""
    engine = DeltaEngine(lambda: table.spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    location = canonical(str(table.place))
    app = (f"{STATEMENT}{operation}",)
    restored = engine.restore(location, requires=Head(table.version()), to=to, run_id=mark, apps=app)
    engine.begin_epoch(location, restored=restored, to=to, apps=app, run_id=mark)


@pytest.mark.long
def test_with_a_log_that_was_cleaned_up_what_a_rollback_undid_is_done_again(table: Table) -> None:
    t, insert = long_log(table, "cleaned"), "INSERT INTO ids.cleaned VALUES (7, 7)"
    clean_before(t.place, 9)
    assert t.run(insert, "load")["done_before"] is False
    roll_back(t, "load", to=10)
    assert t.run(insert, "load")["done_before"] is False
    assert t.run(insert, "load")["done_before"] is True
    t.spark.sql("RESTORE TABLE ids.cleaned TO VERSION AS OF 10")
    assert t.run(insert, "load")["done_before"] is False
    assert [row for row in t.rows() if row[0] == 7] == [(7, 7)]


@pytest.mark.long
def test_with_a_log_that_was_cleaned_up_a_restore_changes_nothing_about_what_was_done_before(
    table: Table,
) -> None:
    t = long_log(table, "kept")
    assert t.run("INSERT INTO ids.kept VALUES (7, 7)", "old")["done_before"] is False
    t.spark.sql("UPDATE ids.kept SET v = v + 1")
    clean_before(t.place, 12)
    t.spark.sql("UPDATE ids.kept SET v = v + 1")
    t.spark.sql("RESTORE TABLE ids.kept TO VERSION AS OF 12")
    rows = t.rows()
    assert t.run("INSERT INTO ids.kept VALUES (7, 7)", "old")["done_before"] is True
    assert t.rows() == rows


@pytest.mark.long
def test_the_undo_of_a_rollback_by_spark_keeps_which_statement_it_was(table: Table) -> None:
    t = long_log(table, "clustered", engine=False)
    assert t.run("INSERT INTO ids.clustered VALUES (7, 7)", "one")["done_before"] is False
    done = t.version()
    roll_back(t, "one", to=done - 1)
    roll_back(t, "one", to=done, mark="rollback-2")
    assert (7, 7) in t.rows()
    with pytest.raises(PreconditionError, match="Another statement was done"):
        t.run("INSERT INTO ids.clustered VALUES (88, 88)", "one")
    assert t.run("INSERT INTO ids.clustered VALUES (7, 7)", "one")["done_before"] is True


@pytest.mark.long
@pytest.mark.parametrize("undone", mostly_long([False, True], [False]))
def test_what_is_done_again_by_another_session_just_before_is_not_done_twice(
    table: Table, monkeypatch: pytest.MonkeyPatch, undone: bool
) -> None:
    """The other session is quicker, after this one has looked; and maybe what it did is undone at once."""
    table.run(STATEMENTS["insert values"], f"race {undone}")
    before = table.version() - 1
    by_delta_rs(table, before)
    look, others = Once.head, list[Row]()

    def head(once: Once) -> int:
        version = look(once)
        if not others:
            others.append(Row())  # the other one looks, too
            others.append(table.run(STATEMENTS["insert values"], f"race {undone}"))
            if undone:
                by_spark(table, before)
        return version

    monkeypatch.setattr(Once, "head", head)
    if undone:
        with pytest.raises(ConflictError, match="it was not done"):
            table.run(STATEMENTS["insert values"], f"race {undone}")
    else:
        assert table.run(STATEMENTS["insert values"], f"race {undone}")["done_before"] is True
    assert others[1]["done_before"] is False
    assert table.rows().count((7, 7)) == int(not undone)


def test_of_threads_that_share_a_session_one_has_its_id(table: Table) -> None:
    """The id is read and unset by one step."""
    barrier = Barrier(8)

    def take(_: int) -> str | None:
        barrier.wait()
        return taken_setting(table.spark, "lakewarden.operation")

    for _ in range(20):
        table.spark.conf.set("lakewarden.operation", "shared")
        with ThreadPoolExecutor(8) as threads:
            taken = list(threads.map(take, range(8)))
        assert sorted(taken, key=str) == [None] * 7 + ["shared"]
    assert table.spark.conf.get("lakewarden.operation", None) is None


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


@pytest.mark.long
@pytest.mark.parametrize("mine", mostly_long([3, 4], [3]))
def test_of_two_texts_under_one_id_only_the_first_is_done(
    table: Table, monkeypatch: pytest.MonkeyPatch, mine: int
) -> None:
    """The other session is quicker, after this one has looked."""
    look, others = Once.head, list[Row]()

    def head(once: Once) -> int:
        version = look(once)
        if not others:
            others.append(Row())  # the other one looks, too
            others.append(table.run(f"INSERT INTO {{t}} VALUES ({7 - mine}, 0)", f"two texts {mine}"))
        return version

    monkeypatch.setattr(Once, "head", head)
    with pytest.raises(PreconditionError, match="Another statement was done on this table"):
        table.run(f"INSERT INTO {{t}} VALUES ({mine}, 0)", f"two texts {mine}")
    assert table.rows() == sorted([(1, 10), (2, 20), (7 - mine, 0)])


@pytest.mark.long
def test_two_texts_under_one_id_that_commit_at_once_are_not_both_done(table: Table) -> None:
    def run(value: int) -> bool:
        with lakewarden.attach(table.spark.newSession(), home=table.home) as lw:
            lw.sql("SET lakewarden.operation = 'at once'")
            try:
                lw.sql(f"INSERT INTO ids.t VALUES ({value}, 0)")
            except (ConflictError, PreconditionError):
                return False
            return True

    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(run, (3, 4, 5, 6)))
    assert done.count(True) == 1
    assert table.rows() == sorted([(1, 10), (2, 20), (3 + done.index(True), 0)])


@pytest.mark.long
def test_a_number_of_an_older_build_is_told_from_another_text(table: Table) -> None:
    """It was made of the text, and nothing else in the commit spoke of that."""
    text = "INSERT INTO ids.t VALUES (7, 7)"
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") + 1
    rows = pa.table({"k": pa.array([7], pa.int32()), "v": pa.array([7], pa.int32())})
    told = CommitProperties(app_transactions=[Transaction("lakewarden-sql-old", number)])
    write_deltalake(table.place, rows, mode="append", commit_properties=told)
    assert table.run(text, "old")["done_before"] is True
    with pytest.raises(PreconditionError, match="Another statement was done"):
        table.run("INSERT INTO ids.t VALUES (8, 8)", "old")
    by_delta_rs(table, table.version() - 1)
    assert table.run("INSERT INTO ids.t VALUES (8, 8)", "old")["done_before"] is False
    assert table.rows() == [(1, 10), (2, 20), (8, 8)]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TABLE ids.made USING delta AS SELECT * FROM {t}", "makes a table takes no operation id"),
        ("INSERT INTO ids.plain SELECT k FROM {t}", "Only what writes a Delta table takes an operation id"),
        ("CREATE OR REPLACE TABLE {s} USING delta AS SELECT 1 AS k, 2 AS v", "makes a table takes no"),
        ("FROM {s} INSERT INTO {t} SELECT k, v INSERT INTO {t} SELECT v, k", "several INSERTs takes no"),
        (
            "WITH q AS (SELECT * FROM {s}) FROM q INSERT INTO {t} SELECT k, v INSERT INTO {t} SELECT v, k",
            "several INS",
        ),
        ("TRUNCATE TABLE {t}", "TRUNCATE takes no operation id"),
        ("RESTORE TABLE {t} TO VERSION AS OF 0", "RESTORE takes no operation id"),
        ("CREATE TABLE ids.cloned SHALLOW CLONE {t}", "CLONE takes no operation id"),
        (
            "EXECUTE IMMEDIATE 'INSERT INTO {t} VALUES (?, 3)' USING 3",
            "EXECUTE IMMEDIATE takes no operation id",
        ),
        ("BEGIN INSERT INTO {t} VALUES (3, 3); END", "script .* takes no operation id"),
        (
            "INSERT OVERWRITE DIRECTORY '/nowhere' USING parquet SELECT * FROM {t}",
            "DIRECTORY takes no operation id",
        ),
    ],
)
def test_what_takes_no_id_is_refused(table: Table, statement: str, said: str) -> None:
    table.spark.sql("CREATE TABLE IF NOT EXISTS ids.plain (k INT) USING parquet")
    version = table.version()
    with pytest.raises(UsageError, match=said):
        table.run(statement, "refused")
    assert table.spark.conf.get("lakewarden.operation", None) is None
    assert table.spark.table("ids.plain").count() == 0
    assert (table.rows(), table.version()) == ([(1, 10), (2, 20)], version)
    assert not table.spark.catalog.tableExists("ids.cloned")


@pytest.mark.few(1)
@pytest.mark.parametrize("taken_back", ["RESET lakewarden.operation", "SET lakewarden.operation = "])
def test_an_id_is_taken_back_by_a_reset(table: Table, taken_back: str) -> None:
    table.lw.sql("SET lakewarden.operation = later")
    table.lw.sql(taken_back)
    assert "done_before" not in table.run(STATEMENTS["update"])


@pytest.mark.long
def test_a_random_life_under_operation_ids_is_what_the_docs_promise(table: Table, tmp_path: Path) -> None:
    engine = DeltaEngine(lambda: table.spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    life = OperationLife(spark=table.spark, lw=table.lw, engine=engine, folder=tmp_path, seed=2, steps=(7, 7))
    life.play()
    assert not life.wrong
    assert life.seen["done"] >= 1
