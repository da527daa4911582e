"""A statement that several dialects read, and read differently, says so, and whose it was taken for."""

import pytest

from lakewarden.jobs.sql.compile.ambiguities import read_otherwise
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect, MatchRule, policy_of
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import Unmanaged

_SCHEMA = tuple(
    ColumnType(name=name, type=kind) for name, kind in {"k": "int", "a": "int", "c": "string"}.items()
)


def done(text: str, dialect: Dialect | None = None) -> Compiled:
    draft = draft_of(text, dialect)
    assert draft is not None, "Spark runs it as it is"
    return compiled(draft, dict.fromkeys(draft.tables, _SCHEMA), policy_of("any"))


JOINED = "UPDATE t SET a = s.a FROM s WHERE s.c = 'x' AND t.k = s.k"


def test_what_is_first_in_line_may_be_somebody_elses() -> None:
    told = done(JOINED)
    assert told.dialect is Dialect.POSTGRES
    assert told.notes[:2] == (
        "Texts are compared exactly, where tsql may ignore case and blanks at the end.",
        "It was read as postgres, and may be tsql: SET lakewarden.dialect says whose it is.",
    )
    assert told.chosen.dialect is Dialect.POSTGRES and told.chosen.notes == told.notes
    assert told.chosen.matches is not None and told.chosen.matches.rule is MatchRule.ANY


def test_once_it_is_said_nothing_is_left_to_say() -> None:
    for dialect in (Dialect.POSTGRES, Dialect.TSQL):
        assert not any("It was read as" in note for note in done(JOINED, dialect).notes)
    alike = done("UPDATE t SET a = s.a FROM s WHERE t.k = s.k")
    assert alike.notes == ("Of several matches of a row the one with the smallest values is taken.",)


SAID = "It was read as Spark's: SET lakewarden.dialect says whose it is."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('UPDATE t SET a = 1 WHERE c = "k"', '"k" is a text, where postgres, teradata and tsql have a name.'),
        ("UPDATE t SET c = c || 'x'", "|| joins texts, where mysql has OR."),
        (
            "DELETE FROM t WHERE a / 2 > k",
            "/ keeps the fraction, where postgres, teradata and tsql cut it off if both are whole numbers.",
        ),
        (
            "UPDATE t SET a = a + 1, k = a",
            "a has its old value on the right, where mysql has the one that was just set.",
        ),
    ],
)
def test_sparks_own_words_say_what_others_read_in_them(text: str, said: str) -> None:
    assert read_otherwise(text) == (said, SAID)
    assert parse(text) == Unmanaged(sql=text, notes=(said, SAID))
    assert parse(text, Dialect.SPARK) == Unmanaged(sql=text)
    asked = f"{text}{' AND' if 'WHERE' in text else ' WHERE'} k IN (SELECT k FROM s)"
    assert done(asked).notes == (said, SAID)
    assert done(asked, Dialect.SPARK).notes == ()


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET a = a + 1, k = k + 1 WHERE c = 'x'",
        "UPDATE t SET a = k / 2.0",
        "DELETE FROM t WHERE c = '\"'",
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET a = s.a / 2",
        "DELETE FROM t WHERE (",
    ],
)
def test_what_all_read_alike_has_no_notes(text: str) -> None:
    assert read_otherwise(text) == ()
