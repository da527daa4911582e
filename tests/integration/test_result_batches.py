"""Results that the gateway reads out of Spark, some partitions at a time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.jobs.engines.spark.result_batches import batches_of, partitions_next

LARGE = "SELECT id, repeat('x', 1000000) AS wide FROM range(0, 64, 1, 16)"
"""16 partitions of 4 MB: more than a socket takes before somebody reads."""


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name) if before is None else spark.conf.set(name, before)


def rows(spark: SparkSession, query: str) -> list[dict[str, object]]:
    return [row for batch in batches_of(spark.sql(query)) for row in batch.to_pylist()]


def test_a_result_that_nobody_reads_holds_up_no_other(spark: SparkSession) -> None:
    with closing(batches_of(spark.sql(LARGE))) as unread, ThreadPoolExecutor(1) as other:
        assert next(unread).num_rows > 0
        counted = other.submit(lambda: spark.sql("SELECT count(*) FROM range(1000)").collect())
        assert counted.result(timeout=60)[0][0] == 1000


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id FROM range(0, 1000, 1, 100)", list(range(1000))),
        ("SELECT id FROM range(0, 1000, 1, 7) ORDER BY id DESC", list(range(999, -1, -1))),
        ("SELECT id FROM range(10) WHERE id > 100", []),
        ("SELECT 5 AS id WHERE false", []),
        ("SELECT (SELECT max(id) FROM range(5)) + id AS id FROM range(2)", [4, 5]),
        ("SHOW FUNCTIONS LIKE 'repeat'", None),
    ],
)
def test_every_row_comes_once_and_in_order(
    query: str, expected: list[int] | None, spark: SparkSession
) -> None:
    found = rows(spark, query)
    assert found == ([{"function": "repeat"}] if expected is None else [{"id": one} for one in expected])


def test_more_than_one_job_returns_comes_whole(spark: SparkSession) -> None:
    found = rows(spark, LARGE)
    assert [row["id"] for row in found] == list(range(64))
    assert {len(str(row["wide"])) for row in found} == {1_000_000}


def test_the_tasks_see_what_the_session_has_set(spark: SparkSession) -> None:
    parsed = (
        "SELECT CAST(to_timestamp(concat('2020-1-', id), concat('yyyy-MM-d', substr('', id))) AS STRING) AS at "
        "FROM range(1, 2)"
    )
    with pytest.raises(PySparkException, match="CANNOT_PARSE_TIMESTAMP"):
        rows(spark, parsed)
    with setting(spark, "spark.sql.legacy.timeParserPolicy", "LEGACY"):
        assert rows(spark, parsed) == [{"at": "2020-01-01 00:00:00"}]
    with pytest.raises(PySparkException, match="CANNOT_PARSE_TIMESTAMP"):
        rows(spark, parsed)


def test_texts_with_large_offsets_are_read_as_such(spark: SparkSession) -> None:
    with setting(spark, "spark.sql.execution.arrow.useLargeVarTypes", "true"):
        (batch,) = batches_of(spark.sql("SELECT 'a' AS word"))
    assert (batch.schema.field(0).type, batch.to_pylist()) == (pa.large_string(), [{"word": "a"}])


def test_what_fails_in_a_late_partition_is_an_error(spark: SparkSession) -> None:
    query = "SELECT 1 DIV (id - 999) AS x FROM range(0, 1000, 1, 100)"
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        rows(spark, query)


@pytest.mark.parametrize(
    ("before", "size", "after"),
    [(4, 0, 16), (4, 1, 16), (16, 8 << 20, 16), (16, 32 << 20, 4), (4, 1 << 30, 1), (1, 8 << 20, 1)],
)
def test_a_job_has_as_many_partitions_as_fit_and_not_many_more_than_the_last(
    before: int, size: int, after: int
) -> None:
    assert partitions_next(before, size) == after
