"""Every part of a statement is in what becomes of it, or is refused: what is changed or added is seen."""

import random

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.dialects import PARSERS
from lakewarden.jobs.sql.compile.merges.merge_drafts import is_merge, merge_draft
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.upserts.upsert_drafts import is_upsert, upsert_draft
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect
from support.builders.warehouse_changes import CASES

SCHEMAS = {
    table: tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())
    for table, columns in {
        "t": {"id": "int", "k": "int", "a": "int", "s": "string", "d": "double"},
        "s": {"k": "int", "b": "int", "c": "string", "n": "double"},
        "u": {"k": "int", "e": "int"},
        "p": {"k": "int", "a": "int", "s": "string"},
    }.items()
}
STATEMENTS = {name: ours for name, (ours, _) in CASES.items() if not name.startswith("spark:")} | {
    "postgres: MERGE": (
        "MERGE INTO t USING s ON t.k = s.k AND t.id > 1 WHEN MATCHED AND s.b > 2 THEN UPDATE "
        "SET a = s.b + 3 WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND s.b < 4 "
        "THEN INSERT (k, a) VALUES (s.k, 5)"
    ),
    "postgres: ON CONFLICT": (
        "INSERT INTO p (k, a) SELECT k, b + 1 FROM s WHERE b > 2 ON CONFLICT (k) DO UPDATE "
        "SET a = excluded.a + 3 WHERE p.a < 4"
    ),
    "teradata: QUALIFY": (
        "UPDATE t FROM (SELECT k, b FROM s WHERE b > 1 "
        "QUALIFY RANK() OVER (PARTITION BY k ORDER BY b) = 2) q SET a = q.b + 3 WHERE q.k = t.k AND t.id > 4"
    ),
}
ADDED = (
    "WHERE k = 77", "AND t.k = 77", "HAVING 77 = 78", "LIMIT 77", "OFFSET 77", "FOR UPDATE", "NOT", "TOP 77",
    "TABLESAMPLE SYSTEM (77)", "PARTITION (p77)", "FETCH FIRST 77 ROWS WITH TIES",
    "BETWEEN SYMMETRIC 9 AND 7",
    "FILTER (WHERE 77 = 78)", "WITH ROLLUP", "ESCAPE '7'", "GROUP BY t.k", "INTO x77",
    "UNION SELECT 77", "QUALIFY 77 = 78", "IGNORE", "USING SAMPLE 7 PERCENT", "ORDER BY k LIMIT 77",
)  # fmt: skip


def done(text: str, dialect: Dialect) -> tuple[str, ...] | None:
    """The plain statements; None if it is refused."""
    read = merge_draft if is_merge(text) else upsert_draft if is_upsert(text) else draft_of
    try:
        draft = read(text, dialect)
        assert draft is not None, text
        schemas = {table: SCHEMAS.get(table.parts[-1].lower(), SCHEMAS["u"]) for table in draft.tables}
        return tuple(step.sql for step in compiled(draft, schemas).steps)
    except UsageError:
        return None


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_value_that_is_changed_is_seen(name: str) -> None:
    text, dialect = STATEMENTS[name], Dialect(name.partition(":")[0])
    before = done(text, dialect)
    assert before is not None
    for token in PARSERS[dialect].tokenize(text):
        other = {"NUMBER": "50", "STRING": "'zz'"}.get(token.token_type.name)
        if other is not None:
            changed = text[: token.start] + other + text[token.end + 1 :]
            assert done(changed, dialect) != before, changed


@pytest.mark.heavy
def test_a_part_that_is_added_is_seen() -> None:
    chosen, seen, refused = random.Random(38), 0, 0
    for name, text in STATEMENTS.items():
        dialect = Dialect(name.partition(":")[0])
        before = done(text, dialect)
        tokens = PARSERS[dialect].tokenize(text)
        for token in chosen.sample(tokens, min(len(tokens), 6)):
            part = chosen.choice(ADDED)
            longer = f"{text[: token.end + 1]} {part} {text[token.end + 1 :]}"
            after = done(longer, dialect)
            assert after != before, longer
            seen, refused = seen + 1, refused + (after is None)
    assert seen > 200 and refused > seen // 2
