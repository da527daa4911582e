"""What Spark and Delta refuse of statements that they get as they are: where it is, and what to write."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.refusals import query_in_merge, returning


def place_of(error: UsageError | None, text: str) -> str:
    """The text from the place on that an error shows."""
    assert error is not None and error.hint
    line, _, column = str(error).rpartition("Line ")[2].partition(", column ")
    return text.splitlines()[int(line) - 1][int(column.partition(":")[0]) - 1 :]


@pytest.mark.parametrize(
    "text",
    [
        "MERGE INTO t USING s ON t.k = s.k AND t.a IN (SELECT e FROM u) WHEN MATCHED THEN DELETE",
        (
            "MERGE INTO t USING (SELECT 1 AS k) s\nON t.k = s.k WHEN MATCHED "
            "AND EXISTS (SELECT e FROM u) THEN DELETE"
        ),
        (
            "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON true WHEN MATCHED THEN UPDATE "
            "SET a = (SELECT e FROM u)"
        ),
    ],
)
def test_a_query_in_a_merge_is_shown_where_it_stands(text: str) -> None:
    assert place_of(query_in_merge(text), text).startswith("SELECT e FROM u")


@pytest.mark.parametrize(
    "text",
    [
        (
            "MERGE INTO t USING (SELECT s.*, (SELECT max(e) FROM u) AS m FROM s) s ON t.k = s.k "
            "WHEN MATCHED THEN DELETE"
        ),
        "MERGE INTO t USING s ON t.k = abs(s.k) WHEN MATCHED AND t.s = '(SELECT 1)' THEN DELETE",
        "INSERT INTO t SELECT s.* FROM s JOIN u ON s.k = u.k WHERE s.k IN (SELECT e FROM u)",
    ],
)
def test_a_query_elsewhere_or_in_a_text_is_none_of_them(text: str) -> None:
    assert query_in_merge(text) is None


def test_returning_is_shown_where_it_stands() -> None:
    text = "INSERT INTO t VALUES (1)\n  RETURNING k"
    assert place_of(returning(text), text) == "RETURNING k"
    assert returning("INSERT INTO t SELECT * FROM s RETURNING") is None, "what Spark takes for a name"
    assert returning("INSERT INTO t SELECT 'RETURNING k'") is None
