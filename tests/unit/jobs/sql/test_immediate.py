"""EXECUTE IMMEDIATE of a plain text is the statement in it; SET of our own keys is read without Spark."""

import time

import pytest

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.jobs.sql.immediate import said_immediately
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.session_settings import setting_said
from lakewarden.jobs.sql.statements import Unmanaged, VacuumTable


@pytest.mark.parametrize(
    "text",
    ["EXECUTE IMMEDIATE 'VACUUM t RETAIN 0 HOURS'", "execute /* x */ immediate 'VACUUM t RETAIN 0 HOURS' ;"],
)
def test_a_plain_text_is_read_as_what_is_in_it(text: str) -> None:
    assert said_immediately(text) == "VACUUM t RETAIN 0 HOURS"
    assert isinstance(parse(text), VacuumTable)


def test_a_system_table_is_one_inside_of_a_text() -> None:
    with pytest.raises(NotAllowedError):
        parse("EXECUTE IMMEDIATE 'DELETE FROM lakewarden.audit'")


@pytest.mark.parametrize(
    "text",
    [
        "EXECUTE IMMEDIATE x",
        "EXECUTE IMMEDIATE 'SELECT ' || 'x'",
        "EXECUTE IMMEDIATE 'SELECT ?' USING 1",
        "EXECUTE IMMEDIATE 'SELECT 1' INTO x",
        r"EXECUTE IMMEDIATE 'SELECT \'a\''",
        "EXECUTE IMMEDIATE r'SELECT 1'",
        "EXECUTE IMMEDIATE 'SELECT ''a'''",
        "SELECT 'immediate'",
    ],
)
def test_everything_else_is_left_to_spark(text: str) -> None:
    assert said_immediately(text) == text
    assert parse(text) == Unmanaged(sql=text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SET lakewarden.dialect = teradata", ("lakewarden.dialect", "teradata")),
        (" set\tLakewarden.Conflicts.Retries=  5 ; ", ("lakewarden.conflicts.retries", "5")),
        ("SET lakewarden.operation =", ("lakewarden.operation", "")),
        ("SET lakewarden.dialect", None),
        ("SET spark.sql.ansi.enabled = true", None),
        ("SET /* x */ lakewarden.dialect = teradata", None),
        ("SET `lakewarden.dialect` = teradata", None),
        ("SETlakewarden.dialect = teradata", None),
        ("RESET lakewarden.dialect", None),
        ("SET lakewarden.x y = 1", None),
        ("", None),
    ],
)
def test_a_setting_is_read_as_it_is_mostly_written(text: str, said: tuple[str, str] | None) -> None:
    assert setting_said(text) == said


def test_reading_it_takes_no_longer_than_its_text_is_long() -> None:
    began = time.perf_counter()
    for text in ("SET lakewarden.x=a" + " " * 1_000_000 + "b", "SET " + " " * 1_000_000, " " * 1_000_000):
        setting_said(text)
    assert time.perf_counter() - began < 1
