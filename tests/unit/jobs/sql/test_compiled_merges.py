"""MERGE: what its source is asked for the queries in its conditions, and what those of other dialects mean."""

import pytest

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.merges.merge_drafts import merge_draft
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect, MatchPolicy, StepKind, TableName
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import ChangeRows, Explain, Unmanaged
from support.builders.warehouse_upserts import MERGES

SCHEMAS = {
    table: tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())
    for table, columns in {
        "t": {"id": "int", "k": "int", "a": "int", "s": "string", "d": "double"},
        "s": {"k": "int", "b": "int", "c": "string", "n": "double"},
        "u": {"k": "int", "e": "int"},
    }.items()
}
BEGIN = "MERGE INTO t USING s ON t.k = s.k "


def done(text: str, dialect: Dialect | None = None) -> Compiled:
    draft = merge_draft(text, dialect)
    assert draft is not None, "Spark runs it as it is"
    return compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables})


def test_a_scalar_query_becomes_a_column_of_the_source() -> None:
    compiled_ = done(
        "MERGE INTO db.t x USING db.s ON x.k = s.k AND a < (SELECT max(e) FROM u) WHEN MATCHED "
        "THEN UPDATE SET x.a = b"
    )
    (step,) = compiled_.steps
    assert (compiled_.dialect, compiled_.target, step.kind) == (
        Dialect.SPARK,
        TableName(parts=("db", "t")),
        StepKind.MERGE,
    )
    assert step.sql == (
        "MERGE INTO `db`.`t` AS `x` USING (SELECT `s`.*, (SELECT MAX(`u`.`e`) AS `_col_0` FROM `u` AS `u`)"
        " AS `lakewarden_q0` FROM `db`.`s` AS `s`) AS `s` ON `x`.`k` = `s`.`k` "
        "AND `x`.`a` < `s`.`lakewarden_q0` WHEN MATCHED THEN UPDATE SET `a` = `s`.`b`"
    )


def test_in_and_exists_are_columns_as_a_whole_and_in_keeps_its_null() -> None:
    (step,) = done(
        BEGIN + "WHEN MATCHED AND NOT s.b IN (SELECT e FROM u) THEN DELETE "
        "WHEN NOT MATCHED AND EXISTS (SELECT 1 FROM u WHERE u.k = b) THEN INSERT (k) "
        "VALUES ((SELECT min(e) FROM u))"
    ).steps
    asked = "`s`.`b` IN (SELECT `u`.`e` AS `e` FROM `u` AS `u`)"
    assert (
        f"CASE WHEN {asked} THEN TRUE WHEN NOT {asked} THEN FALSE END AS `lakewarden_q0`".replace(
            "`s`.", "`s_`."
        )
        in step.sql
    )
    assert "EXISTS(SELECT 1 AS `1` FROM `u` AS `u` WHERE `u`.`k` = `s_`.`b`) AS `lakewarden_q1`" in step.sql
    assert step.sql.endswith(
        "WHEN MATCHED AND NOT `s_`.`lakewarden_q0` THEN DELETE WHEN NOT MATCHED AND `s_`.`lakewarden_q1`"
        " THEN INSERT (`k`) VALUES (`s_`.`lakewarden_q2`)"
    )


@pytest.mark.parametrize("name", MERGES)
def test_each_case_is_one_merge_whose_conditions_ask_nothing(name: str) -> None:
    dialect = None if name.startswith("spark:") else Dialect(name.partition(":")[0])
    statement = parse(MERGES[name], dialect)
    assert isinstance(statement, ChangeRows)
    (step,) = done(MERGES[name], dialect).steps
    assert "SELECT" not in step.sql.rpartition(" ON ")[2]
    explained = parse(f"EXPLAIN GOVERNED {MERGES[name]}", dialect)
    assert isinstance(explained, Explain) and isinstance(explained.statement, ChangeRows)


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("t.a IN (SELECT e FROM u)", "`k`, `a`"),
        ("EXISTS (SELECT 1 FROM u WHERE u.e = t.a)", "`k`, `a`"),
        ("(SELECT max(e) FROM u WHERE u.e > a) = 1", "`k`, `a`"),
        ("s.k IN (SELECT k FROM u WHERE e = (SELECT max(b) FROM s AS y WHERE y.k = t.k))", "`k`"),
        ("s.b > ALL (SELECT e FROM u WHERE u.k <> t.k)", "`k`"),
    ],
)
def test_a_query_about_a_column_of_the_target_is_asked_for_each_of_its_values_that_on_allows(
    condition: str, keys: str
) -> None:
    (step,) = done(f"{BEGIN}WHEN MATCHED AND {condition} THEN DELETE").steps
    assert f" LEFT JOIN (SELECT DISTINCT {keys} FROM `t`) AS `t` ON `t`.`k` = " in step.sql
    _, _, on = step.sql.rpartition(" ON ")
    found_again = [f"`t`.{key} IS NOT DISTINCT FROM" for key in keys.split(", ")]
    assert all(again in on for again in found_again) and "SELECT" not in on


def test_a_query_about_the_target_in_on_finds_the_matches_first() -> None:
    (step,) = done(
        "MERGE INTO t USING s ON t.k = s.k AND t.a IN (SELECT e FROM u) WHEN MATCHED THEN DELETE"
    ).steps
    assert " FROM `s` AS `s`, (SELECT DISTINCT `k`, `a` FROM `t`) AS `t` WHERE " in step.sql.replace(
        "s_", "s"
    )
    on = step.sql.rpartition(" ON ")[2]
    assert on.count("IS NOT DISTINCT FROM") == 2 and " = " not in on
    with pytest.raises(UsageError, match=r"there are clauses for rows without a match. Line 1, column 39:"):
        done(
            "MERGE INTO t USING s ON t.k = s.k AND t.a IN (SELECT e FROM u) WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)"
        )


def test_queries_of_with_are_the_sources() -> None:
    (step,) = done(
        "WITH q AS (SELECT k, max(e) AS m FROM u GROUP BY k) MERGE INTO t USING q ON t.k = q.k "
        "WHEN MATCHED AND q.m IN (SELECT m FROM q) THEN UPDATE SET a = q.m"
    ).steps
    assert step.sql.startswith("MERGE INTO `t` AS `t` USING (WITH `q` AS (SELECT ")


@pytest.mark.parametrize(
    ("dialect", "text", "wanted"),
    [
        (
            "postgres",
            BEGIN + "WHEN MATCHED THEN UPDATE SET a = s.b / 2 WHEN NOT MATCHED AND b > 1 "
            "THEN INSERT (k, a) VALUES (k, 2.5)",
            (
                "WHEN MATCHED THEN UPDATE SET `a` = `s`.`b` DIV 2 WHEN NOT MATCHED AND `s`.`b` > 1 "
                "THEN INSERT (`k`, `a`) VALUES (`s`.`k`, ROUND(2.5))"
            ),
        ),
        (
            "tsql",
            (
                "MERGE t AS x USING s ON x.k = s.k WHEN MATCHED AND x.a > 1 THEN UPDATE SET a += s.b "
                "WHEN NOT MATCHED BY TARGET THEN INSERT (k, a) VALUES (s.k, s.b) "
                "WHEN NOT MATCHED BY SOURCE AND a > 1 THEN DELETE;"
            ),
            (
                "WHEN MATCHED AND `x`.`a` > 1 THEN UPDATE SET `a` = `x`.`a` + (`s`.`b`) "
                "WHEN NOT MATCHED THEN INSERT (`k`, `a`) VALUES (`s`.`k`, `s`.`b`) "
                "WHEN NOT MATCHED BY SOURCE AND `x`.`a` > 1 THEN DELETE"
            ),
        ),
        (
            "teradata",
            (
                "MERGE INTO t USING VALUES (1, 2) AS v (k, b) ON t.k = v.k WHEN MATCHED THEN UPD "
                "SET a = v.b / 4 WHEN NOT MATCHED THEN INS VALUES (0, v.k, v.b, 'x', NULL)"
            ),
            (
                "WHEN MATCHED THEN UPDATE SET `a` = `v`.`b` DIV 4 WHEN NOT MATCHED "
                "THEN INSERT (`id`, `k`, `a`, `s`, `d`) VALUES (0, `v`.`k`, `v`.`b`, 'x', NULL)"
            ),
        ),
    ],
)
def test_a_merge_of_a_chosen_dialect_means_what_it_means_there(dialect: str, text: str, wanted: str) -> None:
    assert merge_draft(text.replace("MERGE t AS", "MERGE INTO t AS")) is None, (
        "Spark's, as long as nobody chooses"
    )
    (step,) = done(text, Dialect(dialect)).steps
    assert step.sql.replace("`s_`", "`s`").endswith(wanted)


@pytest.mark.parametrize(
    ("dialect", "clauses", "said"),
    [
        ("postgres", "WHEN MATCHED THEN DO NOTHING", "This MERGE does nothing"),
        (
            "postgres",
            "WHEN NOT MATCHED THEN INSERT DEFAULT VALUES",
            "INSERT in a MERGE has columns and VALUES",
        ),
        ("postgres", "WHEN MATCHED THEN UPDATE SET a = DEFAULT", "default is not known"),
        ("postgres", "WHEN MATCHED THEN UPDATE SET a = s.c", "text becomes integer by other rules"),
        (
            "postgres",
            "WHEN MATCHED THEN UPDATE SET (a, k) = (SELECT e, k FROM u)",
            "A query of several columns",
        ),
        ("postgres", "WHEN NOT MATCHED THEN INSERT (k) VALUES (t.k)", "WHEN NOT MATCHED does not see k of t"),
        ("postgres", "WHEN NOT MATCHED THEN INSERT VALUES (s.k)", "INSERT has 1 values, and t has 5 columns"),
        ("postgres", "WHEN NOT MATCHED THEN INSERT (k, x) VALUES (s.k, 1)", "t has no column x"),
        ("postgres", "WHEN NOT MATCHED THEN INSERT (k, k) VALUES (s.k, 1)", "k is set twice"),
        ("postgres", "WHEN MATCHED THEN DELETE RETURNING t.k", "RETURNING and OUTPUT return rows"),
        ("tsql", "WHEN MATCHED THEN DELETE OUTPUT deleted.k", "RETURNING and OUTPUT return rows"),
        (
            "tsql",
            "WHEN NOT MATCHED BY SOURCE AND s.b = 1 THEN DELETE",
            "WHEN NOT MATCHED BY SOURCE does not see b",
        ),
        ("tsql", "WHEN NOT MATCHED BY SOURCE AND a IN (SELECT e FROM u) THEN DELETE", "asks no query"),
        ("teradata", "WHEN NOT MATCHED THEN INSERT (s.k, s.b)", "has columns and VALUES here"),
        ("teradata", "WHEN MATCHED THEN UPDATE SET a = (SELECT TOP 1 e FROM u)", "LIMIT without ORDER BY"),
    ],
)
def test_what_a_merge_of_a_chosen_dialect_cannot_be_is_told(dialect: str, clauses: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        done(BEGIN + clauses, Dialect(dialect))


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        (
            "s.k NOT IN (SELECT a FROM t)",
            (
                "CASE WHEN 0 < (SELECT COUNT(*) FROM (SELECT t.a AS a FROM t AS t) AS compared(value) "
                "WHERE compared.value = (s_.k)) THEN TRUE "
                "WHEN 0 = (SELECT COUNT(*) FROM (SELECT t.a AS a FROM t AS t) AS compared(value) "
                "WHERE COALESCE(compared.value = (s_.k), TRUE)) THEN FALSE END"
            ),
        ),
        (
            "NOT EXISTS (SELECT 1 FROM u JOIN t AS x ON x.k = u.k WHERE u.e = s.b)",
            "(0 < (SELECT COUNT(*) FROM u AS u JOIN t AS x ON x.k = u.k WHERE u.e = s_.b))",
        ),
    ],
)
def test_conditions_about_the_target_itself_are_counts(condition: str, asked: str) -> None:
    (step,) = done(f"{BEGIN}WHEN MATCHED AND {condition} THEN DELETE").steps
    assert asked.replace("s_", "s") in step.sql.replace("`", "").replace("s_", "s")
    assert "EXISTS" not in step.sql and " IN (" not in step.sql
    done(f"{BEGIN}WHEN MATCHED AND s.b < (SELECT max(e) FROM u WHERE e IN (SELECT a FROM t)) THEN DELETE")


@pytest.mark.parametrize(
    ("condition", "at"),
    [
        ("s.k IN (SELECT max(k) FROM t)", "t)"),
        ("(s.k, s.b) IN (SELECT k, a FROM t)", "t)"),
        ("EXISTS (SELECT k FROM t GROUP BY k HAVING count(*) > 1)", "t GROUP"),
        ("s.k > ALL (SELECT k FROM t)", "t)"),
    ],
)
def test_other_conditions_about_the_target_are_refused_with_their_place(condition: str, at: str) -> None:
    text = f"{BEGIN}WHEN MATCHED AND {condition} THEN DELETE"
    with pytest.raises(
        UsageError, match="This condition of a MERGE may not ask t, the table that is changed"
    ) as caught:
        done(text)
    _, _, shown = str(caught.value).rpartition(", column ")
    assert text[int(shown.partition(":")[0]) - 1 :].startswith(at)
    assert "SELECT count(*)" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        BEGIN + "WHEN MATCHED THEN UPDATE SET a = s.b",
        (
            "MERGE INTO t USING (SELECT * FROM s WHERE k IN (SELECT k FROM u)) AS s ON t.k = s.k "
            "WHEN MATCHED THEN DELETE"
        ),
        BEGIN + "AND EXISTS (SELECT 1 FROM u) WHEN MATCHED THEN UPDATE SET *",
        BEGIN + "AND EXISTS (SELECT 1 FROM u) WHEN NOT MATCHED THEN INSERT *",
        BEGIN + "WHEN NOT MATCHED BY SOURCE AND EXISTS (SELECT 1 FROM u) THEN DELETE",
        "MERGE INTO t USING db.s ON t.k = db.s.k AND EXISTS (SELECT 1 FROM u) WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING (SELECT 1 AS k) ON EXISTS (SELECT 1 FROM u) WHEN MATCHED THEN DELETE",
        "WITH q AS (SELECT 1 AS k) MERGE INTO t USING q ON t.k = q.k WHEN MATCHED THEN DELETE",
        (
            "WITH RECURSIVE q AS (SELECT 1) MERGE INTO t USING s ON EXISTS (SELECT 1 FROM q) "
            "WHEN MATCHED THEN DELETE"
        ),
        "MERGE INTO t USING s ON EXISTS (SELECT",
        BEGIN + "AND EXISTS (SELECT 1 FROM u) WHEN MATCHED THEN DELETE; DROP TABLE t",
        "SELECT 'MERGE INTO t USING s ON EXISTS (SELECT 1)'",
    ],
)
def test_everything_else_is_left_to_spark(text: str) -> None:
    assert merge_draft(text) is None


def test_system_tables_stay_out() -> None:
    with pytest.raises(NotAllowedError, match="is a system table"):
        parse(BEGIN + "WHEN MATCHED AND EXISTS (SELECT 1 FROM lakewarden.tables) THEN DELETE")
    assert isinstance(parse(BEGIN + "WHEN MATCHED THEN DELETE"), Unmanaged)


def test_a_name_that_is_not_there_is_told_with_its_place() -> None:
    with pytest.raises(UsageError, match="There is no column zz in .*Line 1, column"):
        done(BEGIN + "WHEN MATCHED AND s.k IN (SELECT zz FROM u) THEN DELETE")


def test_a_list_asks_nothing_and_stays_where_it_is() -> None:
    (step,) = done(BEGIN + "AND t.a IN (1, 2) AND EXISTS (SELECT 1 FROM u) WHEN MATCHED THEN DELETE").steps
    assert step.sql.endswith("AND `t`.`a` IN (1, 2) AND `s`.`lakewarden_q0` WHEN MATCHED THEN DELETE")
    assert "lakewarden_q1" not in step.sql


def test_what_is_left_alone_is_said_in_the_clauses_behind() -> None:
    (step,) = done(
        BEGIN + "WHEN MATCHED AND a = 1 THEN DO NOTHING WHEN NOT MATCHED THEN DO NOTHING "
        "WHEN MATCHED AND s.b > 2 THEN DELETE WHEN MATCHED THEN UPDATE SET a = 0",
        Dialect.POSTGRES,
    ).steps
    assert step.sql.replace("`", "").partition(" ON ")[2] == (
        "t.k = s.k WHEN MATCHED AND NOT COALESCE((t.a = 1), FALSE) AND (s.b > 2) THEN DELETE "
        "WHEN MATCHED AND NOT COALESCE((t.a = 1), FALSE) THEN UPDATE SET a = 0"
    )


def test_a_query_inside_keeps_its_own_table_of_the_name_of_a_joined_one() -> None:
    (step,) = done(
        "MERGE INTO t USING s JOIN u ON s.k = u.k ON t.k = s.k WHEN MATCHED AND NOT EXISTS "
        "(SELECT 1 FROM u AS s WHERE s.e < u.e) THEN UPDATE SET a = s.b",
        Dialect.POSTGRES,
    ).steps
    assert (
        "(SELECT s.k AS c0, s.b AS c1, u.e AS c2 FROM s AS s JOIN u AS u ON s.k = u.k)"
        in step.sql.replace("`", "")
    )
    assert "FROM u AS s WHERE s.e < lakewarden_joined.c2" in step.sql.replace("`", "")


BY_SOURCE = (
    BEGIN + "WHEN MATCHED AND t.a > s.b THEN UPDATE SET a = s.b WHEN NOT MATCHED BY SOURCE THEN DELETE "
    "WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)"
)


@pytest.mark.parametrize("dialect", [Dialect.SPARK, Dialect.TSQL])
def test_a_row_whose_matches_no_clause_is_about_keeps_one_where_a_clause_is_for_rows_without(
    dialect: Dialect,
) -> None:
    draft = merge_draft(BY_SOURCE, dialect, always=True)
    assert draft is not None
    schemas = {table: SCHEMAS[table.parts[-1]] for table in draft.tables}
    (step,) = compiled(draft, schemas, MatchPolicy(agreeing=True)).steps
    said = step.sql.replace("`", "").replace("lakewarden_", "")
    assert (
        "t.there IS NULL OR t.a > s.b AS touched FROM s AS s LEFT JOIN "
        "(SELECT DISTINCT k, a, TRUE AS there FROM t) AS t ON t.k = s.k" in said
    )
    assert "ROW_NUMBER() OVER (PARTITION BY t0, t1, there ORDER BY touched DESC" in said
    assert "WHERE touched OR number = 1) AS s ON (t.k = s.k) AND t.k IS NOT DISTINCT FROM s.t0" in said
    without = BY_SOURCE.replace("WHEN NOT MATCHED BY SOURCE THEN DELETE ", "")
    draft = merge_draft(without, dialect, always=True)
    assert draft is not None
    (step,) = compiled(draft, schemas, MatchPolicy(agreeing=True)).steps
    assert "ROW_NUMBER" not in step.sql
