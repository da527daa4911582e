"""The crash table's rows about upserts of streams."""

from support.crashes.crash import Crash

__all__ = ["UPSERTS"]

UPSERTS = (
    Crash(
        point="upsert.made",
        killed="a streaming query that upserts, after it has made the table that was missing",
        left="an empty table with the source's columns, and a checkpoint that has begun a batch",
        then="the query, started again, finds the table, and merges the batch into it",
        test="test_upsert.py::test_a_query_killed_at_any_step_of_a_batch_applies_it_once",
    ),
    Crash(
        point="upsert.merging",
        killed="a streaming query that upserts, right before the MERGE of a batch",
        left="a table without the batch, and a checkpoint that has begun it",
        then="the query, started again, comes with the batch again, and merges it",
        test="test_upsert.py::test_a_query_killed_at_any_step_of_a_batch_applies_it_once",
    ),
    Crash(
        point="upsert.joined",
        killed="a streaming query that upserts, when the files of a batch are written and before its commit",
        left="files that no commit names, a table without the batch, and a checkpoint that has begun it",
        then="the query, started again, comes with the batch again, and writes other files; `vacuum` deletes those",
        test="test_upsert.py::test_a_query_killed_at_any_step_of_a_batch_applies_it_once",
    ),
    Crash(
        point="buckets.marked",
        killed="a change of a bucketed table, when its vectors and rows are written and before its commit",
        left="files of rows and of vectors that no commit names, and the table as it was",
        then="the change, started again, writes others; `vacuum` deletes those",
        test="test_bucketed_vectors.py::test_killed_before_its_commit_it_leaves_files_alone",
    ),
    Crash(
        point="upsert.written",
        killed="an upsert by equality deletes, when its files are written and before its commit",
        left="files of keys and of rows that no metadata names",
        then="the upsert, started again, writes others; `vacuum --full` deletes those",
        test="test_equality_upserts.py::test_killed_before_its_commit_it_leaves_files_that_a_vacuum_removes",
    ),
    Crash(
        point="upsert.batch",
        killed="a streaming query that upserts, after a batch's commit and before Spark "
        "notes the batch as done",
        left="a commit with the query's id and the batch's number, and a checkpoint that does not know of it",
        then="the query, started again, comes with the batch again; it is found in the table, "
        "and nothing is changed",
        test="test_upsert.py::test_a_query_killed_at_any_step_of_a_batch_applies_it_once",
    ),
)
