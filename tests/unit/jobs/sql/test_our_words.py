"""What nobody can run is refused where it is read, in our words and with the place, not by Spark."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
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
