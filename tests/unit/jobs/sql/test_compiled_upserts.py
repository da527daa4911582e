"""Upserts of each dialect as one MERGE; what is refused, with its place."""

import pytest

from lakewarden.catalog.errors import LakewardenError, UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.upserts.upsert_drafts import is_upsert, upsert_draft
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect, TableName, keys_in, policy_of
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import ChangeRows, Explain
from support.builders.warehouse_upserts import UPSERTS

SCHEMAS = {
    TableName(parts=(table,)): tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())
    for table, columns in {
        "p": {"k": "int", "a": "int", "s": "string"},
        "w": {"k": "int", "m": "decimal(9,2)", "d": "double", "s": "string"},
        "s": {"k": "int", "b": "int", "c": "string", "n": "double"},
        "u": {"k": "int", "e": "int"},
    }.items()
}


def done(text: str, *, matches: str = "error", keys: tuple[str, ...] = ("k",)) -> Compiled:
    return compiled(upsert_draft(text), SCHEMAS, policy_of(matches), keys)


def statement(text: str) -> str:
    (step,) = done(text).steps
    return step.sql


def test_one_row_is_one_plain_merge() -> None:
    assert statement("UPSERT INTO p (k, a) ON (k) VALUES (1, 2)") == (
        "MERGE INTO `p` AS `p` USING (SELECT `excluded`.`k` AS `k`, `excluded`.`a` AS `a` "
        "FROM VALUES (1, 2) AS `excluded`(`k`, `a`)) AS `excluded` ON `p`.`k` = `excluded`.`k` "
        "WHEN MATCHED THEN UPDATE SET `a` = `excluded`.`a` "
        "WHEN NOT MATCHED THEN INSERT (`k`, `a`) VALUES (`excluded`.`k`, `excluded`.`a`)"
    )


def test_a_where_decides_about_rows_that_are_there_and_about_no_others() -> None:
    text = "INSERT INTO p (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = 3 WHERE p.a < 5"
    assert "ON `p`.`k` = `excluded`.`k` WHEN MATCHED AND (`p`.`a` < 5) THEN UPDATE" in statement(text)
    assert statement(text).endswith(
        "WHEN NOT MATCHED THEN INSERT (`k`, `a`) VALUES (`excluded`.`k`, `excluded`.`a`)"
    )


def test_a_new_value_has_the_type_of_its_column() -> None:
    text = "INSERT INTO p (k, a) VALUES (1, 2.5) ON CONFLICT (k) DO UPDATE SET a = excluded.a / 2"
    assert "CAST(ROUND(`excluded`.`a`) AS INT) AS `a`" in statement(text)
    assert "SET `a` = `excluded`.`a` DIV 2" in statement(text)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("(VALUES(a) + p.a) * 2", "(CAST(`excluded`.`a` AS BIGINT) + `p`.`a`) * 2"),
        ("(values (`a`))", "(`excluded`.`a`)"),
        ("CASE WHEN (VALUES(a), p.a) IN ((1, 2)) THEN 1 END", "`excluded`.`a` = 1 AND `p`.`a` = 2"),
    ],
)
def test_mysqls_new_value_may_stand_behind_a_parenthesis(value: str, wanted: str) -> None:
    text = f"INSERT INTO p (k, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE a = {value}"
    assert wanted in statement(text).partition("THEN UPDATE")[2]


def test_rows_with_one_key_are_looked_for_in_the_source_unless_it_has_one_row() -> None:
    text = "UPSERT INTO p (k, a) SELECT k, b FROM s"
    assert "raise_error('Several rows of the source have one key. " in statement(text)
    assert "Several rows with one key are an error" in done(text).notes[0]
    assert "raise_error" not in done(text, matches="any").steps[0].sql
    assert "ORDER BY `a` DESC NULLS LAST" in done(text, matches="last by s.a").steps[0].sql


@pytest.mark.parametrize("name", UPSERTS)
def test_every_form_is_known_by_its_words_and_explained(name: str) -> None:
    text, _ = UPSERTS[name]
    assert is_upsert(text)
    explained = parse(f"EXPLAIN GOVERNED {text}")
    assert isinstance(explained, Explain) and isinstance(explained.statement, ChangeRows)
    assert statement(text).startswith("MERGE INTO `p` AS ")
    assert "FROM WITH" not in statement(text)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO p SELECT * FROM s",
        "UPDATE p SET a = CASE WHEN k = 1 THEN 2 ELSE 3 END",
        "WITH q AS (SELECT 1) SELECT * FROM q",
        "REPLACE TABLE p USING delta AS SELECT 1",
        "SELECT 'UPSERT INTO p'",
        "INSERT INTO p SELECT * FROM s JOIN u ON conflict = duplicate",
    ],
)
def test_other_statements_are_no_upserts(text: str) -> None:
    assert not is_upsert(text)


@pytest.mark.parametrize(
    ("text", "said", "at"),
    [
        ("UPSERT INTO p ON k VALUES (1)", "ON needs keys in parentheses", "ON k"),
        ("UPSERT INTO p ON (k + 1) VALUES (1)", "Keys are names of columns", " (k + 1)"),
        ("UPSERT INTO p (k, a) ON (k) SELECT k, nope FROM s", "There is no column nope", "nope"),
        ("UPSERT INTO p (k) ON (k) SELECT 1 FRM s", "Invalid expression", "s"),
        (
            "INSERT INTO p (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET z = 1",
            "p has no column z",
            "z = 1",
        ),
        (
            "INSERT INTO p (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = a + 1",
            "a is not clear here",
            "a + 1",
        ),
        (
            "INSERT INTO p (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = (SELECT e FROM u)",
            "may not ask a query",
            "e FROM u",
        ),
        (
            "INSERT INTO p (k) VALUES (1) ON CONFLICT (k) DO NOTHING RETURNING k",
            "RETURNING and OUTPUT return rows",
            "RETURNING k",
        ),
        ("INSERT INTO p (k) VALUES (1) ON CONFLICT ON CONSTRAINT pk DO NOTHING", "no constraints", "pk DO"),
        (
            "UPDATE p SET a = 1 WHERE k = 1 ELSE INSERT INTO p (k) SELECT k FROM s",
            "inserts one row of VALUES",
            "ELSE",
        ),
        ("UPDATE p SET a = 1 WHERE k = 1 ELSE INSERT INTO w (k) VALUES (1)", "w is not the table", "w (k)"),
        *(
            (
                f"INSERT INTO p (k, a) {query} ON DUPLICATE KEY UPDATE a = s.b",
                "does not have s.b as it is",
                "s.b",
            )
            for query in (
                "SELECT k, b + 1 FROM s",
                "SELECT b, k FROM s GROUP BY b, k",
                "SELECT DISTINCT k, b FROM s",
            )
        ),
        ("UPDATE p SET a = 1 WHERE k = 1 ELSE INSERT INTO db.p (k) VALUES (1)", "db.p is not the", "db.p"),
    ],
)
def test_a_mistake_is_shown_at_its_place(text: str, said: str, at: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        done(text)
    _, _, shown = str(caught.value).rpartition(", column ")
    assert text[int(shown.partition(":")[0]) - 1 :].startswith(at)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("UPSERT INTO p (k) ON (a) SELECT 1", "key a is not among the columns"),
        ("UPSERT INTO p (k, a) ON (k) SELECT 1", "1 values, and there are 2 columns"),
        ("UPSERT INTO p ON (k) VALUES (1, 2)", "2 values, and there are 3 columns"),
        ("REPLACE INTO p (k, a) VALUES (1, 2)", "defaults"),
        ("UPDATE p SET a = 1 FROM s WHERE p.k = s.k ELSE INSERT INTO p (k) VALUES (1)", "Invalid expression"),
        ("UPSERT INTO p ON (k) VALUES (1, 2, 'x'); DROP TABLE p", "several statements"),
        ("UPSERT INTO lakewarden.tables ON (k) VALUES (1)", "system table"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, said: str) -> None:
    with pytest.raises(LakewardenError, match=said):
        done(text)


def test_the_last_row_is_told_by_a_column_that_is_given() -> None:
    with pytest.raises(UsageError, match="told by e, and that is not among"):
        done("UPSERT INTO p (k, a) SELECT k, e FROM u", matches="last by u.e")


def test_keys_come_from_the_statement_or_from_the_table_or_are_asked_for() -> None:
    assert keys_in({"lakewarden.keys": "k, a"}) == ("k", "a")
    with pytest.raises(UsageError, match="Nobody says which columns are the keys of p"):
        done("UPSERT INTO p (k, a) VALUES (1, 2)", keys=())


def test_a_form_of_another_dialect_than_the_sessions_is_refused() -> None:
    with pytest.raises(UsageError, match="one of postgres, and the session reads mysql"):
        upsert_draft("INSERT INTO p (k) VALUES (1) ON CONFLICT (k) DO NOTHING", Dialect.MYSQL)
    assert upsert_draft("UPSERT INTO p (k) VALUES (1)", Dialect.MYSQL).dialects == (Dialect.MYSQL,)


def test_rows_of_values_are_looked_through_for_one_key_from_the_second_on() -> None:
    once = "raise_error('Several rows of the source have one key. "
    assert once not in statement("UPSERT INTO p (k, a) VALUES (1, 2)")
    assert done("UPSERT INTO p (k, a) VALUES (1, 2)").notes == ()
    assert once in statement("UPSERT INTO p (k, a) VALUES (1, 2), (1, 3)")
    assert (
        "Several rows with one key are an error"
        in done("UPSERT INTO p (k, a) VALUES (1, 2), (3, 4)").notes[0]
    )
    assert done("UPSERT INTO p (k, a) VALUES (1, 2)", matches="last by u.zz").steps, "one row needs no choice"


def test_rows_are_told_apart_by_their_keys_alone_and_a_null_among_these_matches_nothing() -> None:
    text = "UPSERT INTO p (k, a, s) ON (k, s) SELECT k, b, c FROM s"
    assert "PARTITION BY `k`, `s`) > 1 AND NOT (`k` IS NULL OR `s` IS NULL)" in statement(text)
    assert "ON `p`.`k` = `excluded`.`k` AND `p`.`s` = `excluded`.`s`" in statement(text)
    (step,) = done(text, matches="any").steps
    assert "PARTITION BY `k`, `s` ORDER BY `k`, `a`, `s`" in step.sql
    assert "WHERE `lakewarden_rank` = 1 OR `k` IS NULL OR `s` IS NULL" in step.sql


def test_a_step_says_how_rows_are_found() -> None:
    (step,) = done("UPSERT INTO p (k, a, s) ON (k, s) SELECT k, b, c FROM s").steps
    assert step.because == "Rows are matched by k, s; what is not there is added."
    (step,) = done("UPDATE p SET a = 5 WHERE k = 3 ELSE INSERT INTO p (k, a) VALUES (3, 5)").steps
    assert step.because == "Rows are found by the WHERE; if there are none, one is added."


def test_a_text_in_values_is_read_as_what_its_column_holds() -> None:
    text = "INSERT INTO p (k, a, s) VALUES (1, '3', '3'), (2, 4, 'x') ON CONFLICT (k) DO NOTHING"
    assert "FROM VALUES (1, CAST('3' AS INT), '3'), (2, 4, 'x') AS" in statement(text)
    assert "VALUES (1, '3')" in statement("UPSERT INTO p (k, a) VALUES (1, '3')"), (
        "Spark's own stays as it is"
    )


def test_a_new_value_has_the_digits_of_its_column_before_anything_is_made_of_it() -> None:
    text = "INSERT INTO w (k, m) VALUES (1, 0.125), (2, 3) ON DUPLICATE KEY UPDATE m = w.m + VALUES(m)"
    assert "CAST(`excluded`.`m` AS DECIMAL(9, 2)) AS `m`" in statement(text)
    assert "SET `m` = `w`.`m` + `excluded`.`m`" in statement(text)
    assert "SELECT `excluded`.`k` AS `k`, `excluded`.`m` AS `m` FROM" in statement(
        text.replace("0.125", "0.5")
    )
    text = "INSERT INTO w (k, d, s) SELECT b, k, b FROM s ON CONFLICT (k) DO UPDATE SET d = excluded.d / 2"
    assert "AS DOUBLE) AS `d`" in statement(text) and "AS STRING) AS `s`" in statement(text)
    assert "CAST" not in statement("UPSERT INTO w (k, s) SELECT k, c FROM s"), "a text stays what it is"


@pytest.mark.parametrize(
    ("query", "value", "wanted"),
    [
        ("SELECT k, b FROM s", "b", "SET `a` = `excluded`.`a`"),
        ("SELECT q.k, q.b FROM s AS q", "b + 1", "SET `a` = CAST(`excluded`.`a` AS BIGINT) + 1"),
        ("SELECT k, b FROM s", "a + b", "SET `a` = CAST(`p`.`a` AS BIGINT) + `excluded`.`a`"),
        ("SELECT k, b FROM s", "a", "SET `a` = `p`.`a`"),
    ],
)
def test_a_bare_name_behind_on_duplicate_key_is_of_the_table_that_has_it(
    query: str, value: str, wanted: str
) -> None:
    text = f"INSERT INTO p (k, a) {query} ON DUPLICATE KEY UPDATE a = {value}"
    assert wanted in statement(text)


@pytest.mark.parametrize(
    ("text", "said", "at"),
    [
        (
            "INSERT INTO p (k, a) SELECT k, b FROM s ON DUPLICATE KEY UPDATE a = k",
            "k is a column of p and of s",
            "k",
        ),
        (
            "INSERT INTO p (k, a) SELECT k, k FROM s ON DUPLICATE KEY UPDATE a = b",
            "does not have b as it is",
            "b",
        ),
        (
            "INSERT INTO p (k, a) SELECT k, b FROM (SELECT k, b FROM s) AS q ON DUPLICATE KEY UPDATE a = b",
            "does not have b as it is",
            "b",
        ),
        (
            "INSERT INTO p (k, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE a = DEFAULT",
            "default is not known",
            "DEFAULT",
        ),
        (
            "INSERT INTO p (k, a) SELECT k, b FROM s ON DUPLICATE KEY UPDATE a = DEFAULT",
            "default is not",
            "DEFAULT",
        ),
    ],
)
def test_and_is_refused_where_several_have_it_or_the_new_row_has_not(text: str, said: str, at: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        done(text)
    shown = str(caught.value).splitlines()
    assert shown[1][shown[2].index("^") :] == at
