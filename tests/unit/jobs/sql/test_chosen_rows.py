"""Queries that give several columns, what chance decides in them, and whose column USING means."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.merges.merge_drafts import merge_draft
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.upserts.upsert_drafts import is_upsert, upsert_draft
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect, TableSchema, policy_of


def schema(**columns: str) -> TableSchema:
    return tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())


SCHEMAS = {
    "t": schema(id="int", k="int", a="int", s="string", d="double"),
    "s": schema(k="int", b="int", c="string", n="double"),
    "u": schema(k="int", e="int"),
    "p": schema(k="int", a="int"),
}


def done(text: str, dialect: str | None = "postgres") -> Compiled:
    chosen = None if dialect is None else Dialect(dialect)
    draft = upsert_draft(text, chosen) if is_upsert(text) else merge_draft(text) or draft_of(text, chosen)
    assert draft is not None
    return compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables})


def statement(text: str, dialect: str = "postgres") -> str:
    (step,) = done(text, dialect).steps
    return step.sql.replace("`", "")


def test_a_query_of_several_columns_is_asked_once() -> None:
    text = "UPDATE t SET (a, s) = (SELECT b, c FROM s WHERE s.k = t.k ORDER BY n LIMIT 1)"
    assert statement(text) == (
        "MERGE INTO t AS target USING (SELECT k0, lakewarden_row0.c0 AS v0, lakewarden_row0.c1 AS v1 FROM "
        "(SELECT t.k AS k0, (SELECT NAMED_STRUCT('c0', row.c0, 'c1', row.c1) FROM (SELECT s.b AS b, s.c AS c "
        "FROM s AS s WHERE s.k = t.k ORDER BY s.n NULLS LAST LIMIT 1) AS row(c0, c1)) AS lakewarden_row0 "
        "FROM (SELECT DISTINCT k FROM t) AS t) AS rows) AS source ON target.k <=> source.k0 "
        "WHEN MATCHED THEN UPDATE SET target.a = source.v0, target.s = source.v1"
    )


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        (
            "SELECT b, c FROM s ORDER BY 1 LIMIT 1",
            "SELECT s.b AS b, s.c AS c FROM s AS s ORDER BY b NULLS LAST LIMIT 1",
        ),
        ("SELECT DISTINCT b, c FROM s", "SELECT DISTINCT s.b AS b, s.c AS c FROM s AS s"),
        ("SELECT b, max(c) FROM s GROUP BY 1", "MAX(s.c) AS _col_1 FROM s AS s GROUP BY s.b)"),
    ],
)
def test_what_a_query_says_of_its_columns_by_number_or_of_all_stays_as_it_is(query: str, kept: str) -> None:
    said = statement(f"UPDATE t SET (a, s) = ({query})")
    assert said.count(kept) == 1 and said.count("FROM s AS s") == 1


def test_several_queries_of_several_columns_beside_other_values() -> None:
    said = statement(
        "UPDATE t SET d = a, (id, s) = (SELECT n, c FROM s WHERE s.k = t.k), "
        "(a, k) = (SELECT max(e), count(*) FROM u)"
    )
    assert said.count("NAMED_STRUCT") == 2
    assert said.endswith(
        "UPDATE SET target.d = target.a, target.id = source.v1, target.s = source.v2, "
        "target.a = source.v3, target.k = source.v4"
    )
    assert "RINT(lakewarden_row0.c0) AS v1" in said, "it is rounded as the dialect rounds"
    assert "lakewarden_row1.c1 AS v4" in said


def test_a_match_is_chosen_by_the_columns_of_the_row_and_by_the_column_of_the_policy() -> None:
    text = "UPDATE t SET (a, s) = (SELECT e, c FROM s WHERE s.k = t.k) FROM u WHERE u.k = t.k"
    draft = draft_of(text, Dialect.POSTGRES)
    assert draft is not None
    schemas = {table: SCHEMAS[table.parts[-1]] for table in draft.tables}
    last = compiled(draft, schemas, policy_of("last by u.e")).steps[0].sql.replace("`", "")
    assert "SELECT k0, lakewarden_row0.c0 AS v0, lakewarden_row0.c1 AS v1, by FROM (SELECT" in last
    least = compiled(draft, schemas, policy_of("any")).steps[0].sql.replace("`", "")
    assert "ORDER BY v0, v1" in least


def test_a_row_written_as_one_is_a_value_for_each_column() -> None:
    assert statement("UPDATE t SET (a, s) = ROW(1, 'x')") == "UPDATE t AS t SET a = 1, s = 'x'"
    with pytest.raises(UsageError, match="not as many values as columns"):
        done("UPDATE t SET (a, s) = (SELECT b FROM s)")


TIES = "LIMIT takes rows of equal order by chance; order them by more columns if that matters."
CHANCES = {
    "UPDATE t SET a = (SELECT b FROM s ORDER BY n LIMIT 1)": ("postgres", TIES),
    "DELETE FROM t WHERE k IN (SELECT k FROM u ORDER BY e LIMIT 3)": ("postgres", TIES),
    "UPDATE t SET a = (SELECT TOP 1 b FROM s ORDER BY n)": ("tsql", TIES),
    "UPDATE t SET a = (SELECT DISTINCT ON (k) b FROM s WHERE s.k = t.k)": (
        "postgres",
        TIES.replace("LIMIT", "DISTINCT ON"),
    ),
    "UPDATE t SET a = (SELECT b FROM s LIMIT 1)": ("spark", "LIMIT without ORDER BY takes rows by chance."),
    "UPDATE t SET a = (SELECT first(b) FROM s)": (
        "spark",
        "FIRST depends on the order in which rows come, which is one of chance.",
    ),
    "UPDATE t SET a = (SELECT max(b) FROM s TABLESAMPLE (10 ROWS))": (
        "spark",
        "TABLESAMPLE takes rows by chance.",
    ),
    "UPDATE t SET a = (SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY n) AS r FROM s))": (
        "spark",
        TIES.replace("LIMIT", "ROW_NUMBER"),
    ),
    (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET a = (SELECT e "
        "FROM u ORDER BY k LIMIT 1)"
    ): (
        "spark",
        TIES,
    ),
    "UPSERT INTO p (k, a) ON (k) SELECT k, first(e) FROM u GROUP BY k": (
        "spark",
        "FIRST depends on the order in which rows come, which is one of chance.",
    ),
}


@pytest.mark.parametrize("text", CHANCES)
def test_what_chance_decides_is_told(text: str) -> None:
    dialect, note = CHANCES[text]
    assert note in done(text, dialect).notes


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgres", "UPDATE t SET a = (SELECT b FROM s ORDER BY b DESC LIMIT 1)"),
        ("postgres", "UPDATE t SET (a, s) = (SELECT b, c FROM s ORDER BY 2, 1 LIMIT 1)"),
        ("postgres", "UPDATE t SET a = (SELECT DISTINCT ON (k, b) b FROM s WHERE s.k = t.k)"),
        ("postgres", "DELETE FROM t WHERE k IN (SELECT k FROM s UNION SELECT e FROM u ORDER BY 1 LIMIT 2)"),
        ("spark", "UPDATE t SET a = (SELECT max(b) FROM s LIMIT 1) WHERE EXISTS (SELECT 1 FROM u LIMIT 1)"),
    ],
)
def test_where_chance_decides_nothing_nothing_is_told(dialect: str, text: str) -> None:
    assert "chance" not in " ".join(done(text, dialect).notes)


def test_several_tables_are_not_changed_by_a_choice_of_chance() -> None:
    text = "UPDATE t JOIN u ON t.k = u.k SET t.a = (SELECT b FROM s ORDER BY {} LIMIT 1), u.e = 0"
    with pytest.raises(UsageError, match="another choice of rows"):
        done(text.format("n"), "mysql")
    assert len(done(text.format("b"), "mysql").steps) == 2


def test_distinct_on_goes_by_what_its_columns_are_and_has_no_limit() -> None:
    said = statement("UPDATE t SET a = (SELECT DISTINCT ON (b) k AS b FROM s ORDER BY b, n)")
    assert "PARTITION BY s.k ORDER BY s.k NULLS LAST, s.n NULLS LAST" in said
    with pytest.raises(UsageError, match="DISTINCT ON with LIMIT"):
        done("UPDATE t SET a = (SELECT DISTINCT ON (k) b FROM s ORDER BY k LIMIT 1)")


@pytest.mark.parametrize(
    ("dialect", "text", "on"),
    [
        (
            "postgres",
            "UPDATE t SET a = b FROM s JOIN u USING (k) WHERE t.id = s.n",
            "s AS s JOIN u AS u ON s.k = u.k",
        ),
        (
            "postgres",
            "UPDATE t SET a = b FROM s LEFT JOIN u USING (k) JOIN p USING (k) WHERE t.id = s.n",
            "s AS s LEFT JOIN u AS u ON s.k = u.k JOIN p AS p ON s.k = p.k",
        ),
        (
            "mysql",
            "UPDATE t, s JOIN u USING (k) SET t.a = s.b WHERE t.id = s.b",
            "s AS s JOIN u AS u ON s.k = u.k",
        ),
        (
            "mysql",
            "UPDATE t JOIN s USING (k) SET t.a = s.b WHERE k = 1",
            "t.k = s.k AND COALESCE(t.k, s.k) = 1",
        ),
        (
            "postgres",
            "DELETE FROM t WHERE a IN (SELECT s.b FROM u, s JOIN p USING (k) WHERE u.e = s.b)",
            "JOIN p AS p ON s.k = p.k",
        ),
        (
            "postgres",
            (
                "UPDATE t SET a = 1 FROM (SELECT e AS j FROM u) q JOIN (SELECT k AS j FROM s) r "
                "USING (j) WHERE t.id = j"
            ),
            "ON q.j = r.j) AS source ON t.id = COALESCE(source.c0, source.c1)",
        ),
        (
            "postgres",
            "UPDATE t SET a = 1 FROM s RIGHT JOIN u USING (k) JOIN p USING (k) WHERE t.id = u.e",
            "s AS s RIGHT JOIN u AS u ON s.k = u.k JOIN p AS p ON COALESCE(s.k, u.k) = p.k",
        ),
        (
            "postgres",
            "DELETE FROM t WHERE a IN (SELECT k FROM (SELECT e FROM u) u, s FULL JOIN p USING (k))",
            "SELECT COALESCE(s.k, p.k) AS k FROM",
        ),
    ],
)
def test_using_means_a_column_of_what_is_joined(dialect: str, text: str, on: str) -> None:
    assert on in statement(text, dialect)


@pytest.mark.parametrize(
    ("dialect", "text", "said"),
    [
        ("postgres", "UPDATE t SET a = 1 FROM s JOIN u USING (k) WHERE t.id = k", "k is not clear here"),
        ("mysql", "UPDATE t JOIN s ON t.id = s.b JOIN u USING (k) SET t.a = 1", "Whose k USING means"),
        ("spark", "DELETE FROM t WHERE a IN (SELECT s.b FROM u, s JOIN p USING (k))", "Whose k USING means"),
        (
            "postgres",
            "DELETE FROM t WHERE a IN (SELECT s.b FROM u, s NATURAL JOIN p)",
            "NATURAL JOIN of several",
        ),
    ],
)
def test_where_using_is_not_clear_it_is_refused(dialect: str, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"{said}.* Line 1, column"):
        done(text, dialect)
