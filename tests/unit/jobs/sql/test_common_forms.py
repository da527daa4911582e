"""Forms that people write every day, in the words of their database: what becomes of them, or why it does not."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect, TableSchema


def schema(**columns: str) -> TableSchema:
    return tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())


SCHEMAS = {
    "t": schema(id="int", k="int", a="int", s="string", d="double"),
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
