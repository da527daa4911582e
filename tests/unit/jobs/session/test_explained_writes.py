"""What EXPLAIN GOVERNED says to whom."""

from typing import Any

from lakewarden.jobs.session.row_ways.explained_writes import ExplainedWrites
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType


def test_who_may_not_know_of_every_table_has_no_change_analysed() -> None:
    """Analysis runs what a moment is computed by, and opens the tables that are read."""
    draft = draft_of("DELETE FROM t USING s WHERE t.k = s.k", None)
    assert draft is not None
    done = compiled(draft, dict.fromkeys(draft.tables, (ColumnType(name="k", type="int"),)))
    nobody: Any = None
    assert ExplainedWrites(plans=nobody, ways=None).compiled(done, None) == ()
