"""The crash table's rows about upserts of streams."""

from support.crashes.crash import Crash

__all__ = ["UPSERTS"]

UPSERTS = (
    Crash(
        point="upsert.batch",
        killed="a streaming query that upserts, after a batch's commit and before Spark notes the batch as done",
        left="a commit with the query's id and the batch's number, and a checkpoint that does not know of it",
        then="the query, started again, comes with the batch again; it is found in the table, and nothing is changed",
        test="test_upsert.py::test_a_query_killed_after_the_commit_of_a_batch_does_not_apply_it_again",
    ),
)
