"""How streams go on that read a Delta table which was rolled back. Pure.

A query that reads one stops at the commit by which the rollback took files away.
"""

from typing import Final

from lakewarden.catalog.formats.stream_ways import ReadingQuery

__all__ = ["DeltaWays"]

_BEFORE_ALL: Final = -1


class DeltaWays:
    """`StreamWays` of Delta tables."""

    def goes_back_too(self, first: int) -> str:
        return (
            "Its source goes back, too: there it says how to start it again. If it reads the change "
            f"feed, take its checkpoint back to before batch {first} instead."
        )

    def reading(self, query: ReadingQuery) -> str:
        made = query.head + 1
        newest = query.head if query.target is None else query.target
        clean = made if query.removes_files else newest
        begins = f"`startingVersion` {made} and `skipChangeCommits`"
        who = (
            f"{query.query_id} (writes {query.sink}) reads it and fails at version {made}. "
            "Stop it before `apply`"
        )
        anew = f"{who}, then start it with a new checkpoint"
        missing = query.upto if query.again is None else query.again
        if query.upto is None:
            return f"{anew} and without `startingVersion`: {query.sink} has nothing of it any more."
        if query.again == _BEFORE_ALL:
            return (
                f"{who}, then empty {query.sink} and start it with a new checkpoint: "
                "its undone batches were made from all that it had ever read."
            )
        said = f"{anew}, {begins}."
        if missing is not None and missing < newest:
            said += (
                f" Before that, take to {query.sink} what version {clean} of {query.table} has "
                f"and version {missing} has not."
            )
        if query.out is not None and query.missed:
            said += (
                f" What is taken out of {query.sink} had also read clean ones of the versions {query.out[0]} "
                f"to {query.out[1]}: add their rows by hand."
            )
        return said
