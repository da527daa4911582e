"""AT VERSION and AT TIMESTAMP become Spark's words, and nothing else of the text changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.time_travel import in_sparks_words
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import ChangeRows, Query, Unmanaged


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM t AT VERSION 3", "SELECT * FROM t VERSION AS OF 3"),
        (
            "SELECT * FROM t AT BRANCH 'b' JOIN t AT tag 'x' u",
            "SELECT * FROM t VERSION AS OF 'b' JOIN t VERSION AS OF 'x' u",
        ),
        (
            "select a.x from db.t at version 3 a join db.t at version 4 as b on a.k=b.k",
            "select a.x from db.t version AS OF 3 a join db.t version AS OF 4 as b on a.k=b.k",
        ),
        (
            "SELECT * FROM t AT TIMESTAMP '2026-11-21 08:00:00', u AT VERSION 1",
            "SELECT * FROM t TIMESTAMP AS OF '2026-11-21 08:00:00', u VERSION AS OF 1",
        ),
        (
            "SELECT * FROM delta.`/a b` AT /* then */ VERSION\n  3",
            "SELECT * FROM delta.`/a b` VERSION /* then */ AS OF\n  3",
        ),
        (
            "SELECT * FROM (SELECT * FROM t AT VERSION 2) q WHERE k IN (TABLE u AT VERSION 1)",
            "SELECT * FROM (SELECT * FROM t VERSION AS OF 2) q WHERE k IN (TABLE u VERSION AS OF 1)",
        ),
        (
            "INSERT INTO t SELECT * FROM t AT VERSION 0 -- AT VERSION 1",
            "INSERT INTO t SELECT * FROM t VERSION AS OF 0 -- AT VERSION 1",
        ),
        (
            "MERGE INTO t USING s AT VERSION 5 AS s ON t.k = s.k WHEN MATCHED THEN DELETE",
            "MERGE INTO t USING (SELECT * FROM s VERSION AS OF 5) AS s ON t.k = s.k WHEN MATCHED THEN DELETE",
        ),
        (
            "MERGE INTO t USING d.`x``` AT TIMESTAMP '2026' ON t.k = `x```.k WHEN MATCHED THEN DELETE",
            (
                "MERGE INTO t USING (SELECT * FROM d.`x``` TIMESTAMP AS OF '2026') AS `x``` ON t.k = `x```.k "
                "WHEN MATCHED THEN DELETE"
            ),
        ),
        (
            "MERGE INTO t USING (SELECT * FROM s AT VERSION 5 JOIN u AT VERSION 1 USING (k)) s ON t.k = s.k",
            (
                "MERGE INTO t USING (SELECT * FROM s VERSION AS OF 5 JOIN u VERSION AS OF 1 "
                "USING (k)) s ON t.k = s.k"
            ),
        ),
        (
            (
                "CREATE TABLE x USING delta AS WITH q AS (FROM `at`.`version` AT VERSION 1) "
                "SELECT 'AT VERSION 3' FROM q"
            ),
            (
                "CREATE TABLE x USING delta AS WITH q AS (FROM `at`.`version` VERSION AS OF 1) "
                "SELECT 'AT VERSION 3' FROM q"
            ),
        ),
    ],
)
def test_a_time_is_said_in_sparks_words(text: str, said: str) -> None:
    assert in_sparks_words(text) == said
    assert parse(text) == Unmanaged(sql=said)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT at version, 'x' FROM t",
        "SELECT at timestamp FROM t",
        "SELECT * FROM t at, version v",
        "SELECT `at` version FROM `at version 3`",
        "SELECT \"AT VERSION 3\", 'x AT VERSION 3' /* AT VERSION 3 */ FROM t -- AT VERSION 3",
        "SELECT * FROM t VERSION AS OF 3",
        "SET note = look AT VERSION 3",
        "SELECT * FROM t at JOIN u ON at.version = u.version",
    ],
)
def test_what_only_looks_like_it_stays_as_it_is(text: str) -> None:
    assert in_sparks_words(text) == text


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("SELECT * FROM t x AT VERSION 3", "comes right after the table, before its alias", 19),
        ("SELECT * FROM t AS x AT VERSION 3", "comes right after the table, before its alias", 22),
        ("SELECT * FROM (SELECT 1) AT VERSION 3", "belongs to the name of a table", 26),
        ("SELECT * FROM range(3) AT VERSION 3", "belongs to the name of a table", 24),
        ("SELECT * FROM t AT VERSION", "needs a literal", 20),
        ("SELECT * FROM t AT VERSION x", "needs a literal", 28),
        ("SELECT * FROM t AT VERSION -1", "needs a literal", 28),
        ("SELECT * FROM t AT VERSION 1.5", "whole number", 28),
        ("SELECT * FROM t AT VERSION 'new'", "whole number", 28),
        ("SELECT * FROM t AT TIMESTAMP 2026", "A timestamp is a text", 30),
        ("INSERT INTO t AT VERSION 3 SELECT 1", "Only what is read has a version", 15),
        ("MERGE INTO t AT VERSION 3 USING s ON true", "Only what is read has a version", 14),
    ],
)
def test_mistakes_are_shown_at_their_place(text: str, message: str, column: int) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse(text)
    assert f"Line 1, column {column}:" in str(caught.value)
    assert "AT VERSION 3" in caught.value.hint


def test_system_tables_are_read_at_versions_without_a_session() -> None:
    text = "SELECT count(*) FROM lakewarden.tables AT VERSION 3 AS t"
    assert parse(text) == Query(sql="SELECT count(*) FROM lakewarden.tables VERSION AS OF 3 AS t")


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t FROM s AT VERSION 3 AS x SET a = x.b WHERE t.k = x.k",
        "UPDATE t SET a = x.b FROM s AT VERSION 3 AS x WHERE t.k = x.k",
        "UPDATE t JOIN s AT VERSION 3 x ON t.k = x.k SET t.a = x.b",
        "UPDATE t SET a = x.b FROM t JOIN s AT VERSION 3 AS x ON t.k = x.k",
    ],
    ids=["teradata", "postgres", "mysql", "tsql"],
)
def test_sources_of_warehouse_statements_have_versions_in_every_dialect(text: str) -> None:
    statement = parse(text)
    assert isinstance(statement, ChangeRows)
    columns = tuple(ColumnType(name=name, type="int") for name in ("k", "a", "b"))
    schemas = dict.fromkeys(statement.draft.tables, columns)
    (step,) = compiled(statement.draft, schemas).steps
    assert "`s` VERSION AS OF 3 AS `x`" in step.sql
    assert step.sql.startswith("MERGE INTO `t` AS `t` USING")


@pytest.mark.parametrize(
    "text", ["UPDATE t AT VERSION 1 SET a = 2", "UPDATE t AT VERSION 1 x FROM s SET a = s.b"]
)
def test_what_is_changed_has_no_version(text: str) -> None:
    with pytest.raises(UsageError, match="Only what is read has a version"):
        parse(text)


def test_the_target_of_a_join_has_no_version() -> None:
    with pytest.raises(UsageError, match="what is changed is head"):
        parse("DELETE t FROM t AT VERSION 1 JOIN s ON t.k = s.k", Dialect.MYSQL)


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("tsql", "DELETE FROM t WHERE k IN (SELECT k FROM s FOR SYSTEM_TIME AS OF '2026-01-01')"),
        ("tsql", "DELETE t FROM t JOIN s FOR SYSTEM_TIME AS OF '2026-01-01' AS x ON t.k = x.k"),
        ("tsql", "DELETE FROM t WHERE k IN (SELECT k FROM s FOR SYSTEM_TIME ALL)"),
        (
            "tsql",
            "MERGE INTO t USING s FOR SYSTEM_TIME AS OF '2026-01-01' ON t.k = s.k WHEN MATCHED THEN DELETE",
        ),
        ("mysql", "UPDATE t JOIN s FOR SYSTEM_TIME AS OF '2026-01-01' ON t.k = s.k SET t.a = 1"),
        ("mysql", "UPSERT INTO t (k) ON (k) SELECT k FROM s FOR SYSTEM_TIME AS OF '2026-01-01'"),
        ("postgres", "DELETE FROM t USING s FOR SYSTEM_TIME AS OF '2026-01-01' WHERE t.k = s.k"),
        ("teradata", "DELETE t FROM s FOR SYSTEM_TIME AS OF '2026-01-01' WHERE t.k = s.k"),
        (None, "DELETE t FROM t JOIN s FOR SYSTEM_TIME AS OF '2026-01-01' ON t.k = s.k"),
    ],
)
def test_a_time_by_the_clock_of_a_database_is_written_with_its_zone(dialect: str | None, text: str) -> None:
    with pytest.raises(UsageError, match="SQL Server has UTC. Line 1, column") as caught:
        parse(text, None if dialect is None else Dialect(dialect))
    assert "AT TIMESTAMP '2026-11-21 08:00:00+00:00'" in caught.value.hint


def test_in_sparks_own_words_it_is_the_sessions_with_a_note_where_nobody_chose_the_dialect() -> None:
    text = "DELETE FROM t WHERE k IN (SELECT k FROM s FOR SYSTEM_TIME AS OF '2026-01-01')"
    for dialect in (None, Dialect.SPARK):
        statement = parse(text, dialect)
        assert isinstance(statement, ChangeRows)
        schemas = {table: (ColumnType(name="k", type="int"),) for table in statement.draft.tables}
        done = compiled(statement.draft, schemas)
        assert "`s` TIMESTAMP AS OF '2026-01-01'" in done.steps[0].sql
        note = "FOR SYSTEM_TIME is in the session's zone, where tsql has UTC."
        assert (note in done.notes) == (dialect is None)


@pytest.mark.parametrize("dialect", [None, Dialect.POSTGRES])
@pytest.mark.parametrize("quote", ["$$", "$x$"])
def test_a_text_of_postgresql_in_dollars_stays_as_it_is(dialect: Dialect | None, quote: str) -> None:
    text = (
        f"UPDATE t SET a = {quote}SELECT 'x' FROM s AT VERSION 3{quote} FROM s AT VERSION 1 WHERE t.k = s.k"
    )
    statement = parse(text, dialect)
    assert isinstance(statement, ChangeRows)
    (value,) = (one.value for one in statement.draft.change.assignments)
    assert value.name == "SELECT 'x' FROM s AT VERSION 3"
    assert statement.draft.change.relations[1].item.args["version"].expression.name == "1"


@given(
    st.lists(
        st.sampled_from(
            [
                "'t AT VERSION 1'",
                '"AT VERSION 1"',
                "`AT VERSION 1`",
                "/* AT VERSION 1 */ 1",
                "1 --t AT VERSION 1\n",
                "at",
                "x version",
            ]
        ),
        min_size=1,
    )
)
def test_only_the_two_words_change(columns: list[str]) -> None:
    head = f"SELECT {', '.join(columns)}\n FROM t "
    assert in_sparks_words(f"{head}AT VERSION 3") == f"{head}VERSION AS OF 3"
