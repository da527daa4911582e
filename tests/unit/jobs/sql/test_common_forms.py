"""Forms that people write every day, in the words of their database: what becomes of them, or why it does not."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.merges.merge_drafts import merge_draft
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect, TableSchema


def schema(**columns: str) -> TableSchema:
    return tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())


SCHEMAS = {
    "t": schema(id="int", k="int", a="int", s="string", d="double", m="decimal(9,2)"),
    "s": schema(k="int", b="int", c="string", n="double"),
    "quick": schema(a="int"),
}


def done(text: str, dialect: str | None) -> Compiled:
    draft = draft_of(text, None if dialect is None else Dialect(dialect))
    assert draft is not None
    return compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables})


def changed(text: str, dialect: str | None) -> str:
    """The last clause of the one step."""
    (step,) = done(text, dialect).steps
    return step.sql.replace("`", "").rpartition(" SET ")[2]


JOIN = "FROM t JOIN s ON t.k = s.k"


@pytest.mark.parametrize(
    ("dialect", "text", "said"),
    [
        ("tsql", f"UPDATE t SET a += s.b {JOIN}", "t.a = t.a + (s.b)"),
        (None, f"UPDATE t SET a += s.b {JOIN}", "t.a = t.a + (s.b)"),
        ("tsql", f"UPDATE t SET t.a -= s.b - 1, k *= 2 {JOIN}", "t.a = t.a - (s.b - 1), t.k = t.k * (2)"),
        (
            "tsql",
            f"UPDATE x SET k /= 2, id %= 3 {JOIN.replace('t JOIN', 't x JOIN').replace('t.k', 'x.k')}",
            "x.k = x.k DIV (2), x.id = x.id % (3)",
        ),
        ("tsql", "UPDATE t SET s += '-x'", "s = t.s || ('-x')"),
        ("tsql", f"UPDATE t SET s = N'x''y' {JOIN}", "t.s = 'x\\'y'"),
        ("mysql", "UPDATE t JOIN s ON t.k = s.k SET t.s = N'x'", "t.s = 'x'"),
        ("mysql", "UPDATE LOW_PRIORITY t JOIN s ON t.k = s.k SET t.a = 1", "t.a = 1"),
        ("mysql", "UPDATE quick SET a = 1", "a = 1"),
        (
            "postgres",
            r"UPDATE t SET s = E'it''s \'q\'\t\\ \x41\101\u00e9\U0001F600\z'",
            "s = 'it\\'s \\'q\\'\t\\\\ AA\u00e9\U0001f600z'",
        ),
        ("postgres", "UPDATE t SET s = e''", "s = ''"),
    ],
)
def test_what_is_written_every_day_is_done(dialect: str | None, text: str, said: str) -> None:
    assert changed(text, dialect).replace("\\t", "\t") == said


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("tsql", f"DELETE FROM t {JOIN} WHERE s.b > 1"),
        (None, f"DELETE FROM t {JOIN} WHERE s.b > 1"),
        ("tsql", "DELETE FROM x FROM t AS x JOIN s ON x.k = s.k WHERE s.b > 1"),
        ("mysql", f"DELETE t.* {JOIN} WHERE s.b > 1"),
        ("mysql", f"DELETE QUICK t.* {JOIN} WHERE s.b > 1"),
        ("mysql", "DELETE FROM t.* USING t JOIN s ON t.k = s.k WHERE s.b > 1"),
        (None, f"DELETE t.* {JOIN} WHERE s.b > 1"),
    ],
)
def test_rows_are_deleted_by_other_tables_in_the_words_of_each_database(
    dialect: str | None, text: str
) -> None:
    (step,) = done(text, dialect).steps
    alias = "x" if "AS x" in text else "t"
    assert step.sql.replace("`", "") == (
        f"MERGE INTO t AS {alias} USING s AS s ON {alias}.k = s.k AND s.b > 1 WHEN MATCHED THEN DELETE"
    )


def test_stars_of_several_tables_delete_from_each_and_a_product_stays_one() -> None:
    steps = done("DELETE t.*, s.* FROM t JOIN s ON t.k = s.k WHERE t.a * s.b > 1", "mysql").steps
    assert [str(one.target) for one in steps] == ["t", "s"]
    assert all("CAST(`t`.`a` AS BIGINT) * `s`.`b` > 1" in one.sql for one in steps)


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET a = s.b FROM t WITH (NOLOCK) JOIN s WITH (NOLOCK, INDEX(x)) ON t.k = s.k",
        "UPDATE t WITH (ROWLOCK) SET a = s.b FROM t JOIN s (NOLOCK) ON t.k = s.k",
        "UPDATE t SET a = (SELECT MAX(b) FROM s WITH (NOLOCK) WHERE s.k = t.k)",
    ],
)
def test_hints_about_tables_are_left_out_and_that_is_told(text: str) -> None:
    found = done(text, "tsql")
    assert "Hints about tables are left out" in found.notes[0]
    assert "LOCK" not in found.steps[0].sql


@pytest.mark.parametrize(
    ("dialect", "text", "said", "column"),
    [
        ("tsql", "UPDATE TOP (5) t SET a = 1", "TOP changes some rows or others", 8),
        (None, "UPDATE TOP (5) t SET a = 1", "TOP changes some rows or others", 8),
        ("tsql", "DELETE TOP (5) FROM t", "TOP changes some rows or others", 8),
        ("postgres", "UPDATE t SET a = DEFAULT FROM s WHERE t.k = s.k", "default is not known", 18),
        (None, "UPDATE t SET a = DEFAULT WHERE k IN (SELECT k FROM s)", "default is not known", 18),
        ("mysql", "UPDATE IGNORE t JOIN s ON t.k = s.k SET t.a = 1", "IGNORE leaves rows", 8),
        ("mysql", "DELETE IGNORE FROM t", "IGNORE leaves rows", 8),
        ("teradata", "DELETE FROM t, s WHERE t.k = s.k", "not from which of them", 13),
        (None, "DELETE FROM t, s WHERE t.k = s.k", "not from which of them", 13),
        ("postgres", r"UPDATE t SET s = E'\xe9'", "is no character", 18),
        ("postgres", r"UPDATE t SET s = E'\000'", "is no character", 18),
        ("postgres", "DELETE t.* FROM t", "cannot be read here", 10),
    ],
)
def test_what_is_not_done_is_told_in_a_sentence_at_its_place(
    dialect: str | None, text: str, said: str, column: int
) -> None:
    with pytest.raises(UsageError, match=f"{said}.*\\. Line 1, column {column}:") as caught:
        done(text, dialect)
    assert "Token" not in str(caught.value) and caught.value.hint


def test_sparks_own_default_is_sparks() -> None:
    assert draft_of("UPDATE t SET a = DEFAULT WHERE k = 1") is None


@pytest.mark.parametrize(
    ("dialect", "text", "said"),
    [
        ("teradata", "UPDATE t SET m = ZEROIFNULL(m)", "m = COALESCE(t.m, 0)"),
        ("teradata", "UPDATE t SET m = NULLIFZERO(m)", "m = NULLIF(t.m, 0)"),
        ("tsql", "UPDATE t SET m = ISNULL(m, 0)", "m = COALESCE(t.m, 0)"),
    ],
)
def test_a_zero_beside_a_decimal_is_one_of_its_type(dialect: str, text: str, said: str) -> None:
    assert changed(text, dialect) == said


def test_a_number_that_a_decimals_type_would_round_is_refused() -> None:
    with pytest.raises(UsageError, match="ISNULL takes the type of its first value"):
        done("UPDATE t SET m = ISNULL(m, 0.125)", "tsql")


@pytest.mark.parametrize(
    ("dialect", "text", "note"),
    [
        (
            "postgres",
            "WITH q AS MATERIALIZED (SELECT k FROM s) DELETE FROM t USING q WHERE q.k = t.k",
            "MATERIALIZED",
        ),
        (
            "postgres",
            "DELETE FROM t WHERE k IN (WITH q AS NOT MATERIALIZED (SELECT k FROM s) SELECT k FROM q)",
            "MATERIALIZED",
        ),
        ("mysql", "UPDATE t STRAIGHT_JOIN s ON t.k = s.k SET t.a = s.b", "STRAIGHT_JOIN"),
        ("mysql", "DELETE FROM t WHERE k IN (SELECT STRAIGHT_JOIN k FROM s)", "STRAIGHT_JOIN"),
    ],
)
def test_words_for_a_planner_are_left_out_and_that_is_told(dialect: str, text: str, note: str) -> None:
    found = done(text, dialect)
    assert not any(word in step.sql for word in ("MATERIALIZED", "STRAIGHT") for step in found.steps)
    assert any(note in one for one in found.notes)


def merged(text: str, dialect: str) -> str:
    draft = merge_draft(text, Dialect(dialect))
    assert draft is not None
    (step,) = compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables}).steps
    return step.sql.replace("`", "")


def test_the_clauses_of_a_merge_come_in_sparks_order() -> None:
    said = merged(
        "MERGE INTO t USING s ON t.k = s.k WHEN NOT MATCHED BY SOURCE THEN DELETE "
        "WHEN NOT MATCHED AND s.b > 1 THEN INSERT (k) VALUES (1) "
        "WHEN NOT MATCHED THEN INSERT (k) VALUES (2) WHEN MATCHED THEN DELETE",
        "tsql",
    )
    assert [said.index(one) for one in ("VALUES (1)", "VALUES (2)")] == sorted(
        said.index(one) for one in ("VALUES (1)", "VALUES (2)")
    )
    assert said.index("WHEN MATCHED") < said.index("VALUES (1)")
    assert said.endswith("WHEN NOT MATCHED BY SOURCE THEN DELETE")


def test_a_merge_behind_with_needs_no_into() -> None:
    text = "WITH q AS (SELECT k FROM s) MERGE t USING q ON t.k = q.k WHEN MATCHED THEN DELETE"
    assert "USING (WITH q AS (SELECT s.k AS k FROM s AS s) SELECT q.* FROM q AS q)" in merged(text, "tsql")


@pytest.mark.parametrize(
    ("dialect", "text", "said"),
    [
        (
            "postgres",
            "UPDATE t SET a = 1 WHERE id = 1 WHERE k = 2",
            "There is a second WHERE. Line 1, column 33",
        ),
        ("postgres", "UPDATE t SET a = 1 FROM s FROM quick WHERE t.k = s.k", "There is a second FROM"),
        ("postgres", "DELETE FROM t WHERE a BETWEEN SYMMETRIC 9 AND 7", "SYMMETRIC is not supported"),
        (
            "postgres",
            "DELETE FROM t WHERE k IN (SELECT k FROM s FOR UPDATE)",
            "A lock .FOR UPDATE. is not supported",
        ),
        (
            "postgres",
            "DELETE FROM t WHERE k IN (SELECT k FROM s ORDER BY k FETCH FIRST 2 ROWS WITH TIES)",
            "PERCENT or WITH TIES is not supported",
        ),
    ],
)
def test_what_would_be_lost_is_refused(dialect: str, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        done(text, dialect)


def test_is_distinct_from_is_no_second_from() -> None:
    assert changed("UPDATE t SET a = s.b FROM s WHERE t.k IS DISTINCT FROM s.k", "postgres") == "t.a = s.b"


def test_not_like_passes() -> None:
    (step,) = done("DELETE FROM t WHERE s NOT LIKE 'a%'", "postgres").steps
    assert step.sql == "DELETE FROM `t` AS `t` WHERE `t`.`s` NOT LIKE 'a%'"


@pytest.mark.parametrize(
    ("dialect", "text", "said", "at"),
    [
        (
            "mysql",
            "UPDATE t LEFT JOIN (s JOIN quick ON s.b = quick.a) ON t.k = s.k SET t.a = 1",
            "as a whole",
            "s JOIN",
        ),
        (
            "mysql",
            "UPDATE t JOIN (s LEFT JOIN quick ON s.b = quick.a) ON t.k = s.k SET t.a = 1",
            "as a whole",
            "s LEFT",
        ),
        ("mysql", "DELETE t FROM t JOIN (s JOIN quick USING (a)) ON t.k = s.k", "as a whole", "s JOIN"),
        (
            "tsql",
            "DELETE t FROM t LEFT JOIN s JOIN quick ON s.b = quick.a ON t.k = s.k",
            "as a whole",
            "s JOIN",
        ),
        (
            "postgres",
            "UPDATE t SET a = 1 FROM (s JOIN quick ON b = a) AS q WHERE t.k = q.k",
            "a table, a query",
            "s JOIN",
        ),
    ],
)
def test_a_join_that_is_joined_as_a_whole_is_refused_where_that_matters(
    dialect: str, text: str, said: str, at: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        done(text, dialect)
    _, _, shown = str(caught.value).rpartition(", column ")
    assert text[int(shown.partition(":")[0]) - 1 :].startswith(at)


@pytest.mark.parametrize(
    ("dialect", "text", "said"),
    [
        ("postgres", "USING s CROSS JOIN quick ON t.k = s.k WHEN MATCHED THEN DELETE", "ON is missing"),
        (
            "tsql",
            "USING s JOIN quick ON 1 = 1 ON t.k = s.k WHEN NOT MATCHED BY SOURCE AND s.b = 1 THEN DELETE;",
            "does not see b of s",
        ),
        ("postgres", "USING s NATURAL JOIN quick ON t.k = s.k WHEN MATCHED THEN DELETE", "NATURAL JOIN"),
        (
            "postgres",
            "USING s ON t.k = s.k WHEN NOT MATCHED THEN INSERT DEFAULT VALUES",
            "has columns and VALUES",
        ),
    ],
)
def test_what_a_join_behind_using_does_not_say_is_refused(dialect: str, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        draft = merge_draft(f"MERGE INTO t {text}", Dialect(dialect))
        assert draft is not None
        compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables})
