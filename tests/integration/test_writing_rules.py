"""What a writer by SQL alone may send to Spark, and what not, in a real session: the plan that is judged is the plan
that runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.jobs.session.judgement.plan_tables import PlanTables
from lakewarden.jobs.session.judgement.writing_rules import Writing
from lakewarden.jobs.session.plans import Plans, kind

pytestmark = pytest.mark.spark

PROGRAM = "SELECT TRANSFORM(1) USING 'touch {}/touched' AS (line STRING)"
REFLECT = "org.apache.hadoop.hive.ql.udf.generic.GenericUDFReflect"
MADE = (
    "CREATE DATABASE writing",
    "USE writing",
    "CREATE TABLE t (k INT, a INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "INSERT INTO t VALUES (1, 10)",
    "CREATE TABLE p USING parquet AS SELECT 7 AS x",
    "CREATE VIEW v AS SELECT max(a) AS m FROM IDENTIFIER('t')",
    "CREATE FUNCTION most() RETURNS INT RETURN (SELECT max(a) FROM t)",
)


class Writer:
    """A writer's session, and somebody's who has made things in it that run programs."""

    def __init__(self, root: SparkSession, folder: Path) -> None:
        self.other = root.newSession()
        for text in MADE:
            self.other.sql(text)
        program = PROGRAM.format(folder)
        self.other.sql(f"CREATE VIEW programs AS {program}")
        self.other.sql(f"CREATE FUNCTION lines() RETURNS TABLE (line STRING) RETURN {program}")
        self.other.sql(f"CREATE FUNCTION one() RETURNS STRING RETURN (SELECT max(line) FROM ({program}))")
        self.other.sql("CREATE FUNCTION two() RETURNS STRING RETURN one()")
        self.spark = root.newSession()
        self.spark.sql("USE writing")
        self.plans, self.judge = Plans(self.spark), Writing(self.spark)
        self.tables = PlanTables(self.spark, self.plans)

    def run(self, text: str) -> DataFrame:
        session: Any = self.spark._jsparkSession
        plan = self.plans.parsed(session, text)
        self.judge.require_said(plan)
        analysed = self.plans.analysed(session, plan)
        self.judge.require_read(plan, analysed)
        return self.plans.run(session, analysed)

    def classes(self, text: str) -> set[str]:
        """The classes of a parsed statement."""
        plan = self.plans.parsed(self.spark._jsparkSession, text)
        return {kind(node) for node in self.tables.nodes(plan)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("writing")


@pytest.fixture(scope="module")
def writer(spark: SparkSession, folder: Path) -> Iterator[Writer]:
    made = Writer(spark, folder)
    yield made
    made.other.sql("DROP DATABASE writing CASCADE")


RUNS: dict[str, list[tuple[Any, ...]]] = {
    "SELECT a FROM IDENTIFIER('writing' || '.t')": [(10,)],
    "SELECT m, (SELECT max(a) FROM IDENTIFIER('t')) FROM v": [(10, 10)],
    "WITH t AS (SELECT 3 AS a) SELECT a FROM IDENTIFIER('t')": [(3,)],
    "WITH q AS (SELECT a FROM IDENTIFIER('t')) SELECT a FROM q": [(10,)],
    "SELECT count(*) FROM IDENTIFIER('t') VERSION AS OF 0": [(0,)],
    "SELECT most() + IDENTIFIER('most')()": [(20,)],
    "SELECT count(*) FROM table_changes('t', 1)": [(1,)],
    "FROM IDENTIFIER('t') |> WHERE k = 1 |> SELECT a": [(10,)],
    "SELECT * FROM IDENTIFIER('range')(1)": [(0,)],
    "DESCRIBE QUERY SELECT a FROM IDENTIFIER('t')": [("a", "int", None)],
    "CREATE TEMPORARY FUNCTION IDENTIFIER('mine')(x INT) RETURNS INT RETURN x + (SELECT max(a) FROM t)": [],
    "SELECT mine(1)": [(11,)],
    "CREATE VIEW IDENTIFIER('w') AS SELECT * FROM IDENTIFIER('v')": [],
    "SELECT * FROM w": [(10,)],
    "CREATE TABLE IDENTIFIER('made') USING parquet AS SELECT x FROM IDENTIFIER('p')": [],
    "SELECT x FROM made": [(7,)],
    "CREATE TABLE IDENTIFIER('hived') (x INT) STORED AS PARQUET": [],
    "INSERT INTO IDENTIFIER('hived') SELECT x FROM made": [],
    "SELECT x FROM hived": [(7,)],
    "CACHE TABLE IDENTIFIER('kept') AS SELECT x FROM IDENTIFIER('made')": [],
    "SELECT * FROM kept": [(7,)],
    "ALTER TABLE t ADD CONSTRAINT few CHECK (length(CAST(k AS STRING)) < 9 AND a IS NOT NULL)": [],
    "SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY a)": [(10,)],
    "CREATE TABLE days (x INT, y INT GENERATED ALWAYS AS (abs(x))) USING delta": [],
    "DECLARE VARIABLE name = 't'": [],
    "SET VAR name = (SELECT max('x') FROM IDENTIFIER('t'))": [],
}


def test_a_writer_names_tables_by_constant_texts(writer: Writer) -> None:
    for text, rows in RUNS.items():
        assert [tuple(row) for row in writer.run(text).collect()] == rows, text
    assert "writing.t[" in str(writer.run("EXPLAIN SELECT * FROM IDENTIFIER('t')").collect())


REFUSED = (
    f"CREATE TEMPORARY FUNCTION IDENTIFIER('f') AS '{REFLECT}'",
    f"CREATE FUNCTION IDENTIFIER('f') AS '{REFLECT}'",
    f"EXPLAIN CREATE FUNCTION IDENTIFIER('f') AS '{REFLECT}'",
    f"CREATE TEMPORARY FUNCTION IDENTIFIER(lower('F')) AS '{REFLECT}'",
    f"CREATE TEMPORARY FUNCTION \u0131dent\u0131f\u0131er('f') AS '{REFLECT}'",
    "CREATE TABLE IDENTIFIER('spy') (value STRING) USING text LOCATION '{}'",
    "CREATE TABLE IDENTIFIER('s' || 'py') USING text OPTIONS (path '{}') AS SELECT * FROM IDENTIFIER('t')",
    "CREATE OR REPLACE TABLE IDENTIFIER('spy') USING delta LOCATION '{}/spy' AS SELECT 1 AS x",
    "CREATE OR REPLACE TABLE IDENTIFIER('t') TBLPROPERTIES ('lakewarden.vacuum.max_share' = '1') AS SELECT 1 AS x",
    "CREATE TABLE IDENTIFIER('spy') (x INT) STORED AS AVRO TBLPROPERTIES ('avro.schema.url' = 'file:{}')",
    "ALTER TABLE IDENTIFIER('p') SET LOCATION '{}'",
    "SELECT * FROM IDENTIFIER('delta.`{}`')",
    "SELECT * FROM IDENTIFIER('delta.`{}`') VERSION AS OF 0",
    "SELECT * FROM delta.`{}` VERSION AS OF 0",
    "INSERT INTO delta.`{}` REPLACE WHERE k = 1 SELECT 1 AS k",
    "SELECT * FROM IDENTIFIER(lower('T')) VERSION AS OF 0",
    "SELECT (SELECT max(a) FROM IDENTIFIER(name))",
    "CREATE VIEW IDENTIFIER('x') AS SELECT * FROM IDENTIFIER(name)",
    "EXPLAIN SELECT * FROM IDENTIFIER(name)",
    "DESCRIBE QUERY SELECT * FROM IDENTIFIER('text.`{}`')",
    f"EXPLAIN {PROGRAM}",
    f"DESCRIBE QUERY {PROGRAM}",
    f"CREATE FUNCTION ran() RETURNS TABLE (line STRING) RETURN {PROGRAM}",
    f"CREATE TEMPORARY FUNCTION IDENTIFIER('ran')() RETURNS STRING RETURN (SELECT max(line) FROM ({PROGRAM}))",
    "CREATE FUNCTION told() RETURNS STRING RETURN (SELECT max(value) FROM text.`{}`)",
    "CREATE FUNCTION told() RETURNS STRING RETURN (SELECT max(value) FROM IDENTIFIER('text.`{}`'))",
    "SELECT * FROM programs",
    "SELECT * FROM IDENTIFIER('programs')",
    "SELECT one()",
    "SELECT two()",
    "SELECT * FROM lines()",
    "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM lines() WHERE line = 'x')",
    "CREATE TABLE ran USING parquet AS SELECT * FROM programs",
    "CREATE VIEW ran AS SELECT * FROM lines()",
    "CACHE TABLE programs",
    "CACHE TABLE ran AS SELECT two()",
    "INSERT INTO p SELECT 1 FROM programs",
    f"ALTER TABLE t ADD CONSTRAINT c CHECK ((SELECT max(line) FROM ({PROGRAM})) IS NULL)",
    "ALTER TABLE t ADD CONSTRAINT c CHECK (one() IS NULL)",
    "ALTER TABLE t ADD CONSTRAINT c CHECK (IDENTIFIER('two')() IS NULL)",
    f"SELECT count(*) OVER w FROM t WINDOW w AS (PARTITION BY (SELECT max(line) FROM ({PROGRAM})))",
    (
        "SELECT count(*) OVER w FROM t WINDOW w AS (PARTITION BY (SELECT max(k) FROM t TIMESTAMP AS OF "
        f"(SELECT CAST(line AS TIMESTAMP) FROM ({PROGRAM}))))"
    ),
    "CREATE VIEW ran AS SELECT count(*) OVER w FROM t WINDOW w AS (PARTITION BY (SELECT max(k) FROM t))",
    (
        "CREATE TABLE n (x INT) USING delta TBLPROPERTIES ('delta.constraints.c' = "
        f'"(SELECT max(line) FROM ({PROGRAM})) > x")'
    ),
    "CREATE TABLE n (x INT) USING delta OPTIONS ('delta.constraints.c' = 'x > 0')",
    "CREATE OR REPLACE TABLE n USING delta TBLPROPERTIES ('Delta.Constraints.c' = 'x > 0') AS SELECT 1 AS x",
    "CREATE TABLE n LIKE t TBLPROPERTIES ('delta.constraints.c' = 'k > 0')",
    "CREATE TABLE n SHALLOW CLONE t TBLPROPERTIES ('delta.constraints.c' = 'k > 0')",
    "CREATE TABLE n SHALLOW CLONE t LOCATION '{}'",
    f"CREATE TABLE n (x INT, y STRING GENERATED ALWAYS AS ((SELECT max(line) FROM ({PROGRAM})))) USING delta",
    "CREATE TABLE n (x INT, y STRING GENERATED ALWAYS AS (one())) USING delta",
    f"OPTIMIZE t WHERE (SELECT max(line) FROM ({PROGRAM})) IS NULL",
    f"VACUUM t USING INVENTORY ({PROGRAM})",
    "VACUUM t USING INVENTORY delta.`{}`",
)


@pytest.mark.parametrize("text", REFUSED)
def test_a_writer_runs_no_program_and_opens_no_path(writer: Writer, folder: Path, text: str) -> None:
    with pytest.raises(NotAllowedError, match="A writer may not (use|ask for a policy)"):
        writer.run(text.format(folder)).collect()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "CALL IDENTIFIER('iceberg.system.' || 'ancestors_of')('a.b')",
        "EXPLAIN TRUNCATE TABLE IDENTIFIER('t')",
        "WITH q AS (WITH r AS (TABLE IDENTIFIER('p')) TABLE r) INSERT INTO IDENTIFIER('t') SELECT x, x FROM q",
        "MERGE INTO IDENTIFIER('t') USING IDENTIFIER('p') ON k = x WHEN MATCHED THEN DELETE",
    ],
)
def test_no_constant_text_hides_a_statement(writer: Writer, text: str) -> None:
    assert "PlanWithUnresolvedIdentifier" not in writer.classes(text)


def test_what_is_left_is_sparks_own(writer: Writer) -> None:
    """What no constant text names is found by Spark, and errors in a name are Spark's."""
    assert "PlanWithUnresolvedIdentifier" in writer.classes("SELECT * FROM IDENTIFIER(lower('T'))")
    for text in ("SELECT * FROM IDENTIFIER('a..b')", "SELECT * FROM IDENTIFIER(CAST(NULL AS STRING))"):
        with pytest.raises((PySparkException, NotAllowedError)):
            writer.run(text)
