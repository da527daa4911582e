"""The gateway with real clients (PyHive, beeline, SQLAlchemy) and a Spark of its own."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import psutil
import pytest
import sqlalchemy as sa
from deltalake import DeltaTable
from pyhive import hive
from pyhive.exc import OperationalError
from TCLIService.ttypes import TOperationState

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.registry.register import register
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.client.execution import Cancelled, execute
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.engines.spark.java import MODULE_OPENS, java_command, spark_jars
from support.builders.callers import actor
from support.reference.page_blocks import code
from support.servers.gateway import RunningGateway, running_gateway

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    home = tmp_path_factory.mktemp("home")
    services = open_services(home=home)
    initialise(services, real_user())
    settings = {
        "spark.master": "local[2]",
        "spark.conf.spark.sql.warehouse.dir": (home / "warehouse").as_uri(),
        "spark.conf.spark.sql.shuffle.partitions": "2",
        "gateway.result_memory": "64 KiB",
        "gateway.result_bytes": "4 MiB",
    }
    with running_gateway(home, settings) as running:
        yield running


@pytest.fixture(scope="module")
def cursor(gateway: RunningGateway) -> Iterator[Any]:
    with gateway.connect() as connection, connection.cursor() as cursor:
        yield cursor


@pytest.fixture(scope="module")
def engine(gateway: RunningGateway) -> Iterator[sa.Engine]:
    engine = sa.create_engine(f"lakewarden+pyhive://127.0.0.1:{gateway.port}/default")
    yield engine
    engine.dispose()


def names(cursor: Any) -> list[str]:
    return [column[0] for column in cursor.description]


def test_system_tables_are_answered_without_spark(gateway: RunningGateway) -> None:
    rows = gateway.rows("SELECT name, state FROM lakewarden.tables ORDER BY row", username="mallory")
    assert rows[0] == ("lakewarden.tables", "active")
    assert len(rows) == 7
    assert "Spark has started" not in gateway.log()


def test_the_pages_lines_for_pyhive_change_a_delta_table_and_it_is_recorded_who_did_it(
    gateway: RunningGateway, cursor: Any
) -> None:
    for statement in (
        "CREATE TABLE t (k INT, a INT) USING delta",
        "CREATE TABLE s (k INT, b INT) USING delta",
        "INSERT INTO t VALUES (1, 10), (2, 20)",
        "INSERT INTO s VALUES (2, 99)",
    ):
        cursor.execute(statement)
    lines: dict[str, Any] = {"token": "of nobody: this gateway asks for none"}
    exec(code("gateway", "python")[0].replace("10001", str(gateway.port)), lines)  # noqa: S102  # the page's
    (changed,) = lines["cursor"].fetchall()
    assert changed[names(lines["cursor"]).index("num_affected_rows")] == 1
    lines["connection"].close()
    assert sorted(gateway.rows("SELECT k, a FROM t", username="mallory")) == [(1, 10), (2, 99)]
    reader = DeltaReader(open_services(home=gateway.home).storage)
    *_, last = reader.commits((gateway.home / "warehouse" / "t").as_uri(), after=-1)
    assert last.lineage is not None
    assert last.lineage.user == real_user()
    assert [one.location.rpartition("/")[2] for one in last.lineage.inputs] == ["s"]


def test_every_type_arrives_as_what_it_is(cursor: Any) -> None:
    cursor.execute(
        "SELECT true AS b, CAST(1 AS TINYINT) AS ti, CAST(2 AS SMALLINT) AS si, 3 AS i, 4L "
        "AS l, CAST(0.1 AS FLOAT) AS f, 0.25D AS d, 1.50BD AS de, 'ä' AS s, X'FF00' AS bin, DATE'2020-02-03' "
        "AS da, TIMESTAMP'2020-02-03 04:05:06.7' AS ts, array(1, null) AS arr, map('a', 1) AS m,"
        " named_struct('x', 1, 'y', CAST(NULL AS STRING)) AS st, CAST(NULL AS INT) "
        "AS n, INTERVAL '1' DAY AS iv"
    )
    assert cursor.fetchall() == [
        (
            True, 1, 2, 3, 4, 0.1, 0.25, Decimal("1.50"), "ä", b"\xff\x00", "2020-02-03",
            datetime.fromisoformat("2020-02-03 04:05:06.7"), "[1,null]", '{"a":1}', '{"x":1,"y":null}', None,
            "INTERVAL '1' DAY",
        )
    ]  # fmt: skip
    types = [column[1].removesuffix("_TYPE") for column in cursor.description]
    assert types == [
        "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "BINARY",
        "DATE", "TIMESTAMP", "ARRAY", "MAP", "STRUCT", "INT", "STRING",
    ]  # fmt: skip


def test_a_result_larger_than_memory_is_paged_in_order_and_leaves_no_file(gateway: RunningGateway) -> None:
    with gateway.connect() as connection, connection.cursor(arraysize=999) as cursor:
        cursor.execute("SELECT id, IF(id % 7 = 0, NULL, concat('v', id)) FROM range(25000) ORDER BY id")
        files = list((gateway.home / "gateway").iterdir())
        assert cursor.fetchall() == [(n, None if n % 7 == 0 else f"v{n}") for n in range(25_000)]
    assert len(files) == 1
    assert list((gateway.home / "gateway").iterdir()) == []


def test_a_result_beyond_the_limit_is_refused_with_what_to_do(cursor: Any) -> None:
    with pytest.raises(OperationalError, match=r"larger than 4 MiB.*gateway\.result_bytes"):
        cursor.execute("SELECT repeat('x', 1000) FROM range(10000)")
    cursor.execute("SELECT 1")
    assert cursor.fetchall() == [(1,)]


def test_settings_databases_and_temporary_views_are_each_connections_own(gateway: RunningGateway) -> None:
    with gateway.connect() as one, gateway.connect() as two:
        mine, yours = one.cursor(), two.cursor()
        mine.execute("CREATE DATABASE IF NOT EXISTS own")
        mine.execute("USE own")
        mine.execute("CREATE TEMPORARY VIEW v AS SELECT 7 AS x")
        mine.execute("SET spark.sql.session.timeZone = Asia/Tokyo")
        mine.execute("SELECT x, current_database(), TIMESTAMP'2020-01-01 00:00:00Z' FROM v")
        assert mine.fetchall() == [(7, "own", datetime.fromisoformat("2020-01-01 09:00"))]
        with pytest.raises(OperationalError, match="own.v is not a managed table"):
            mine.execute("ROLLBACK TABLE v TO VERSION 0")
        yours.execute("SELECT current_database(), TIMESTAMP'2020-01-01 00:00:00Z'")
        assert yours.fetchall() == [("default", datetime.fromisoformat("2020-01-01"))]
        with pytest.raises(OperationalError, match="TABLE_OR_VIEW_NOT_FOUND"):
            yours.execute("SELECT * FROM v")


@pytest.mark.long
def test_an_operation_id_outlives_a_use_that_fails_and_is_for_one_statement(
    gateway: RunningGateway, cursor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        monkeypatch.context() as patch
    ):  # drivers of JDBC say it only as they open the session, PyHive afterwards
        patch.setattr(hive.Cursor, "execute", lambda self, text: None)
        opened = gateway.connect(configuration={"use:database": "later"})
    with opened as connection, connection.cursor() as late:
        late.execute("SET lakewarden.operation = kept")
        with pytest.raises(OperationalError, match="later"):
            late.execute("INSERT INTO later.t VALUES (1)")
        cursor.execute("CREATE DATABASE later")
        cursor.execute("CREATE TABLE later.t (k INT) USING delta")
        for told in (True, False):
            late.execute("INSERT INTO later.t VALUES (1)")
            assert ("operation" in names(late)) is told
    cursor.execute("DROP DATABASE later CASCADE")


def test_an_operation_id_that_a_driver_opens_its_session_with_is_for_one_statement(
    gateway: RunningGateway, cursor: Any
) -> None:
    cursor.execute("CREATE TABLE opened (k INT) USING delta")
    given = {"set:hiveconf:lakewarden.operation": "opened"}
    for done_before in (False, True):
        with gateway.connect(configuration=given) as connection, connection.cursor() as own:
            own.execute("INSERT INTO opened VALUES (1)")
            assert own.fetchall()[0][names(own).index("done_before")] is done_before
    cursor.execute("DROP TABLE opened")


def test_an_error_is_sparks_sentence_and_no_java_stack(cursor: Any) -> None:
    with pytest.raises(OperationalError) as caught:
        cursor.execute("SELECT nonsense FROM range(1)")
    assert "UNRESOLVED_COLUMN" in str(caught.value)
    assert "org.apache" not in str(caught.value)
    with pytest.raises(OperationalError) as caught:
        cursor.execute("SELECT 1 / 0 FROM range(1)")
    assert "DIVIDE_BY_ZERO" in str(caught.value)
    assert "\\tat " not in str(caught.value)
    with pytest.raises(OperationalError, match=r"Did you mean SHOW MANAGED TABLES\?"):
        cursor.execute("SHOW MANAGD TABLES")


def test_a_statement_that_runs_is_cancelled_and_the_next_one_works(gateway: RunningGateway) -> None:
    with gateway.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM range(100000000000) WHERE sqrt(id) < 0", async_=True)
        assert cursor.poll().operationState == TOperationState.RUNNING_STATE
        cursor.cancel()
        assert cursor.poll().operationState == TOperationState.CANCELED_STATE
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


def test_who_waits_is_told_how_far_a_statement_is(gateway: RunningGateway) -> None:
    with gateway.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM range(0, 100000000000, 1, 8) WHERE sqrt(id) < 0", async_=True)
        told = cursor.poll().progressUpdateResponse
        while not any("RUNNING" in row for row in told.rows):  # a stage is begun before its first task is
            told = cursor.poll().progressUpdateResponse
        cursor.cancel()
    stage, *later = [dict(zip(told.headerNames, row, strict=True)) for row in told.rows]
    assert all(one["STATUS"] == "PENDING" for one in later)  # without adaptive execution all are known
    assert (stage["STATUS"], stage["TOTAL"], stage["COMPLETED"]) == ("RUNNING", "8", "0")
    assert int(stage["RUNNING"]) + int(stage["PENDING"]) == 8
    assert told.progressedPercentage == 0.0
    with gateway.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM range(10)", async_=True)
        while (answer := cursor.poll()).operationState != TOperationState.FINISHED_STATE:
            assert answer.progressUpdateResponse.progressedPercentage <= 1
        assert answer.progressUpdateResponse.progressedPercentage == 1.0


def test_a_drivers_primary_keys_are_those_that_a_table_names(gateway: RunningGateway, cursor: Any) -> None:
    cursor.execute(
        "CREATE TABLE keyed (a INT, b INT, c INT) USING delta TBLPROPERTIES ('lakewarden.keys' = 'b,a')"
    )
    cursor.execute("CREATE TABLE keyless (a INT) USING delta")
    assert gateway.primary_keys("default", "keyed") == [("keyed", "b", 1), ("keyed", "a", 2)]
    assert gateway.primary_keys(None, "keyed") == [("keyed", "b", 1), ("keyed", "a", 2)]
    assert gateway.primary_keys("default", "keyless") == gateway.primary_keys("default", "nowhere") == []


def test_who_stops_waiting_stops_the_statement(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_: float) -> None:
        raise KeyboardInterrupt

    states = []
    poll = hive.Cursor.poll
    with gateway.connect() as connection:
        monkeypatch.setattr(hive.Cursor, "close", lambda cursor: states.append(poll(cursor).operationState))
        monkeypatch.setattr("lakewarden.daemon.client.execution.time.sleep", stopped)
        with pytest.raises(Cancelled, match="Cancelled"):
            execute(connection, "SELECT count(*) FROM range(100000000000) WHERE sqrt(id) < 0")
        assert states == [TOperationState.CANCELED_STATE]


@pytest.fixture(scope="module")
def pair(gateway: RunningGateway, cursor: Any) -> tuple[str, str]:
    """Two managed tables of two rows each, by their locations."""
    services, places = open_services(home=gateway.home), []
    for name in ("one", "two"):
        place = str(gateway.home / "pair" / name)
        cursor.execute(
            f"CREATE TABLE {name} USING delta LOCATION '{place}' AS SELECT id AS k, 0 AS v FROM range(2)"
        )
        register(services.registry, place, actor=actor(real_user(), admin=True), name=f"default.{name}")
        places.append(place)
    return places[0], places[1]


def values(place: str) -> list[int]:
    return sorted(row["v"] for row in DeltaTable(place).to_pyarrow_table().to_pylist())


@pytest.mark.long
def test_several_tables_are_changed_by_one_statement_of_mysql(
    gateway: RunningGateway, pair: tuple[str, str]
) -> None:
    with gateway.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET lakewarden.dialect = mysql")
        cursor.execute("UPDATE one JOIN two ON one.k = two.k SET one.v = 1, two.v = 2 WHERE one.k = 1")
        rows = [dict(zip(names(cursor), row, strict=True)) for row in cursor.fetchall()]
        assert [(row["table_name"], row["num_updated_rows"]) for row in rows] == [("one", 1), ("two", 1)]
        assert [values(place) for place in pair] == [[0, 1], [0, 2]]
        cursor.execute("UPDATE one JOIN two ON one.k = two.k SET one.v = 0, two.v = 0")
    assert [values(place) for place in pair] == [[0, 0], [0, 0]]


def test_a_cancel_between_two_tables_takes_the_first_one_back_and_says_so(
    gateway: RunningGateway, pair: tuple[str, str]
) -> None:
    head, endless = (
        DeltaTable(pair[0]).version(),
        "SELECT count(*) AS c FROM range(100000000000) WHERE sqrt(id) < 0",
    )
    with gateway.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET lakewarden.dialect = mysql")
        cursor.execute(f"CREATE TEMPORARY VIEW slow AS {endless}")
        cursor.execute(
            "UPDATE one JOIN two ON one.k = two.k SET one.v = 7, two.v = (SELECT max(c) FROM slow)",
            async_=True,
        )
        while DeltaTable(pair[0]).version() == head:
            assert cursor.poll().operationState == TOperationState.RUNNING_STATE
        cursor.cancel()
        while (told := cursor.poll()).operationCompleted is None:
            assert told.operationState == TOperationState.CANCELED_STATE
        assert told.errorMessage == "The statement was cancelled: all of its tables are as they were."
        assert [values(place) for place in pair] == [[0, 0], [0, 0]]
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


BEELINE = (
    "!tables",
    "!columns t",
    (
        "SELECT id, CAST(id AS DECIMAL(5,2)) AS d, DATE'2020-01-02' AS day, array(id) "
        "AS a, CAST(NULL AS INT) AS n FROM range(3)"
    ),
    "UPDATE t FROM s SET a = s.b WHERE t.k = s.k",
    "SELECT name FROM lakewarden.tables WHERE row = 0",
)


def test_beeline_connects_reads_and_writes(gateway: RunningGateway) -> None:
    (line,) = (block for block in code("gateway", "console") if block.startswith("$ beeline "))
    command = (
        str(java_command()), *MODULE_OPENS, "-cp", f"{spark_jars()}/*", "org.apache.hive.beeline.BeeLine",
        "--outputformat=csv2", "--showHeader=false",
        *shlex.split(line.removeprefix("$ beeline ").replace("10001", str(gateway.port))),
    )  # fmt: skip
    script = ";\n".join(BEELINE).replace("!tables;", "!tables").replace("!columns t;", "!columns t") + ";\n"
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout + done.stderr
    assert ",default,t,TABLE," in said, said
    assert ",default,t,k,4,INT," in said, said
    assert "2,2.00,2020-01-02,[2]," in said, said
    assert "lakewarden.tables" in said, said


@pytest.mark.long
def test_sqlalchemy_makes_finds_and_reflects_tables(engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    flights = sa.Table(
        "flights", metadata,
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("carrier", sa.String(2)),
        sa.Column("fare", sa.Numeric(8, 2)), sa.Column("day", sa.Date), sa.Column("at", sa.DateTime),
        sa.Column("ok", sa.Boolean), sa.Column("raw", sa.LargeBinary), sa.Column("share", sa.Double),
    )  # fmt: skip
    metadata.create_all(engine)
    rows = [
        {
            "id": number, "carrier": "O'x%\\", "fare": Decimal("12.50"), "day": date(2020, 1, 2),
            "at": datetime.fromisoformat("2020-01-02 03:04:05"), "ok": True, "raw": b"\x00'", "share": 0.1,
        }
        for number in (1, 2)
    ]  # fmt: skip
    with engine.connect() as connection:
        connection.execute(flights.insert(), rows)
        found = connection.execute(
            sa.select(flights).where(flights.c.carrier == "O'x%\\").order_by(flights.c.id)
        )
        assert [dict(row) for row in found.mappings()] == rows
        connection.execute(sa.text("CREATE VIEW few AS SELECT id FROM flights WHERE id = :n"), {"n": 1})
    inspector = sa.inspect(engine)
    assert inspector.has_table("flights")
    assert not inspector.has_table("fl_ghts")
    assert "flights" in inspector.get_table_names()
    assert inspector.get_view_names() == ["few"]
    assert "lakewarden" in inspector.get_schema_names()
    reflected = sa.Table("flights", sa.MetaData(), autoload_with=engine)
    assert {column.name: str(column.type) for column in reflected.columns} == {
        "id": "BIGINT", "carrier": "VARCHAR", "fare": "NUMERIC(8, 2)", "day": "DATE", "at": "DATETIME",
        "ok": "BOOLEAN", "raw": "BLOB", "share": "DOUBLE",
    }  # fmt: skip
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.Table("nobody", sa.MetaData(), autoload_with=engine)


@pytest.mark.long
def test_pandas_writes_a_frame_and_reads_it(engine: sa.Engine) -> None:
    frame = pd.DataFrame({"n": range(1500), "name": [f"x{n}" for n in range(1500)], "part": 0.5})
    frame.to_sql("frames", engine, index=False)
    frame.head(1).to_sql("frames", engine, index=False, if_exists="append")
    found = pd.read_sql("SELECT n, name, part FROM frames WHERE name LIKE 'x1%' ORDER BY n", engine)
    assert len(found) == len(frame[frame["name"].str.startswith("x1")])
    assert found["part"].tolist() == [0.5] * len(found)
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM frames")).scalar_one() == 1501
        commits = connection.execute(sa.text("DESCRIBE HISTORY frames")).all()
    assert len(commits) == 4  # CREATE, two of a thousand rows and the rest, one more


def test_a_gateway_survives_the_end_of_its_spark_and_says_so(gateway: RunningGateway, cursor: Any) -> None:
    cursor.execute("CREATE TEMPORARY VIEW gone AS SELECT 1")
    (jvm,) = [one for one in psutil.Process(gateway.process.pid).children() if one.name() == "java"]
    os.kill(jvm.pid, signal.SIGKILL)
    with pytest.raises(OperationalError, match="Spark session has ended"):
        cursor.execute("SELECT * FROM gone")
    assert gateway.rows("SELECT name FROM lakewarden.tables WHERE row = 0") == [("lakewarden.tables",)]
    cursor.execute("SELECT 2")
    assert cursor.fetchall() == [(2,)]
    with pytest.raises(OperationalError, match="TABLE_OR_VIEW_NOT_FOUND"):
        cursor.execute("SELECT * FROM gone")
