"""What nobody can run is refused where it is read, in our words and with the place, not by Spark."""

import re
from typing import Final

import pytest
from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.dialects import PARSERS
from lakewarden.jobs.sql.compile.merges.merge_drafts import merge_draft
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.upserts.upsert_drafts import is_upsert, upsert_draft
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect

TYPES = {
    "id": "int",
    "k": "int",
    "a": "int",
    "s": "string",
    "ti": "tinyint",
    "v": "varchar(3)",
    "n": "decimal(5,2)",
}
SCHEMAS = {
    table: tuple(ColumnType(name=name, type=TYPES.get(name, "int")) for name in columns)
    for table, columns in {"t": TYPES, "s": ("k", "b"), "u": ("k", "e")}.items()
}
MERGE = "MERGE INTO t USING s ON t.k = s.k "
UPSERT = "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET "


def steps(text: str, dialect: str) -> str:
    own = Dialect(dialect)
    draft = upsert_draft(text, own) if is_upsert(text) else merge_draft(text, own) or draft_of(text, own)
    assert draft is not None
    return compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables}).steps[0].sql


def place_in(error: UsageError) -> str:
    """The text from the place on that an error shows."""
    shown, caret = str(error).splitlines()[1:]
    return shown[caret.index("^") :]


@pytest.mark.parametrize(
    ("dialect", "text", "said", "place"),
    [
        ("postgres", "UPDATE t SET a = max(a)", "An aggregate is about several rows", "max(a)"),
        ("mysql", "DELETE FROM t WHERE a > avg(a)", "An aggregate is about several rows", "avg(a)"),
        ("spark", "UPDATE t SET a = max(a) WHERE k IN (SELECT k FROM s)", "An aggregate is", "max(a)"),
        ("postgres", "DELETE FROM t WHERE k IN (SELECT k FROM s WHERE max(b) > 1)", "An aggregate is", "max(b)"),
        ("tsql", MERGE + "WHEN MATCHED AND max(s.b) > 1 THEN DELETE", "An aggregate is about", "max(s.b)"),
        ("postgres", "UPDATE t SET ti = 300", "no room in a column of type TINYINT", "300"),
        ("mysql", "UPDATE t SET ti = -129", "no room in a column of type TINYINT", "129"),
        ("postgres", "UPDATE t SET v = 'abcd'", "no room in a column of type VARCHAR", "'abcd'"),
        ("tsql", "UPDATE t SET n = 1000.5", "no room in a column of type DECIMAL", "1000.5"),
        ("postgres", UPSERT + "a = DEFAULT", "A column's default is not known", "DEFAULT"),
        ("postgres", UPSERT + "a = excluded.id", "INSERT does not name id", "excluded.id"),
        ("mysql", "INSERT IGNORE INTO t (k) VALUES (1)", "IGNORE leaves rows out", "IGNORE"),
        ("postgres", "WITH c AS (SELECT k FROM t) DELETE FROM c", "c is a query behind WITH", "c"),
        ("postgres", "UPDATE t SET (a, k) = (SELECT * FROM s)", "How many columns *", "* FROM s"),
        ("postgres", "MERGE INTO t USING f(1) AS g ON t.k = g.k WHEN MATCHED THEN DELETE", "A function is", "f("),
        ("postgres", MERGE + "WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET a = 1", "A clause before", "a = 1"),
        ("teradata", MERGE + "WHEN NOT MATCHED THEN INSERT (k) VALUES (1) "
         "WHEN NOT MATCHED AND s.b > 1 THEN INSERT (k) VALUES (2)", "A clause before", "s.b > 1"),
    ],
)  # fmt: skip
def test_it_is_refused_with_the_place(dialect: str, text: str, said: str, place: str) -> None:
    with pytest.raises(UsageError, match=said.replace("*", r"\*")) as caught:
        steps(text, dialect)
    found = place_in(caught.value)
    assert found.startswith(place), found
    assert caught.value.hint


@pytest.mark.parametrize(
    ("dialect", "text", "found"),
    [
        ("postgres", "DELETE FROM t WHERE NULL", "DELETE FROM `t` AS `t` WHERE FALSE"),
        ("postgres", "UPDATE t SET ti = -128, v = 'abc   ', n = 999.999", "UPDATE"),
        ("postgres", "UPDATE t SET a = (SELECT max(b) FROM s)", "MERGE"),
        ("mysql", "REPLACE t (k, a, id, s, ti, v, n) VALUES (1, 2, 3, 'x', 1, 'y', 1)", "no keys"),
    ],
)
def test_what_is_near_to_that_is_not(dialect: str, text: str, found: str) -> None:
    if found == "no keys":
        with pytest.raises(UsageError, match="Nobody says which columns are the keys"):
            steps(text, dialect)
    else:
        assert steps(text, dialect).startswith(found)


def test_defaults_in_sparks_own_merge_are_sparks() -> None:
    assert merge_draft(MERGE + "WHEN MATCHED THEN UPDATE SET a = DEFAULT", Dialect.SPARK) is None


_OF_CLASSES: Final = {
    name.upper() for kind in exp.ALL_FUNCTIONS for name in (*kind.sql_names(), kind.key, kind.__name__)
}
_SQL: Final = frozenset({"AVG", "CAST", "EXTRACT", "LIKE", "MAX", "NULLIF", "SUM", "TRY_CAST"})
"""Functions of every dialect, of which what is refused of them speaks."""


def names_in(refusal: UsageError, text: str) -> set[str]:
    """The names of sqlglot's classes in what a refusal says that nobody has written."""
    said = str(refusal).partition(" Line ")[0]
    words = set(re.findall("[A-Z][A-Z_0-9]+", said)) - set(re.findall("[A-Z_0-9]+", text.upper()))
    return words & _OF_CLASSES - _SQL


@pytest.mark.few(2)
@pytest.mark.heavy
@pytest.mark.parametrize("dialect", ["postgres", "mysql", "tsql", "teradata"])
def test_a_refusal_of_a_function_names_it_as_it_is_written(dialect: str) -> None:
    parser = PARSERS[Dialect(dialect)].parser_class
    found, refused = dict[str, set[str]](), 0
    for name in sorted({*parser.FUNCTIONS, *parser.FUNCTION_PARSERS}):
        for arguments in ("s, s", "s", "a, 1, 1"):
            text = f"DELETE FROM t WHERE {name}({arguments}) = 1"
            try:
                draft = draft_of(text, Dialect(dialect))
                assert draft is not None
                compiled(draft, dict.fromkeys(draft.tables, SCHEMAS["t"]))
            except UsageError as error:
                refused += "may mean something else" in str(error)
                if names := names_in(error, text):
                    found[text] = names
    assert found == {}
    assert refused > 300


@pytest.mark.parametrize(
    ("dialect", "condition", "said"),
    [
        ("mysql", "DATE(s) = '2024-01-05'", "DATE may mean"),
        ("mysql", "DATE_FORMAT(s, '%Y') = '2024'", "DATE_FORMAT may mean"),
        ("mysql", "INSTR(s, 'x') = 1", "INSTR may mean"),
        ("mysql", "s = X'41'", "X'41' may mean"),
        ("tsql", "CHARINDEX(s, s) = 1", "CHARINDEX may mean"),
        ("teradata", "LPAD(s, 3, ' ') = 'x'", "LPAD may mean"),
        ("postgres", "k IN (SELECT 1 FROM s HAVING bool_or(b = 1))", "BOOL_OR may mean"),
        ("postgres", "s ~ 'x'", "This may mean"),
        ("postgres", "s ILIKE 'x'", "This may mean"),
        (
            "postgres",
            "k = (SELECT b FROM s ORDER BY b FETCH FIRST 1 ROWS WITH TIES)",
            "WITH TIES is not supported here",
        ),
        (
            "tsql",
            "k = (SELECT TOP 10 PERCENT b FROM s ORDER BY b)",
            "PERCENT or WITH TIES is not supported here",
        ),
        ("postgres", "k IN (SELECT b FROM s FOR UPDATE)", "A lock .FOR UPDATE. is not supported here"),
    ],
)
def test_what_is_refused_has_the_name_that_it_has_in_the_statement(
    dialect: str, condition: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        steps(f"DELETE FROM t WHERE {condition}", dialect)
