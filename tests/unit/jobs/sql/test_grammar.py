"""Governed SQL: what is read as what, and what is refused how."""

from pathlib import Path

import pytest

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.catalog.model.rows import MarkVerdict, Mode
from lakewarden.jobs.sql.clustering import CLUSTERING_SYNTAX
from lakewarden.jobs.sql.compile.ambiguities import read_otherwise
from lakewarden.jobs.sql.compile.values import Dialect
from lakewarden.jobs.sql.convert import CONVERT_SYNTAX
from lakewarden.jobs.sql.mark import MARK_SYNTAX, UNMARK_SYNTAX
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.policy import POLICY_SYNTAX
from lakewarden.jobs.sql.rollback import ROLLBACK_SYNTAX
from lakewarden.jobs.sql.show import (
    DESCRIBE_SYNTAX,
    LINEAGE_SYNTAX,
    ROLLBACKS_SYNTAX,
    RUNS_SYNTAX,
    TABLES_SYNTAX,
)
from lakewarden.jobs.sql.statements import (
    ChangeRows,
    ConvertTable,
    Explain,
    MarkTable,
    Query,
    RollbackTable,
    SetRows,
    Unmanaged,
)
from lakewarden.jobs.sql.vacuum import VACUUM_FORMS

BAD, CLEAN = MarkVerdict.BAD, MarkVerdict.CLEAN
PAGE = Path(__file__).parents[4] / "docs" / "sql.md"


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CONVERT TO DELTA db.t", ConvertTable(where="db.t")),
        ("convert to delta db.t;", ConvertTable(where="db.t")),
        ("CONVERT TO DELTA `my db`.`t x`", ConvertTable(where="my db.t x")),
        ("CONVERT TO DELTA parquet.`/data/a b`", ConvertTable(where="/data/a b")),
        ("CONVERT TO DELTA '/data/a'", ConvertTable(where="/data/a")),
        ("CONVERT TO DELTA hdfs://lake:8020/day=1/a-b", ConvertTable(where="hdfs://lake:8020/day=1/a-b")),
        ("CONVERT TO DELTA db . t OWNER ana", ConvertTable(where="db.t", owner="ana")),
        (
            (
                "CONVERT TO DELTA db.t PARTITIONED BY (year INT, price DECIMAL(10, 2)) NO STATISTICS"
                " VACUUM RETAIN 30 DAYS OWNER ana"
            ),
            ConvertTable(
                where="db.t",
                partitioned_by=(("year", "INT"), ("price", "DECIMAL(10,2)")),
                statistics=False,
                retain_seconds=30 * 86_400,
                owner="ana",
            ),
        ),
        (
            "CONVERT TO DELTA db.t OWNER 'team a' VACUUM RETAIN 36 HOURS",
            ConvertTable(where="db.t", retain_seconds=36 * 3600, owner="team a"),
        ),
        ("SELECT * FROM lakewarden.tables", Query(sql="SELECT * FROM lakewarden.tables")),
        ("SELECT * FROM db.flights", Unmanaged(sql="SELECT * FROM db.flights")),
        ("OPTIMIZE db.t", Unmanaged(sql="OPTIMIZE db.t")),
        (
            (
                "UPDATE lakewarden.tables SET policy.vacuum.retention = '30 days', policy.mode = 'manage', "
                "owner = 'bo' WHERE name = 'db.t'"
            ),
            SetRows(
                policy=(("vacuum.retention", 30 * 86_400), ("mode", Mode.MANAGE)),
                owner="bo",
                condition="name = 'db.t'",
            ),
        ),
        (
            "UPDATE lakewarden.tables SET policy.vacuum.enabled = NULL WHERE owner = 'ana'",
            SetRows(policy=(("vacuum.enabled", None),), condition="owner = 'ana'"),
        ),
    ],
)
def test_statements_are_read(text: str, statement: object) -> None:
    assert parse(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "",
        "CONVERT TO DELTA",
        "CONVERT TO DELTA db.t VACUUM RETAIN 0 DAYS",
        "CONVERT TO DELTA db.t VACUUM RETAIN 3 WEEKS",
        "CONVERT TO DELTA db.t PARTITIONED BY (year",
        "CONVERT TO DELTA db.t PARTITIONED BY (year)",
        "CONVERT TO DELTA db.t WITH LOVE",
        "CONVERT TO DELTA db.t NO LOVE",
        "CONVERT TO DELTA 'db'.'t'",
        "UPDATE lakewarden.tables SET policy.mode = 'manage'",
        "UPDATE lakewarden.tables SET policy.mode = 'sometimes' WHERE name = 'db.t'",
        "UPDATE lakewarden.tables SET policy.vacuum.retention = 1 + 1 WHERE name = 'db.t'",
        "SELECT FROM WHERE lakewarden.tables",
        "SELECT 'unclosed FROM lakewarden.tables",
    ],
)
def test_mistakes_get_a_sentence_and_a_hint(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE mine AS SELECT * FROM lakewarden.tables",
        "CREATE DATABASE lakewarden",
        "DROP TABLE lakewarden.mine",
        "DROP TABLE lakewarden.",
        "ALTER TABLE db.tables ADD COLUMN lakewarden STRING",
    ],
)
def test_a_command_that_changes_no_system_table_is_sparks(text: str) -> None:
    assert parse(text) == Unmanaged(sql=text)


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM lakewarden.tables WHERE name = 'db.t'",
        "INSERT INTO lakewarden.runs SELECT * FROM x",
        "UPDATE lakewarden.runs SET outcome = 'succeeded' WHERE run_id = 'x'",
        "UPDATE lakewarden.tables SET location = '/tmp' WHERE name = 'db.t'",
        "RESTORE TABLE lakewarden.tables TO VERSION AS OF 0",
        "restore lakewarden . `audit` to version as of 0",
        "TRUNCATE TABLE lakewarden.audit",
        "DROP TABLE IF EXISTS lakewarden.audit",
        "DROP SCHEMA lakewarden CASCADE",
        "ALTER TABLE /* mine */ lakewarden.audit SET TBLPROPERTIES ('delta.appendOnly' = 'false')",
        "CREATE OR REPLACE TABLE lakewarden.audit (a INT) USING delta",
        "OPTIMIZE lakewarden.health",
    ],
)
def test_the_record_cannot_be_rewritten_by_sql(text: str) -> None:
    with pytest.raises(NotAllowedError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("ROLLBACK TABLE db.t TO VERSION 3", RollbackTable(where="db.t", version=3)),
        ("rollback table db.t to version 3 cascade;", RollbackTable(where="db.t", version=3, cascade=True)),
        (
            "ROLLBACK TABLE `db`.`t` TO TIMESTAMP '2026-11-21 08:30:00' CASCADE",
            RollbackTable(where="db.t", timestamp="2026-11-21 08:30:00", cascade=True),
        ),
        (
            "ROLLBACK TABLE db.t TO VERSION 3 CASCADE REAPPLY",
            RollbackTable(where="db.t", version=3, cascade=True, reapply=True),
        ),
        ("ROLLBACK TABLE db.t TO VERSION 3 reapply", RollbackTable(where="db.t", version=3, reapply=True)),
        ("ROLLBACK TABLE /lake/a-b TO VERSION 3", RollbackTable(where="/lake/a-b", version=3)),
        ("ROLLBACK TABLE delta.`/lake/a b` MARKED", RollbackTable(where="/lake/a b", marked=True)),
        ("ROLLBACK TABLE db.version BAD VERSION 7", RollbackTable(where="db.version", bad=(7,))),
        (
            "rollback table db.t bad versions 7, 9 reapply cascade",
            RollbackTable(where="db.t", bad=(7, 9), cascade=True, reapply=True),
        ),
        (
            "ROLLBACK TABLE db.t BAD VERSION 7 REMOVE FILES",
            RollbackTable(where="db.t", bad=(7,), remove_files=("db.t",)),
        ),
        (
            "ROLLBACK TABLE db.t MARKED REMOVE FILES FROM db.t,`my db`.u CASCADE",
            RollbackTable(where="db.t", marked=True, cascade=True, remove_files=("db.t", "my db.u")),
        ),
    ],
)
def test_rollback_table_is_read(text: str, statement: RollbackTable) -> None:
    assert parse(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "ROLLBACK TABLE db.t",
        "ROLLBACK TABLE TO VERSION 3",
        "ROLLBACK TABLE db.t TO VERSION three",
        "ROLLBACK TABLE db.t TO VERSION 3 CASCADE NOW",
        "ROLLBACK TABLE db.t TO VERSION 3 CASCADE CASCADE",
        "ROLLBACK TABLE db.t TO",
        "ROLLBACK TABLE db.t TO VERSION -1",
        "ROLLBACK TABLE db.t TO VERSION 3L",
        "ROLLBACK TABLE db.t TO VERSION 3 BAD VERSION 4",
        "ROLLBACK TABLE db.t TO TIMESTAMP 2026",
        "ROLLBACK TABLE db.t BAD 7",
        "ROLLBACK TABLE db.t BAD VERSIONS 7 9",
        "ROLLBACK TABLE db.t MARKED REMOVE",
        "ROLLBACK TABLE db.t MARKED REMOVE FILES FROM",
        "ROLLBACK TABLE db.t MARKED REMOVE FILES REMOVE FILES",
        "ROLLBACK TABLE db.t MARKED; DROP TABLE db.t",
    ],
)
def test_a_rollback_that_is_wrong_is_told_the_syntax(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.hint == ROLLBACK_SYNTAX


def test_rollback_of_a_transaction_is_not_ours() -> None:
    assert parse("ROLLBACK") == Unmanaged(sql="ROLLBACK")


@pytest.mark.parametrize(
    "text",
    [
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET *",
        "WITH c AS (SELECT 1 AS k) MERGE INTO t USING c ON t.k = c.k WHEN MATCHED THEN DELETE",
        "WITH del (update) AS (SELECT 1), upd AS (SELECT 2) SELECT delete FROM del",
        "WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c",
        "DELETE FROM t WHERE s = 'a; b'",
        "UPDATE t SET a = 1 -- FROM s",
        "SET lakewarden.dialect = postgres",
    ],
)
def test_what_spark_understands_goes_to_spark_unchanged(text: str) -> None:
    assert parse(text) == Unmanaged(sql=text)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("EXPLAIN GOVERNED DELETE FROM t", "DELETE FROM t"),
        ("explain  governed\nINSERT INTO t SELECT * FROM s", "INSERT INTO t SELECT * FROM s"),
    ],
)
def test_an_explained_statement_that_is_sparks_is_its_own_step(text: str, statement: str) -> None:
    explained = parse(text)
    assert isinstance(explained, Explain)
    assert isinstance(explained.statement, Unmanaged)
    assert explained.statement.sql.strip() == statement


def test_changes_of_warehouses_are_read_with_the_dialect_that_was_set() -> None:
    text = "DELETE FROM t WHERE k = 7 / 2"
    assert parse(text) == Unmanaged(sql=text, notes=read_otherwise(text))
    change = parse(text, Dialect.POSTGRES)
    assert isinstance(change, ChangeRows)
    assert change.draft.dialects == (Dialect.POSTGRES,)
    assert isinstance(parse(f"EXPLAIN GOVERNED {text}", Dialect.POSTGRES), Explain)


def test_what_the_daemon_does_is_not_explained() -> None:
    with pytest.raises(UsageError, match="statements that Spark runs"):
        parse("EXPLAIN GOVERNED ROLLBACK TABLE db.t TO VERSION 3")


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("MARK TABLE db.t VERSION 3 BAD", MarkTable(where="db.t", versions=(3,), verdict=BAD)),
        (
            "mark table db.t versions 3, 4,7 clean because 'the \\'load\\' was\\nright'",
            MarkTable(where="db.t", versions=(3, 4, 7), verdict=CLEAN, note="the 'load' was\nright"),
        ),
        (
            'MARK TABLE `db`.`t` VERSION 0 BAD BECAUSE "half a file";',
            MarkTable(where="db.t", versions=(0,), verdict=BAD, note="half a file"),
        ),
        ("UNMARK TABLE db.t VERSIONS 3, 4", MarkTable(where="db.t", versions=(3, 4), verdict=None)),
    ],
)
def test_marks_are_read(text: str, statement: MarkTable) -> None:
    assert parse(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "MARK TABLE db.t",
        "MARK TABLE db.t VERSION",
        "MARK TABLE db.t VERSION 3",
        "MARK TABLE db.t VERSION three BAD",
        "MARK TABLE db.t VERSION 3, BAD",
        "MARK TABLE db.t VERSION 3 UGLY",
        "MARK TABLE db.t VERSION 3 BAD CLEAN",
        "MARK TABLE db.t VERSION 3 BAD BECAUSE",
        "MARK TABLE db.t VERSION 3 BAD BECAUSE of_it",
        "MARK TABLE db.t VERSION 3 BAD BECAUSE 'it''s half'",
    ],
)
def test_a_mark_that_is_wrong_is_told_the_syntax(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.hint == MARK_SYNTAX


def test_unmark_takes_no_verdict() -> None:
    with pytest.raises(UsageError, match="'BAD' is not expected here") as caught:
        parse("UNMARK TABLE db.t VERSION 3 BAD")
    assert caught.value.hint == UNMARK_SYNTAX


SYNTAXES = [
    *(CONVERT_SYNTAX, ROLLBACK_SYNTAX, MARK_SYNTAX, UNMARK_SYNTAX, POLICY_SYNTAX, *VACUUM_FORMS.split("; ")),
    CLUSTERING_SYNTAX,
    *(TABLES_SYNTAX, DESCRIBE_SYNTAX, RUNS_SYNTAX, LINEAGE_SYNTAX, ROLLBACKS_SYNTAX),
]


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_the_page_about_sql_shows_each_statement_as_errors_do(syntax: str) -> None:
    assert f"    {syntax}\n" in PAGE.read_text(encoding="utf-8")


LOCKS = ("LOCKING is left out: each table is read at one version, and written without locks.",)


@pytest.mark.parametrize(
    "lock",
    [
        "LOCKING ROW FOR ACCESS",
        "LOCKING TABLE db.t FOR WRITE NOWAIT",
        "LOCK t IN EXCLUSIVE MODE LOCKING DATABASE db FOR READ OVERRIDE",
        "LOCKING\n  VIEW v FOR LOAD COMMITTED",
    ],
)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t FROM s SET a = s.b WHERE t.k = s.k",
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET a = s.b / 2",
        "UPDATE w SET a = 2 WHERE k = 1 ELSE INSERT INTO w VALUES (1, 2)",
    ],
)
def test_teradatas_locks_are_left_out_and_that_is_told(lock: str, statement: str) -> None:
    found = parse(f"{lock} {statement}", Dialect.TERADATA)
    plain = parse(statement, Dialect.TERADATA)
    assert isinstance(found, ChangeRows) and isinstance(plain, ChangeRows)
    assert found.draft.change.notes == LOCKS and found.draft.tables == plain.draft.tables
    assert found.draft.text.lstrip() == statement and len(found.draft.text) == len(lock) + 1 + len(statement)


def test_other_locks_are_none_of_these() -> None:
    locked = parse("LOCKING ROW FOR ACCESS DELETE FROM t WHERE k = 1")
    assert (
        isinstance(locked, Unmanaged) and locked.notes == LOCKS and locked.sql.lstrip().startswith("DELETE")
    )
    for text in ("LOCK TABLE t IN ACCESS EXCLUSIVE MODE", "LOCK TABLES t READ", "LOCKING"):
        assert parse(text) == Unmanaged(sql=text)
    text = "LOCKING ROW FOR ACCESS UPDATE t SET a = 1"
    assert parse(text, Dialect.POSTGRES) == Unmanaged(sql=text), "no statement of PostgreSQL's"
