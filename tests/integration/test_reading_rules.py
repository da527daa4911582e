"""What a reader may send to Spark, and what not, in a real session."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyspark
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.jobs.session.formats.plan_parts import QueriedTable
from lakewarden.jobs.session.judgement.listed_functions import FUNCTIONS, TABLE_FUNCTIONS
from lakewarden.jobs.session.judgement.reading_rules import Reading
from lakewarden.jobs.session.judgement.statement_kinds import StatementKind, kind_of
from lakewarden.jobs.session.plans import Plans

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def root(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in a database of its own."""
    session = spark.newSession()
    session.sql("CREATE DATABASE reading")
    session.sql("USE reading")
    session.sql("CREATE TABLE t (k INT, a INT) USING delta")
    session.sql("INSERT INTO t VALUES (1, 10)")
    session.sql("INSERT INTO t VALUES (2, 20)")
    session.sql("CREATE TABLE p USING parquet AS SELECT 7 AS x")
    session.sql("CREATE TABLE parts USING parquet PARTITIONED BY (day) AS SELECT 7 AS x, 'a' AS day")
    session.sql("CREATE VIEW v AS SELECT max(a) AS m FROM t")
    yield session
    session.sql("DROP DATABASE reading CASCADE")


def another(root: SparkSession) -> SparkSession:
    """A session beside it, in the same database."""
    session = root.newSession()
    session.sql("USE reading")
    return session


class Reader:
    """A reader's session: what is judged there is what runs. No table is a reader's own."""

    def __init__(self, spark: SparkSession, require_open: Callable[[Sequence[QueriedTable]], None]) -> None:
        self._spark, self._plans = spark, Plans(spark)
        self._judge = Reading(spark, require_open, self._require_own)

    @staticmethod
    def _require_own(source: QueriedTable) -> None:
        raise NotAllowedError(f"{source.name} is another's.")

    def run(self, text: str, meanwhile: str = "USE reading") -> DataFrame:
        """`meanwhile`: what another statement of the session does when this one is analysed."""
        session = self._spark._jsparkSession
        plan = self._plans.parsed(session, text)
        self._judge.require_said(plan)
        analysed = self._plans.analysed(session, plan)
        self._spark.sql(meanwhile)
        self._judge.require_read(plan, analysed)
        return self._plans.run(session, analysed)


@pytest.fixture(scope="module")
def reading(root: SparkSession) -> Reader:
    return Reader(another(root), lambda _: None)


READS = {
    "SELECT a FROM t ORDER BY k": [(10,), (20,)],
    "SELECT x FROM p": [(7,)],
    "SELECT m FROM v": [(20,)],
    "SELECT count(*) FROM t VERSION AS OF 1": [(1,)],
    "WITH q AS (SELECT a FROM t) SELECT (SELECT max(a) FROM q), sum(a) FROM q WHERE a IN (SELECT a FROM t)": [
        (20, 30)
    ],
    "SELECT * FROM VALUES (1), (2) AS w(n) UNION ALL SELECT id FROM range(1)": [(1,), (2,), (0,)],
    "SELECT e FROM t LATERAL VIEW explode(array(a)) AS e WHERE k = 1": [(10,)],
    "FROM t |> WHERE k = 2 |> SELECT a": [(20,)],
    "SHOW TABLES LIKE 't'": [("reading", "t", False)],
    "USE reading": [],
    "SET spark.sql.session.timeZone = UTC": [("spark.sql.session.timeZone", "UTC")],
}


@pytest.mark.parametrize("text", READS)
def test_a_reader_reads(reading: Reader, text: str) -> None:
    assert [tuple(row) for row in reading.run(text).collect()] == READS[text]


WRITES = (
    "INSERT INTO t VALUES (3, 30)",
    "WITH q AS (SELECT 3 AS k, 30 AS a) INSERT INTO t SELECT * FROM q",
    "FROM t INSERT INTO p SELECT k INSERT INTO p SELECT a",
    "INSERT OVERWRITE DIRECTORY '{}/out' USING parquet SELECT * FROM t",
    "UPDATE t SET a = 0",
    "DELETE FROM t",
    "MERGE INTO t USING p ON k = x WHEN MATCHED THEN DELETE",
    "CREATE TABLE new USING delta AS SELECT 1 AS x",
    "CREATE TEMPORARY VIEW f USING text OPTIONS (path '{}/secret')",
    "CREATE TEMPORARY VIEW f AS SELECT 1",
    "CREATE TEMPORARY FUNCTION f AS 'java.lang.Object'",
    "DROP TABLE t",
    "TRUNCATE TABLE t",
    "ALTER TABLE t SET TBLPROPERTIES ('x' = 'y')",
    "VACUUM t",
    "OPTIMIZE t",
    "CACHE TABLE t",
    "EXPLAIN SELECT 1",
    "SET",
    "SET spark.sql.runSQLOnFiles = true",
    "RESET",
    "ADD JAR '{}/x.jar'",
    "EXECUTE IMMEDIATE 'DROP TABLE t'",
    "BEGIN DROP TABLE t; END",
    "SELECT TRANSFORM(a) USING 'touch {}/touched' AS (b) FROM t",
    "SELECT * FROM (SELECT TRANSFORM(a) USING 'touch {}/touched' AS (b) FROM t)",
    (
        "WITH q AS (SELECT TRANSFORM(a) USING 'touch {}/touched' AS (b) FROM t) SELECT * FROM t "
        "WHERE a IN (SELECT b FROM q)"
    ),
    (
        "SELECT count(*) OVER w FROM t WINDOW w AS (PARTITION BY (SELECT max(a) FROM t TIMESTAMP AS OF "
        "(SELECT CAST(b AS TIMESTAMP) FROM (SELECT TRANSFORM(1) USING 'touch {}/touched' AS (b STRING)))))"
    ),
    "SELECT count(*) OVER w FROM t WINDOW w AS (PARTITION BY (SELECT max(value) FROM text.`{}/secret`))",
    "SELECT * FROM text.`{}/secret`",
    "SELECT * FROM delta.`{}/secret`",
    "SELECT (SELECT max(value) FROM text.`{}/secret`)",
    "SELECT java_method('java.lang.System', 'setProperty', 'touched', 'yes')",
    "SELECT reflect('java.lang.System', 'setProperty', 'touched', 'yes')",
    "SELECT try_reflect('java.lang.System', 'setProperty', 'touched', 'yes')",
    "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'setProperty', 'touched', 'yes')",
    "SELECT * FROM IDENTIFIER(java_method('java.lang.System', 'setProperty', 'touched', 'yes'))",
    "SELECT system.builtin.reflect('java.lang.System', 'setProperty', 'touched', 'yes')",
    "SELECT from_xml('<a><b>1</b></a>', 'b INT', map('rowValidationXSDPath', 'file:{}/secret'))",
    "SELECT xpath_string('<!DOCTYPE a SYSTEM \"file:{}/secret\"><a/>', 'a')",
    "SELECT * FROM t WITH ('path' = '{}/secret')",
    "SELECT * FROM table_changes('t', 0)",
    "SELECT * FROM python_worker_logs()",
    "RESET spark.sql.runSQLOnFiles",
    "EXPLAIN EXECUTE IMMEDIATE 'DROP TABLE t'",
    "INSERT INTO IDENTIFIER('t') VALUES (3, 30)",
)


@pytest.mark.parametrize("text", WRITES)
def test_a_reader_does_nothing_else(root: SparkSession, reading: Reader, tmp_path: Path, text: str) -> None:
    (tmp_path / "secret").write_text("hush")
    with pytest.raises((NotAllowedError, AnalysisException)):
        reading.run(text.format(tmp_path)).collect()
    assert [one.name for one in tmp_path.iterdir()] == ["secret"]
    assert root._jvm is not None
    assert root._jvm.java.lang.System.getProperty("touched") is None


def told_of(root: SparkSession, text: str) -> list[tuple[str, str | None]]:
    seen: list[QueriedTable] = []
    Reader(another(root), seen.extend).run(text).collect()
    return [(one.name, one.location and one.location.rpartition("/")[2]) for one in seen]


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT a FROM t", ["t"]),
        ("SELECT m FROM v", ["t"]),
        ("SELECT count(*) FROM t VERSION AS OF 1", ["t"]),
        ("WITH q AS (SELECT x FROM p) SELECT * FROM q WHERE x IN (SELECT a FROM t)", ["p", "t"]),
        ("SELECT * FROM range(3)", []),
        ("DESCRIBE t", []),
        ("DESCRIBE EXTENDED t", ["t"]),
        ("DESCRIBE t a", ["t"]),
        ("DESCRIBE EXTENDED p", ["p"]),
        ("DESCRIBE EXTENDED v", ["t"]),
        ("DESCRIBE EXTENDED p x", ["p"]),
        ("DESCRIBE IDENTIFIER('t') IDENTIFIER('a')", ["t"]),
        ("DESCRIBE parts", []),
        ("DESCRIBE parts PARTITION (day = 'a')", ["parts"]),
        ("SHOW COLUMNS IN t", []),
    ],
)
def test_what_a_query_reads_is_told_before_any_row_is_read(
    root: SparkSession, text: str, tables: list[str]
) -> None:
    assert sorted(set(told_of(root, text))) == [(f"reading.{name}", name) for name in tables]


def test_the_table_that_is_described_is_judged_whatever_the_session_uses_meanwhile(
    root: SparkSession,
) -> None:
    root.sql("CREATE DATABASE beside")
    root.sql("CREATE TABLE beside.t USING delta AS SELECT 1 AS a")
    root.sql("CREATE TABLE beside.p USING parquet AS SELECT 1 AS x")
    for text, name in (("DESCRIBE EXTENDED t", "t"), ("DESCRIBE t a", "t"), ("DESCRIBE EXTENDED p x", "p")):
        seen: list[QueriedTable] = []
        Reader(another(root), seen.extend).run(text, meanwhile="USE beside")
        assert [one.name for one in seen] == [f"reading.{name}"], text
    root.sql("DROP DATABASE beside CASCADE")


def test_a_closed_table_is_not_read(root: SparkSession) -> None:
    def require_open(sources: Sequence[QueriedTable]) -> None:
        if any(one.name == "reading.p" for one in sources):
            raise NotAllowedError("Closed.")

    reading = Reader(another(root), require_open)
    assert reading.run("SELECT count(*) FROM t").collect()[0][0] == 2
    for text in (
        "SELECT * FROM p",
        "SELECT (SELECT max(x) FROM p) FROM t",
        "DESCRIBE EXTENDED p",
        "DESCRIBE p x",
    ):
        with pytest.raises(NotAllowedError, match="Closed"):
            reading.run(text)


def test_after_all_of_it_everything_is_as_it_was(root: SparkSession) -> None:
    assert [tuple(row) for row in root.sql("SELECT k, a FROM t ORDER BY k").collect()] == [(1, 10), (2, 20)]
    assert [tuple(row) for row in root.sql("SELECT x FROM p").collect()] == [(7,)]
    assert {row.tableName for row in root.sql("SHOW TABLES").collect()} == {"t", "p", "parts", "v"}


def plan_classes(root: SparkSession) -> Iterator[str]:
    """Every kind of plan that the jars of Spark and Delta hold."""
    jvm: Any = root._jvm
    find, loader = jvm.java.lang.Class.forName, jvm.java.lang.Thread.currentThread().getContextClassLoader()
    plan = find("org.apache.spark.sql.catalyst.plans.logical.LogicalPlan", False, loader)
    is_abstract = jvm.java.lang.reflect.Modifier.isAbstract
    deltas = [Path(one.removeprefix("file:")) for one in str(root.conf.get("spark.jars")).split(",")]
    for jar in (*Path(pyspark.__file__).parent.glob("jars/spark-*.jar"), *deltas):
        if not jar.name.startswith(("spark-catalyst_", "spark-sql_", "spark-hive_", "delta-spark_")):
            continue
        for entry in ZipFile(jar).namelist():
            if not entry.startswith(("org/apache/spark/sql/", "io/delta/")) or "$" in entry:
                continue
            if not entry.endswith(".class"):
                continue
            try:
                found = find(entry.removesuffix(".class").replace("/", "."), False, loader)
            except Py4JJavaError:  # of a library that is not there
                continue
            if plan.isAssignableFrom(found) and not is_abstract(found.getModifiers()):
                yield str(found.getSimpleName())


def test_every_kind_of_statement_and_plan_that_there_is_is_on_a_list(root: SparkSession) -> None:
    found = set(plan_classes(root))
    assert {name for name in found if kind_of(name) is StatementKind.UNKNOWN} == set()
    assert {"VacuumTableCommand", "AppendData", "MergeIntoCommand"} <= found


REFUSED_FUNCTIONS = frozenset(
    {
        "from_avro",
        "from_protobuf",
        "from_xml",
        "java_method",
        "reflect",
        "schema_of_avro",
        "schema_of_xml",
        "to_avro",
        "to_protobuf",
        "try_reflect",
        "xpath",
        "xpath_boolean",
        "xpath_double",
        "xpath_float",
        "xpath_int",
        "xpath_long",
        "xpath_number",
        "xpath_short",
        "xpath_string",
    }
)
"""Run code, or open files and addresses."""
REFUSED_TABLE_FUNCTIONS = frozenset({"python_worker_logs", "table_changes", "table_changes_by_path"})


def test_every_function_that_there_is_is_on_a_list(root: SparkSession) -> None:
    state = another(root)._jsparkSession.sessionState()
    for registry, known in (
        (state.functionRegistry(), FUNCTIONS | REFUSED_FUNCTIONS),
        (state.tableFunctionRegistry(), TABLE_FUNCTIONS | REFUSED_TABLE_FUNCTIONS),
    ):
        assert set(str(registry.listFunction().mkString("\n")).split("\n")) == known
