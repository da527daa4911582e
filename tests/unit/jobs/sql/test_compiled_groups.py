"""Statements over several tables compiled: a step for each table, what is said of them, and what is refused."""

import pytest

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect, TableSchema, policy_of


def schema(**columns: str) -> TableSchema:
    return tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())


SCHEMAS = {
    "t": schema(id="int", k="int", a="int", s="string"),
    "s": schema(k="int", b="int", c="string"),
    "u": schema(k="int", e="int"),
}


def compile_one(text: str, dialect: Dialect | None = None, matches: str = "error") -> Compiled:
    draft = draft_of(text, dialect)
    assert draft is not None, "Spark runs it as it is"
    schemas = {table: SCHEMAS[table.parts[-1]] for table in draft.tables}
    return compiled(draft, schemas, policy_of(matches))


def test_each_table_has_a_step_in_the_order_of_set() -> None:
    done = compile_one("UPDATE t, s SET s.b = 2, t.a = s.k WHERE t.k = s.k")
    assert [str(step.target) for step in done.steps] == ["s", "t"]
    assert [step.sql for step in done.steps] == [
        (
            "MERGE INTO `s` AS `s` USING `t` AS `t` ON `t`.`k` = `s`.`k` WHEN MATCHED "
            "THEN UPDATE SET `s`.`b` = 2"
        ),
        (
            "MERGE INTO `t` AS `t` USING `s` AS `s` ON `t`.`k` = `s`.`k` WHEN MATCHED "
            "THEN UPDATE SET `t`.`a` = `s`.`k`"
        ),
    ]
    assert done.dialect is Dialect.MYSQL


def test_a_delete_has_a_step_for_each_table_that_it_names() -> None:
    done = compile_one("DELETE a, b FROM t a JOIN s b ON a.k = b.k")
    assert [step.sql for step in done.steps] == [
        "MERGE INTO `t` AS `a` USING `s` AS `b` ON `a`.`k` = `b`.`k` WHEN MATCHED THEN DELETE",
        "MERGE INTO `s` AS `b` USING `t` AS `a` ON `a`.`k` = `b`.`k` WHEN MATCHED THEN DELETE",
    ]
    named = compile_one("DELETE FROM a, b USING t a JOIN s b ON a.k = b.k")
    assert named.steps == done.steps


def test_a_table_behind_left_join_is_changed_where_it_is_there() -> None:
    done = compile_one("UPDATE t LEFT JOIN s ON t.k = s.k SET t.a = 0, s.b = 1")
    first, second = (step.sql for step in done.steps)
    assert "LEFT JOIN" in first
    assert "LEFT JOIN" not in second and "ON `t`.`k` = `s`.`k`" in second
    (alone,) = compile_one("UPDATE t LEFT JOIN s ON t.k = s.k SET s.b = 1").steps
    assert alone.sql == second


def test_it_is_said_that_all_or_none_are_changed() -> None:
    done = compile_one("UPDATE t, s SET t.a = s.k, s.b = 2 WHERE t.k = s.k")
    assert [note for note in done.notes if note.startswith("All of the tables are changed, or none")]
    assert not [note for note in done.notes if "MySQL promises no order" in note]


TWINS = "UPDATE one.t JOIN two.t ON one.t.k = two.t.k "


def test_two_tables_of_one_name_are_told_apart_by_their_databases() -> None:
    first, second = compile_one(TWINS + "SET one.t.a = two.t.a, two.t.a = 0 WHERE one.t.id < 3").steps
    assert [str(first.target), str(second.target)] == ["one.t", "two.t"]
    assert first.sql == (
        "MERGE INTO `one`.`t` AS `one_t` USING `two`.`t` AS `two_t` ON `one_t`.`k` = `two_t`.`k` "
        "AND `one_t`.`id` < 3 WHEN MATCHED THEN UPDATE SET `one_t`.`a` = `two_t`.`a`"
    )
    (alone,) = compile_one(TWINS + "SET one.t.a = two.t.a").steps
    assert alone.sql.endswith("WHEN MATCHED THEN UPDATE SET `one_t`.`a` = `two_t`.`a`")
    both = compile_one("DELETE one.t, two.t FROM one.t JOIN two.t ON one.t.k = two.t.k").steps
    assert [str(step.target) for step in both] == ["one.t", "two.t"]


def test_a_column_may_be_written_with_the_database_of_its_table() -> None:
    with_, without = (
        compile_one(f"UPDATE one.t JOIN s ON {name}.k = s.k SET {name}.a = s.b WHERE {name}.id = 1").steps
        for name in ("one.t", "t")
    )
    assert with_ == without


def test_a_query_that_reads_such_a_table_again_means_its_own_reading() -> None:
    (step,) = compile_one(
        TWINS + "SET one.t.a = (SELECT max(one.t.a) FROM one.t WHERE one.t.k = two.t.k)"
    ).steps
    assert "MAX(`t`.`a`)" in step.sql and "`t`.`k` = `two_t`.`k`" in step.sql


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM one.t WHERE EXISTS (SELECT 1 FROM two.t WHERE two.t.id = one.t.id)",
        (
            "DELETE FROM one.t WHERE NOT EXISTS (SELECT 1 FROM (two.t JOIN s ON s.k = two.t.k) "
            "WHERE two.t.id = one.t.id)"
        ),
        (
            "DELETE FROM one.t WHERE id IN (SELECT id FROM two.t UNION SELECT id FROM two.t "
            "WHERE two.t.k = one.t.k)"
        ),
        "UPDATE one.t SET a = (SELECT max(two.t.a) FROM two.t WHERE two.t.k = one.t.k)",
        "UPDATE one.t SET a = (SELECT max(t.a) FROM two.s t WHERE t.k = one.t.k)",
        (
            "UPDATE one.t JOIN s ON one.t.k = s.k SET one.t.a = (SELECT max(two.t.a) FROM two.t "
            "WHERE two.t.k = one.t.k)"
        ),
        "UPDATE one.t AS x JOIN two.t ON x.k = two.t.k SET x.a = one.t.a",
        "UPDATE one.t AS x JOIN two.t ON x.k = two.t.k SET two.t.a = one.t.a",
        "UPDATE one.t SET a = 1 WHERE k IN (SELECT k FROM c.one.t JOIN d.one.t USING (k) WHERE one.t.a = 1)",
    ],
)
def test_a_column_is_never_taken_for_one_of_another_table_of_that_name(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be told: another one is called t here"):
        compile_one(text)


def test_tables_of_one_name_in_several_catalogs_are_told_apart() -> None:
    (step,) = compile_one(
        "UPDATE c.one.t JOIN d.one.t ON c.one.t.k = d.one.t.k SET c.one.t.a = d.one.t.a"
    ).steps
    assert str(step.target) == "c.one.t"
    assert step.sql.endswith(
        "ON `one_t`.`k` = `one_t_`.`k` WHEN MATCHED THEN UPDATE SET `one_t`.`a` = `one_t_`.`a`"
    )


def test_an_alias_makes_it_clear_whose_column_is_meant() -> None:
    (step,) = compile_one(
        "DELETE FROM one.t WHERE EXISTS (SELECT 1 FROM two.t x WHERE x.id = one.t.id)"
    ).steps
    assert "`t`.`id` = " in step.sql or " = `t`.`id`" in step.sql


@pytest.mark.parametrize("value", ["t.a", "t.a + 1", "(SELECT max(e) FROM u WHERE u.k = t.a)"])
def test_it_is_said_where_a_new_value_depends_on_a_column_that_is_set_in_another_table(value: str) -> None:
    done = compile_one(f"UPDATE t, s SET t.a = 1, s.b = {value} WHERE t.k = s.k")
    assert [note for note in done.notes if "MySQL promises no order" in note]


def test_within_one_table_mysqls_order_is_kept() -> None:
    with pytest.raises(UsageError, match="mysql takes the new value of a here"):
        compile_one("UPDATE t, s SET t.a = 1, s.b = 2, t.k = t.a WHERE t.k = s.k", Dialect.MYSQL)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("UPDATE t x, t y SET x.a = 1, y.a = 2 WHERE x.id = y.k",
            "t is changed under two names at once. Line 1, column 13"),
        (TWINS + "SET t.a = 1", "Several tables before SET are called t. Line 1, column 50"),
        ("UPDATE t, s SET t.a = 1, w.b = 2", "There is no table w before SET. Line 1, column 26"),
        ("UPDATE t, s SET t.a = 1, b = 2", "The columns that are set are of several tables. Line 1, column 26"),
        ("UPDATE t, s SET k = 1", "Several of the tables before SET have a column k. Line 1, column 17"),
        ("UPDATE t, s SET nosuch = 1", "None of the tables before SET has a column nosuch. Line 1, column 17"),
        ("UPDATE s RIGHT JOIN t ON t.k = s.k SET b = 1", "RIGHT JOIN with the table that is changed"),
        ("UPDATE t, (SELECT k FROM s) AS q SET t.a = 1, q.k = 2", "A query in parentheses cannot be changed"),
        ("DELETE t, w FROM t JOIN s ON t.k = s.k", "FROM has no table w. Line 1, column 11"),
        ("DELETE t, t FROM t JOIN s ON t.k = s.k", "t is named twice. Line 1, column 11"),
        ("DELETE t, s FROM t RIGHT JOIN s ON t.k = s.k", "RIGHT JOIN with the table that is changed"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_one(text, Dialect.MYSQL)
    assert said in str(caught.value)
    assert caught.value.hint


def test_a_system_table_is_refused_wherever_it_is_read() -> None:
    with pytest.raises(NotAllowedError, match="system table"):
        compile_one(
            "UPDATE t, s SET t.a = 1, s.b = (SELECT max(version) FROM lakewarden.health) WHERE t.k = s.k"
        )


@pytest.mark.parametrize("dialect", [Dialect.POSTGRES, Dialect.TERADATA, Dialect.TSQL])
def test_only_mysql_changes_several_tables(dialect: Dialect) -> None:
    for text in ("UPDATE t, s SET t.a = 1, s.b = 2", "DELETE t, s FROM t JOIN s ON t.k = s.k"):
        with pytest.raises(UsageError):
            compile_one(text, dialect)


@pytest.mark.parametrize("moment", ["CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP()", "CURRENT_DATE"])
def test_what_each_table_would_see_at_another_moment_is_refused(moment: str) -> None:
    with pytest.raises(UsageError, match="changed at another moment"):
        compile_one(f"DELETE t, s FROM t JOIN s ON t.k = s.k WHERE t.a < YEAR({moment})", Dialect.MYSQL)
