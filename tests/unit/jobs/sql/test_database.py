"""Which table a name without a database means in a session, and when the session is asked."""

import pytest

from lakewarden.jobs.sql.database import in_database
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import RollbackTable

TABLE_ID = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "text",
    [
        "ROLLBACK TABLE {} TO VERSION 3",
        "MARK TABLE {} VERSION 3 BAD",
        "UNMARK TABLE {} VERSION 3",
        "VACUUM {} AUTO RUN",
        "VACUUM {} AUTO OFF",
        "DESCRIBE MANAGED {}",
        "SHOW LINEAGE OF {}",
        "SHOW RUNS FOR {}",
        "ALTER TABLE {} SET POLICY (mode = manage)",
        "CONVERT TO DELTA {} OWNER bo",
    ],
)
def test_a_name_without_a_database_is_one_of_the_sessions(text: str) -> None:
    def none_of() -> str:
        raise AssertionError("the session was asked for nothing")

    for bare in ("t", "`t`", "'`t`'"):
        assert in_database(parse(text.format(bare)), lambda: "shop") == parse(text.format("shop.t"))
    for other in ("db.t", "'/lake/t'", f"'{TABLE_ID}'"):
        statement = parse(text.format(other))
        assert in_database(statement, none_of) == statement


def test_so_is_every_table_whose_files_a_rollback_removes() -> None:
    asked = parse("ROLLBACK TABLE t BAD VERSIONS 3 CASCADE REMOVE FILES FROM t, db.u")
    found = in_database(asked, lambda: "shop")
    assert isinstance(found, RollbackTable) and found.remove_files == ("shop.t", "db.u")


@pytest.mark.parametrize(
    "text", ["SHOW RUNS", "SHOW MANAGED TABLES", "VACUUM t", "VACUUM AUTO RUN", "SELECT 1"]
)
def test_the_others_stay_as_they_are(text: str) -> None:
    assert in_database(parse(text), lambda: "shop") == parse(text)


def test_a_scope_is_no_table() -> None:
    asked = parse("ALTER TABLE db.* SET POLICY (mode = manage)")
    assert in_database(asked, lambda: "shop") == asked
