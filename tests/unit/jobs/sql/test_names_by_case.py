"""Names that differ in nothing but case: one name in Spark, two in the databases that tell them apart."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.merges.merge_drafts import is_merge, merge_draft
from lakewarden.jobs.sql.compile.names.spelling import refuse_where_case_counts
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.upserts.upsert_drafts import is_upsert, upsert_draft
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect

SCHEMAS = {
    table: tuple(ColumnType(name=name, type="int") for name in columns)
    for table, columns in {"t": ("id", "k", "a"), "s": ("k", "b"), "u": ("k", "e"), "v": ("K", "b")}.items()
}


def done(text: str, dialect: str | None) -> Compiled:
    named = None if dialect is None else Dialect(dialect)
    read = upsert_draft if is_upsert(text) else merge_draft if is_merge(text) else draft_of
    draft = read(text, named)
    assert draft is not None
    return compiled(draft, {table: SCHEMAS[table.parts[-1].lower()] for table in draft.tables})


def sql(text: str, dialect: str | None) -> str:
    (step,) = done(text, dialect).steps
    return step.sql.replace("`", "")


@pytest.mark.parametrize(
    ("dialect", "text", "one", "other"),
    [
        ("mysql", "DELETE FROM t WHERE EXISTS (SELECT 1 FROM t T WHERE T.k = t.k AND T.id > t.id)", "t", "T"),
        ("mysql", "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u T WHERE T.k = t.k)", "t", "T"),
        ("mysql", "UPDATE t SET a = (SELECT max(T.e) FROM u T WHERE T.k = t.k)", "t", "T"),
        ("mysql", "DELETE FROM t WHERE k IN (SELECT k FROM T)", "t", "T"),
        ("mysql", "DELETE FROM t WHERE k IN (SELECT x.k FROM T x)", "t", "T"),
        ("mysql", "DELETE FROM d.t WHERE k IN (SELECT x.k FROM D.t x)", "d.t", "D.t"),
        ("mysql", "DELETE FROM d.t y WHERE k IN (SELECT x.k FROM T x)", "d.t", "T"),
        ("mysql", "DELETE FROM t WHERE k IN (WITH T AS (SELECT e AS k FROM u) SELECT k FROM t q)", "t", "T"),
        (
            "mysql",
            "DELETE FROM t WHERE k IN (WITH q AS (SELECT 1 k), Q AS (SELECT 2 k) SELECT k FROM Q)",
            "q",
            "Q",
        ),
        (
            "mysql",
            "DELETE x FROM t x JOIN s ON x.k = s.k WHERE EXISTS (SELECT 1 FROM u X WHERE X.k = x.a)",
            "x",
            "X",
        ),
        ("mysql", "DELETE FROM t USING t JOIN s q ON t.k = q.k WHERE q.b IN (SELECT Q.e FROM u Q)", "q", "Q"),
        (
            "mysql",
            "UPDATE t JOIN s q ON t.k = q.k SET t.a = (SELECT max(Q.e) FROM u Q WHERE Q.k = q.k)",
            "q",
            "Q",
        ),
        (
            "mysql",
            "UPSERT INTO t (k, a) ON (k) SELECT q.k, (SELECT max(Q.e) FROM u Q WHERE Q.k = q.k) FROM s q",
            "Q",
            "q",
        ),
        (
            "mysql",
            "REPLACE INTO t (id, k, a) SELECT 1, q.k, (SELECT max(Q.e) FROM u Q WHERE Q.k = q.k) FROM s q",
            "Q",
            "q",
        ),
        ("postgres", 'DELETE FROM t WHERE EXISTS (SELECT 1 FROM u "T" WHERE "T".k = t.k)', "t", '"T"'),
        (
            "postgres",
            'WITH "Q" AS (SELECT k FROM u), q AS (SELECT e k FROM u) DELETE FROM t USING "Q" WHERE "Q".k = a',
            '"Q"',
            "q",
        ),
        (
            "postgres",
            'UPDATE t SET a = 1 FROM s x WHERE x.k = t.k AND EXISTS (SELECT 1 FROM u "X" WHERE "X".k = x.b)',
            "x",
            '"X"',
        ),
        (
            "postgres",
            'MERGE INTO t USING s ON t.k = s.k AND s.b IN (SELECT "S".k FROM u "S") WHEN MATCHED THEN DELETE',
            "s",
            '"S"',
        ),
        (
            "postgres",
            'INSERT INTO t (k) SELECT q.k FROM s q JOIN u "Q" ON "Q".k = q.k ON CONFLICT (k) DO UPDATE SET a = 1',
            "q",
            '"Q"',
        ),
        (
            "postgres",
            'DELETE FROM t WHERE EXISTS (SELECT 1 FROM (SELECT e AS "K" FROM u) q WHERE k = 1)',
            '"K"',
            "k",
        ),
        ("postgres", 'DELETE FROM t WHERE a = (SELECT e AS "K" FROM u ORDER BY k, e LIMIT 1)', '"K"', "k"),
        (
            "postgres",
            'DELETE FROM t WHERE EXISTS (SELECT 1 FROM (SELECT e AS "K" FROM u) q JOIN s USING (k) WHERE b = 1)',
            '"K"',
            "k",
        ),
        (
            "postgres",
            'WITH "T" AS (SELECT k FROM u) DELETE FROM t USING "T" x WHERE x.k = t.k',
            '"T"',
            "t",
        ),
        (
            "postgres",
            'DELETE FROM t WHERE EXISTS (SELECT 1 FROM (SELECT v."K" FROM v) q WHERE k = 1)',
            '"K"',
            "k",
        ),
        (
            "postgres",
            'DELETE FROM t WHERE EXISTS (SELECT 1 FROM (VALUES (1)) AS q("K") WHERE k = 1)',
            '"K"',
            "k",
        ),
        (
            "postgres",
            "DELETE FROM t AS \u00c4 WHERE EXISTS (SELECT 1 FROM u \u00e4 WHERE \u00e4.k = \u00c4.k)",
            "\u00c4",
            "\u00e4",
        ),
        (
            "postgres",
            "DELETE FROM t AS k WHERE EXISTS (SELECT 1 FROM u \u212a WHERE \u212a.k = k.k)",
            "k",
            "\u212a",
        ),
        (
            "tsql",
            "DELETE i FROM t AS i WHERE EXISTS (SELECT 1 FROM u \u0131 WHERE \u0131.k = i.a)",
            "i",
            "\u0131",
        ),
    ],
)
def test_names_that_their_dialect_tells_apart_are_refused(
    dialect: str, text: str, one: str, other: str
) -> None:
    with pytest.raises(UsageError) as caught:
        done(text, dialect)
    said = f"{one} and {other} differ in nothing but case: they are two names in {dialect}, and one in Spark."
    assert str(caught.value).startswith(f"{said} Line 1, column ")
    assert "give one of them another name" in caught.value.hint


@pytest.mark.parametrize("dialect", ["tsql", "teradata", "spark"])
def test_they_are_one_where_the_dialect_knows_no_case(dialect: str) -> None:
    text = "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u {} WHERE {}.k = t.k)"
    assert sql(text.format("T", "T"), dialect) == sql(text.format("t", "t"), dialect)


def test_nor_does_postgresql_without_quotes() -> None:
    text = "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u {} WHERE {}.k = t.k)"
    assert sql(text.format("T", '"t"'), "postgres") == sql(text.format("t", "t"), "postgres")


@pytest.mark.parametrize(
    ("dialect", "text", "found"),
    [
        ("mysql", "DELETE FROM T t WHERE t.k = 1 AND k IN (SELECT k FROM u)", "FROM T"),
        ("mysql", "DELETE FROM d.t WHERE k IN (SELECT x.k FROM e.T x)", "FROM e.T AS x"),
        (
            "mysql",
            "DELETE FROM t WHERE a = (SELECT e AS K FROM u ORDER BY k LIMIT 1)",
            "SELECT u.e AS k FROM u AS u ORDER BY k",
        ),
        ("mysql", "DELETE FROM t WHERE K IN (SELECT k FROM u)", "t.k IN (SELECT u.k AS k FROM u AS u)"),
        (
            "postgres",
            'UPDATE t SET a = q."E" FROM (SELECT max(s.b) AS "E" FROM s) q JOIN u ON u.k = q."E" WHERE u.e = t.k',
            "MAX(s.b) AS e",
        ),
        (
            "postgres",
            'DELETE FROM t WHERE 1 IN (SELECT 1 FROM (SELECT e "K" FROM u) q WHERE 2 IN (SELECT q."K" FROM s))',
            "(SELECT q.k AS k FROM s AS s)",
        ),
        ("postgres", 'DELETE FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v."K" = t.k)', "v.k = t.k"),
        ("postgres", "DELETE FROM t WHERE EXISTS (SELECT 1 FROM v WHERE b = K)", "v.b = v.k"),
        (
            "postgres",
            'UPDATE t SET a = q.e FROM (SELECT "K" AS k, b AS e FROM v) q WHERE t.k = q.k',
            "SELECT v.k AS k, v.b AS e FROM v AS v",
        ),
        (
            "postgres",
            'WITH q AS (SELECT "K" AS k, b AS e FROM v) UPDATE t SET a = q.e FROM q WHERE t.k = q.k',
            "SELECT v.k AS k, v.b AS e FROM v AS v",
        ),
        ("postgres", 'DELETE FROM v WHERE "K" IN (SELECT k FROM s)', "v.k IN (SELECT s.k AS k FROM s AS s)"),
        (
            "postgres",
            'DELETE FROM t USING (SELECT b, abs(k) AS "K" FROM s) q WHERE t.k = q."K"',
            "ABS(s.k) AS k FROM s AS s",
        ),
    ],
)
def test_what_cannot_be_taken_for_another_name_passes(dialect: str, text: str, found: str) -> None:
    assert found in sql(text, dialect)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (
            'DELETE FROM t WHERE 1 IN (SELECT 1 FROM (SELECT e "K" FROM u) q WHERE 2 IN (SELECT "K" FROM s))',
            84,
        ),
        ('DELETE FROM v WHERE EXISTS (SELECT 1 FROM s WHERE "K" = s.b)', 51),
    ],
)
def test_a_quoted_column_that_tables_spell_in_two_ways_says_whose_it_is(text: str, column: int) -> None:
    with pytest.raises(
        UsageError, match=f'"K" is one of K and k, which differ in nothing but case. Line 1, column {column}:'
    ) as caught:
        done(text, "postgres")
    assert "Write whose it is" in caught.value.hint


def test_names_are_one_in_postgresql_if_they_differ_beyond_its_longest() -> None:
    text = "DELETE FROM t AS {0}a WHERE EXISTS (SELECT 1 FROM u {0}b WHERE {0}b.k = {0}a.k)"
    with pytest.raises(UsageError, match="Another name begins with the same 63 bytes"):
        done(text.format("x" * 63), "postgres")
    for dialect, length in (("postgres", 62), ("mysql", 63)):
        assert "EXISTS" in sql(text.format("x" * length), dialect)


def test_a_name_with_a_letter_that_is_two_in_lower_case_stays_what_spark_knows() -> None:
    dotted = "\u0130sim"
    draft = draft_of(f"UPDATE t SET a = x.{dotted} FROM x WHERE x.{dotted} > t.k", Dialect.POSTGRES)
    assert draft is not None
    schemas = dict.fromkeys(draft.tables, SCHEMAS["t"])
    schemas[draft.tables[1]] = (ColumnType(name=dotted, type="int"),)
    (step,) = compiled(draft, schemas).steps
    assert f"UPDATE SET `t`.`a` = `x`.`{dotted}`" in step.sql


def test_natural_join_does_not_find_a_column_of_another_case() -> None:
    text = "DELETE FROM t WHERE EXISTS (SELECT 1 FROM (SELECT e AS {} FROM u) q NATURAL JOIN s WHERE b = 1)"
    with pytest.raises(
        UsageError, match="NATURAL JOIN goes by names, and K and k differ in nothing but case"
    ):
        done(text.format('"K"'), "postgres")
    assert "q.k = s.k" in sql(text.format("K"), "postgres")


def test_without_a_dialect_they_are_sparks_with_a_note_or_asked_about() -> None:
    text = "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u {} WHERE {}.k = t.k)"
    assert "t and T are one name, where mysql has two." in done(text.format("T", "T"), None).notes
    assert done(text.format("x", "x"), None).notes == ()
    with pytest.raises(
        UsageError,
        match="one thing in tsql and another in mysql and another in teradata. x and X differ in nothing but case",
    ):
        done("DELETE x FROM t x JOIN s ON x.k = s.k WHERE EXISTS (SELECT 1 FROM u X WHERE X.k = x.a)", None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM u T WHERE T.k = t.k)", "T and t"),
        ("DELETE FROM t WHERE k IN (SELECT K FROM (SELECT e AS K FROM u) q)", "K and k"),
        ("DELETE FROM v WHERE k IN (SELECT e FROM u)", "K and k"),
        ("UPSERT INTO t (id, a) ON (id) SELECT Q.k, q.e FROM u q", "Q and q"),
        (
            "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND s.b IN (SELECT S.k FROM u S) THEN DELETE",
            "S and s",
        ),
    ],
)
def test_where_spark_is_told_that_case_counts_no_two_names_may_differ_in_it(text: str, said: str) -> None:
    read = upsert_draft if is_upsert(text) else merge_draft if is_merge(text) else draft_of
    draft = read(text, None)
    assert draft is not None
    schemas = {table: SCHEMAS[table.parts[-1].lower()] for table in draft.tables}
    with pytest.raises(UsageError, match=f"{said} differ in nothing but case: they are two names here"):
        refuse_where_case_counts(draft.identifiers, schemas, "spark.sql.caseSensitive")
    refuse_where_case_counts([], schemas, "spark.sql.caseSensitive")
