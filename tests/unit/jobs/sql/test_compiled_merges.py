"""Queries in the conditions and values of a MERGE: what its source is asked, and what stays Spark's or is refused."""

import pytest

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.merges import merge_draft
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect, StepKind, TableName
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import ChangeRows, Explain, Unmanaged
from support.builders.warehouse_upserts import MERGES

SCHEMAS = {
    table: tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())
    for table, columns in {
        "t": {"k": "int", "a": "int", "s": "string"},
        "s": {"k": "int", "b": "int", "c": "string"},
        "u": {"k": "int", "e": "int"},
    }.items()
}
BEGIN = "MERGE INTO t USING s ON t.k = s.k "


def done(text: str) -> Compiled:
    draft = merge_draft(text)
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
        " AS `lakewarden_q0` FROM `db`.`s` AS `s`) AS `s` ON `x`.`k` = `s`.`k` AND `a` < `s`.`lakewarden_q0`"
        " WHEN MATCHED THEN UPDATE SET `x`.`a` = `b`"
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
        "WHEN MATCHED AND NOT `s`.`lakewarden_q0` THEN DELETE WHEN NOT MATCHED AND `s`.`lakewarden_q1`"
        " THEN INSERT (`k`) VALUES (`s`.`lakewarden_q2`)"
    )


@pytest.mark.parametrize("name", MERGES)
def test_each_case_is_one_merge_whose_conditions_ask_nothing(name: str) -> None:
    statement = parse(MERGES[name])
    assert isinstance(statement, ChangeRows)
    (step,) = done(MERGES[name]).steps
    assert "SELECT" not in step.sql.rpartition(" ON ")[2]
    explained = parse(f"EXPLAIN GOVERNED {MERGES[name]}")
    assert isinstance(explained, Explain) and isinstance(explained.statement, ChangeRows)


@pytest.mark.parametrize(
    ("condition", "at"),
    [
        ("t.a IN (SELECT e FROM u)", "a IN"),
        ("EXISTS (SELECT 1 FROM u WHERE u.e = t.a)", "a) THEN"),
        ("(SELECT max(e) FROM u WHERE u.e > a) = 1", "a) = 1"),
        ("s.k IN (SELECT k FROM u WHERE e = (SELECT max(b) FROM s AS y WHERE y.k = t.a))", "a)) THEN"),
    ],
)
def test_a_query_about_the_target_is_refused_with_its_place(condition: str, at: str) -> None:
    text = f"{BEGIN}WHEN MATCHED AND {condition} THEN DELETE"
    with pytest.raises(
        UsageError, match="may not depend on a, a column of the table that is changed"
    ) as caught:
        done(text)
    _, _, shown = str(caught.value).rpartition(", column ")
    assert text[int(shown.partition(":")[0]) - 1 :].startswith(at)


@pytest.mark.parametrize(
    ("condition", "at"),
    [
        ("s.k IN (SELECT k FROM t)", "t)"),
        ("NOT EXISTS (SELECT 1 FROM u JOIN t AS x ON x.k = u.k)", "x ON"),
        ("s.b IN (SELECT e FROM u WHERE e IN (SELECT a FROM t AS x))", "x))"),
    ],
)
def test_in_and_exists_about_the_target_are_refused_with_their_place(condition: str, at: str) -> None:
    text = f"{BEGIN}WHEN MATCHED AND {condition} THEN DELETE"
    with pytest.raises(
        UsageError, match="IN and EXISTS in a MERGE may not ask t, the table that is"
    ) as caught:
        done(text)
    _, _, shown = str(caught.value).rpartition(", column ")
    assert text[int(shown.partition(":")[0]) - 1 :].startswith(at)
    done(f"{BEGIN}WHEN MATCHED AND s.b < (SELECT max(e) FROM u WHERE e IN (SELECT a FROM t)) THEN DELETE")
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
        BEGIN + "WHEN MATCHED AND s.k = ANY (SELECT k FROM u) THEN DELETE",
        "MERGE INTO t USING db.s ON t.k = db.s.k AND EXISTS (SELECT 1 FROM u) WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING (SELECT 1 AS k) ON EXISTS (SELECT 1 FROM u) WHEN MATCHED THEN DELETE",
        "WITH q AS (SELECT 1) MERGE INTO t USING s ON EXISTS (SELECT 1 FROM q) WHEN MATCHED THEN DELETE",
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
