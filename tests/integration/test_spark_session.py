"""Commits through a stamped session: they carry the run, happen on the version that was read, and leak nothing."""

import threading
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import stamped
from lakewarden.jobs.engines.spark.errors import translated

pytestmark = pytest.mark.spark
ROW = pa.table({"id": pa.array([1], pa.int64())})


def append_slowly(spark: SparkSession, table: Path, somebody_else: threading.Thread) -> None:
    """An append that begins, lets somebody else commit, and then commits itself."""

    def held(reading: str, go: str) -> int:
        Path(reading).touch()
        while not Path(go).exists():
            time.sleep(0.01)
        return 7

    somebody_else.start()
    wait = F.udf(held, LongType())
    row = spark.range(1).select(wait(F.lit(f"{table}.reading"), F.lit(f"{table}.go")).alias("id"))
    row.write.format("delta").mode("append").save(str(table))


def commit_meanwhile(table: Path) -> threading.Thread:
    def commit() -> None:
        while not Path(f"{table}.reading").exists():
            time.sleep(0.01)
        write_deltalake(table, ROW, mode="append")
        Path(f"{table}.go").touch()

    return threading.Thread(target=commit)


@pytest.mark.parametrize("ours", [True, False], ids=["stamped", "plain"])
def test_delta_never_tries_a_commit_of_ours_again_on_a_later_version(
    spark: SparkSession, tmp_path: Path, ours: bool
) -> None:
    table = tmp_path / "t"
    write_deltalake(table, ROW)
    session: AbstractContextManager[SparkSession] = (
        stamped(spark, "run-1", "compact") if ours else nullcontext(spark)
    )
    expected: AbstractContextManager[object] = pytest.raises(ConflictError) if ours else nullcontext()
    with expected, session as used, translated("append"):
        append_slowly(used, table, commit_meanwhile(table))
    seen = [commit.version for commit in DeltaReader().commits(canonical(str(table)), after=-1)]
    assert seen == ([0, 1] if ours else [0, 1, 2]), (
        "without the stamp Delta goes to the next version by itself"
    )


def test_the_stamp_is_on_our_commits_and_on_nobody_elses(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    rows = spark.range(1)
    with stamped(spark, "run-1", "compact") as ours:
        ours.range(1).write.format("delta").save(str(table))
        rows.write.format("delta").mode("append").save(str(table))
    rows.write.format("delta").mode("append").save(str(table))
    commits = DeltaReader().commits(canonical(str(table)), after=-1)
    assert [commit.run_id for commit in commits] == ["run-1", None, None]


def test_a_stamped_session_sees_temporary_views(spark: SparkSession) -> None:
    spark.range(3).createOrReplaceTempView("three")
    with stamped(spark, "run-1", "compact") as ours:
        assert ours.table("three").count() == 3
    spark.catalog.dropTempView("three")


def test_no_python_function_runs_where_there_is_none_at_the_path_that_executors_are_told(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What other tests say of executors without Python is worth as much as this."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python3")
    with pytest.raises((Py4JJavaError, PySparkException), match='Cannot run program "/nowhere/python3"'):
        spark.range(3).rdd.map(lambda row: row.id).collect()
