"""Whose column is it? By the scoping of the statement's own dialect, in every clause and place of a query."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.merges.merge_drafts import merge_draft
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.upserts.upsert_drafts import upsert_draft
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect

SCHEMAS = {
    table: tuple(ColumnType(name=name, type="int") for name in columns)
    for table, columns in {"t": ("id", "k", "a"), "s": ("k", "b"), "u": ("k", "e")}.items()
}
EACH = tuple(Dialect)


def sql(text: str, dialect: Dialect) -> str:
    draft = draft_of(text, dialect)
    assert draft is not None
    (step,) = compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables}).steps
    return step.sql.replace("`", "")


def said(query: str, dialect: Dialect | str) -> str:
    """A query as a condition of a statement, in Spark's words."""
    return sql(f"DELETE FROM t WHERE a = ({query})", Dialect(dialect))


@pytest.mark.parametrize("dialect", [one for one in EACH if one is not Dialect.TERADATA])
def test_a_result_is_not_seen_in_where_before_a_column_of_the_query_around(dialect: Dialect) -> None:
    text = "DELETE FROM t WHERE EXISTS (SELECT e AS id FROM u WHERE id = 2)"
    assert "(SELECT u.e AS id FROM u AS u WHERE t.id = 2)" in sql(text, dialect)


@pytest.mark.parametrize("dialect", [Dialect.POSTGRES, Dialect.TSQL])
def test_nor_in_having(dialect: Dialect) -> None:
    text = "DELETE FROM t WHERE EXISTS (SELECT max(e) AS id FROM u HAVING max(e) > 0 AND id = 2)"
    assert "HAVING MAX(u.e) > 0 AND t.id = 2" in sql(text, dialect)
    with pytest.raises(UsageError, match="There is no column m in the tables"):
        sql("DELETE FROM t WHERE EXISTS (SELECT max(e) AS m FROM u HAVING m = 2)", dialect)


def test_what_teradata_may_take_for_either_is_asked_about() -> None:
    text = "DELETE FROM t WHERE EXISTS (SELECT e AS id FROM u WHERE {} = 2)"
    with pytest.raises(UsageError, match="id is not clear here: a result of the query"):
        sql(text.format("id"), Dialect.TERADATA)
    assert "WHERE t.id = 2" in sql(text.format("t.id"), Dialect.TERADATA)
    assert "WHERE u.e = 2" in said("SELECT e AS x FROM u WHERE x = 2", "teradata")


@pytest.mark.parametrize("dialect", [Dialect.POSTGRES, Dialect.MYSQL, Dialect.TSQL, Dialect.TERADATA])
def test_an_expression_in_order_by_takes_the_column(dialect: Dialect) -> None:
    first, last = ("TOP 1 ", "") if dialect in (Dialect.TSQL, Dialect.TERADATA) else ("", " LIMIT 1")
    found = said(f"SELECT {first}-e AS e FROM u ORDER BY -e{last}", dialect)
    assert "ORDER BY -u.e" in found or "ORDER BY -CAST(u.e AS BIGINT)" in found  # MySQL computes in 64 bits


@pytest.mark.parametrize(
    ("dialect", "query", "found"),
    [
        ("postgres", "SELECT -e AS e FROM u ORDER BY e LIMIT 1", "ORDER BY e"),
        ("postgres", "SELECT -e AS e FROM u ORDER BY (e) LIMIT 1", "ORDER BY (e)"),
        ("mysql", "SELECT -e AS e FROM u ORDER BY e LIMIT 1", "ORDER BY e"),
        ("tsql", "SELECT TOP 1 -e AS e FROM u ORDER BY e", "ORDER BY e"),
        ("mysql", "SELECT -e AS x FROM u ORDER BY x + 1 LIMIT 1", "ORDER BY CAST(x AS BIGINT) + 1"),
        ("spark", "SELECT -e AS e FROM u ORDER BY -e, k LIMIT 1", "ORDER BY -e, u.k"),
        ("postgres", "SELECT -k AS k, max(e) FROM u GROUP BY k", "GROUP BY u.k"),
        ("mysql", "SELECT -k AS k FROM u GROUP BY k", "GROUP BY u.k"),
        ("postgres", "SELECT -k AS id FROM u GROUP BY id", "GROUP BY (-u.k)"),
        ("tsql", "SELECT -k AS id FROM u GROUP BY id", "GROUP BY t.id"),
        ("mysql", "SELECT max(e) AS e FROM u HAVING e > 1", "HAVING (MAX(u.e)) > 1"),
        ("mysql", "SELECT -k AS k FROM u GROUP BY k HAVING k > 1", "HAVING u.k > 1"),
        ("mysql", "SELECT max(-e) AS e FROM u HAVING min(e) > 1", "HAVING MIN(u.e) > 1"),
        ("teradata", "SELECT max(e) AS m FROM u HAVING m > 1", "HAVING (MAX(u.e)) > 1"),
        ("teradata", "SELECT max(e) AS e FROM u HAVING min(e) > 1", "HAVING MIN(u.e) > 1"),
    ],
)
def test_where_a_dialect_looks_first(dialect: str, query: str, found: str) -> None:
    assert found in said(query, dialect)


@pytest.mark.parametrize(
    ("dialect", "query"),
    [
        ("teradata", "SELECT TOP 1 -e AS e FROM u ORDER BY e"),
        ("mysql", "SELECT max(r) FROM (SELECT -e AS e, ROW_NUMBER() OVER (ORDER BY e) AS r FROM u) q"),
    ],
)
def test_where_nobody_knows_it_is_asked(dialect: str, query: str) -> None:
    with pytest.raises(UsageError, match="e is not clear here: a result of the query is called so") as caught:
        said(query, dialect)
    assert "table.e" in caught.value.hint


def test_qualify_and_its_windows_take_the_column() -> None:
    query = (
        "SELECT max(b) FROM (SELECT k, -b AS b FROM s "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY b) = 1 AND k > 0) q"
    )
    assert (
        "(SELECT _t.c0 AS k, _t.c1 AS b FROM (SELECT s.k AS c0, -s.b AS c1, ROW_NUMBER() OVER "
        "(PARTITION BY s.k ORDER BY s.b) = 1 AND s.k > 0 AS lakewarden_kept FROM s AS s) AS _t "
        "WHERE _t.lakewarden_kept) AS q"
    ) in said(query, "teradata")


def test_qualify_is_no_clause_of_the_others() -> None:
    for dialect in ("postgres", "mysql", "tsql"):
        with pytest.raises(UsageError, match=f"{dialect} has no QUALIFY"):
            said("SELECT k FROM s QUALIFY ROW_NUMBER() OVER (ORDER BY b) = 1", dialect)


def test_a_with_stays_where_it_stands() -> None:
    text = "UPDATE t SET a = (WITH s AS (SELECT 5 AS b) SELECT b FROM s) + (SELECT max(b) FROM s)"
    assert (
        "(WITH s_ AS (SELECT 5 AS b) SELECT s.b AS b FROM s_ AS s) + (SELECT MAX(s.b) AS _col_0 FROM s AS s)"
    ) in sql(text, Dialect.POSTGRES)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # A name without a table in a query that reads something of the same alias.
        ("DELETE FROM t AS x WHERE EXISTS (SELECT 1 FROM u AS x WHERE a = e)", "WHERE x_.a = x.e"),
        # Three deep: the middle one hides the outer one, but for what only the outer one has.
        (
            "DELETE FROM t WHERE a IN (SELECT k FROM u t WHERE e IN (SELECT b FROM s t WHERE id = e))",
            "WHERE t__.e IN (SELECT t.b AS b FROM s AS t WHERE lakewarden_held0.id = t__.e)",
        ),
        (
            "DELETE FROM t WHERE a IN (SELECT t.k FROM (SELECT e AS k FROM u) t)",
            "SELECT t.k AS k FROM (SELECT",
        ),
    ],
)
def test_what_a_name_inside_would_hide_has_another(text: str, found: str) -> None:
    done = sql(text, Dialect.POSTGRES)
    assert found in done, done


def test_a_column_that_is_twice_in_what_is_read_is_not_clear() -> None:
    with pytest.raises(UsageError, match="k is not clear here: s, u have such a column"):
        said("SELECT k FROM s, u", "postgres")
    with pytest.raises(UsageError, match="x is not clear here"):
        said("SELECT x FROM (SELECT k AS x, b AS x FROM s) q", "postgres")


@pytest.mark.parametrize("dialect", [None, Dialect.POSTGRES, Dialect.TSQL, Dialect.TERADATA])
@pytest.mark.parametrize(
    "clause",
    [
        "WHEN MATCHED THEN UPDATE SET a = s.b WHERE s.b > 1",
        "WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k) WHERE s.b > 1",
    ],
)
def test_a_where_of_a_merges_clause_is_not_lost(clause: str, dialect: Dialect | None) -> None:
    with pytest.raises(UsageError, match="WHERE behind THEN is not supported. Line 1, column"):
        merge_draft(f"MERGE INTO t USING s ON t.k = s.k {clause}", dialect)


@pytest.mark.parametrize("dialect", [None, Dialect.MYSQL])
@pytest.mark.parametrize(
    "comment", ["/*! WHERE id = 1 */", "/*!50110 WHERE id = 1 */", "/*M! WHERE id = 1 */"]
)
def test_what_mysql_runs_in_a_comment_is_not_lost(comment: str, dialect: Dialect | None) -> None:
    with pytest.raises(UsageError, match="MySQL runs what stands in this comment.* Line 1, column 20"):
        draft_of(f"UPDATE t SET a = 1 {comment}", dialect)
    with pytest.raises(UsageError, match="MySQL runs what stands in this comment"):
        upsert_draft(f"REPLACE INTO t VALUES (1, 2, 3) {comment}", dialect)


def test_a_comment_that_only_looks_like_one_of_these_is_one() -> None:
    assert draft_of("UPDATE t SET a = '/*! x */' -- !x", Dialect.MYSQL) is not None
    assert draft_of("UPDATE t SET a = 1 /*! WHERE id = 1 */", Dialect.SPARK) is None


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("mysql", "UPDATE t JOIN (SELECT k AS kk, b AS q FROM s) t ON id = kk SET a = q"),
        ("postgres", "DELETE FROM t WHERE EXISTS (SELECT 1 FROM s AS q, (SELECT e FROM u) AS q WHERE b = e)"),
        ("mysql", "DELETE FROM t WHERE EXISTS (SELECT 1 FROM s, s WHERE id = 1)"),
    ],
)
def test_one_name_for_two_things_of_a_query_is_refused_with_the_place(dialect: str, text: str) -> None:
    with pytest.raises(UsageError, match="Another table or query is called [tqs] here.*Line 1, column"):
        sql(text, Dialect(dialect))


@pytest.mark.parametrize(
    ("dialect", "text", "column"),
    [
        ("tsql", "UPDATE t SET a = q FROM (SELECT k AS kk, b AS q FROM s) t WHERE id = kk", 8),
        ("tsql", "UPDATE t SET a = q FROM (SELECT t.k AS kk, t.b AS q FROM s t) t WHERE id = kk", 8),
        ("tsql", "UPDATE x SET a = 1 FROM (SELECT * FROM t) x", 8),
        ("tsql", "DELETE t FROM (SELECT k FROM s) t", 8),
        ("teradata", "UPDATE t FROM (SELECT k AS kk, b AS q FROM s) t SET a = q WHERE id = kk", 8),
        ("postgres", "UPDATE t SET a = q FROM (SELECT k AS kk, b AS q FROM s) t WHERE id = kk", 8),
        ("postgres", "DELETE FROM t USING (SELECT k AS kk FROM s) t WHERE id = kk", 13),
        ("mysql", "DELETE t FROM (SELECT k FROM s) t", 8),
    ],
)
def test_a_query_of_the_name_of_what_is_changed_is_told(dialect: str, text: str, column: int) -> None:
    with pytest.raises(
        UsageError, match=f"[tx] is a query in FROM, and no table. Line 1, column {column}:"
    ) as caught:
        sql(text, Dialect(dialect))
    assert "Name the table that it reads" in caught.value.hint


@pytest.mark.parametrize("dialect", [Dialect.POSTGRES, Dialect.TSQL])
def test_nor_has_the_source_of_a_merge_the_name_of_its_table(dialect: Dialect) -> None:
    text = "MERGE INTO t USING (SELECT k AS kk, b AS q FROM s) AS t ON id = kk WHEN MATCHED THEN UPDATE SET a = q"
    with pytest.raises(UsageError, match="Another table or query is called t here"):
        draft = merge_draft(text, dialect)
        assert draft is not None
        compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables})


def test_tables_of_one_name_in_two_databases_have_two_names_in_the_end() -> None:
    text = "DELETE FROM x.t WHERE EXISTS (SELECT 1 FROM d.s, e.s WHERE b = 1)"
    draft = draft_of(text, Dialect.POSTGRES)
    assert draft is not None
    schemas = {table: SCHEMAS[table.parts[-1]] for table in draft.tables}
    schemas = {table: schema if "d" in table.parts else SCHEMAS["u"] if "e" in table.parts else schema
               for table, schema in schemas.items()}  # fmt: skip
    (step,) = compiled(draft, schemas).steps
    assert "FROM d.s AS s_, e.s AS s WHERE s_.b = 1" in step.sql.replace("`", "")
