"""The crash table's rows about statements over several tables."""

from support.crashes.crash import Crash

__all__ = ["GROUPS"]

_ENDED = "test_changes_of_several_tables.py::test_a_session_that_is_killed_changes_all_tables_or_none"

GROUPS = (
    Crash(
        point="group.begun",
        killed="a session that changes several tables by one statement, after it has written that down",
        left="a group in the journal, no table touched",
        then="the daemon (or `lakewarden rollback resume`) closes it; "
        "an empty commit in each table keeps a sleeper out",
        test=_ENDED,
    ),
    Crash(
        point="group.making",
        killed="the same, between two of its commits",
        left="one table changed, the next one not",
        then="the first is taken back, as a rollback would be; "
        "nobody but the table's log is asked what was done",
        test=_ENDED,
        tried=("group.making:2",),
    ),
    Crash(
        point="group.made",
        killed="the same, after its last commit and before it takes the group out of the journal",
        left="all tables changed, a group that nobody has closed",
        then="the logs show all of its commits: it is done",
        test=_ENDED,
        tried=("group.made:2",),
    ),
)
