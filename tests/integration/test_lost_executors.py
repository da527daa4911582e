"""What executors had sent on, or kept, goes with them: no row is written or counted twice, whatever tasks run again.
Here the executor is this process, and what it has is taken away from it."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError
from lakewarden.jobs.session.delta.merges.joined_upserts import JoinedUpsert
from lakewarden.jobs.session.delta.merges.plan_pieces import leaf_of
from lakewarden.jobs.session.plans import Plans, kind
from support.builders.lakes import Lake, running_lake
from support.crashes.in_process import amid

pytestmark = pytest.mark.spark

ROWS = [(key, "old", key % 2) for key in range(40)]
NEW = [(key, "new", key % 2) for key in range(20, 60)]
SCHEMA = "id bigint, v string, part bigint"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with running_lake(spark, tmp_path_factory.mktemp("lost")) as lake:
        yield lake


def shuffles(plans: Plans, rdd: Any) -> Iterator[Any]:
    """What the rows of an RDD are exchanged by, the last exchange first."""
    for one in plans.sequence(rdd.dependencies()):
        if kind(one) == "ShuffleDependency":
            yield one
        yield from shuffles(plans, one.rdd())


def sent_and_lost(plans: Plans, session: Any, frame: Any) -> DataFrame:
    """The same rows, exchanged once more: all tasks before that have been run, and what they had sent is gone."""
    execution = frame.repartition(2)._jdf.queryExecution()
    rdd, environment = execution.toRdd(), plans.class_named("org.apache.spark.SparkEnv")
    found = list(shuffles(plans, rdd))
    sent = plans.spark.sparkContext._jsc.sc().submitMapStage(found[0])
    while not sent.isCompleted():
        pass
    for one in found:
        environment.get().mapOutputTracker().unregisterAllMapAndMergeOutput(one.shuffleId())
    columns = plans.sequence(execution.analyzed().output())
    return plans.frame(
        session, leaf_of(plans, session, columns, rdd, execution.executedPlan().outputPartitioning())
    )


@pytest.mark.parametrize("deletes", [False, True], ids=["updates and inserts", "only deletions"])
def test_tasks_that_are_run_again_count_their_rows_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, deletes: bool
) -> None:
    path, lost = lake.table(*ROWS, schema=SCHEMA, partitioned="part"), list[Any]()
    real = JoinedUpsert._joined

    def joined(own: JoinedUpsert, old: Any) -> Any:
        rows, frame = real(own, old)
        lost.append(rows)
        return rows, sent_and_lost(own._plans, own._session, frame)

    monkeypatch.setattr(JoinedUpsert, "_joined", joined)
    new = lake.rows(*(ROWS if deletes else NEW), schema=SCHEMA)
    done = lake.lw.upsert(new, path, ["id"], delete_when="true" if deletes else None)
    (rows,) = lost
    assert rows.is_sound and rows.counts["read"] == 80, "each has been read twice, and nothing else is odd"
    told = (done.rows_inserted, done.rows_updated, done.rows_deleted)
    assert told == ((0, 0, 40) if deletes else (20, 20, 0))
    assert "counted once" in done.left_because
    assert lake.held(path) == ([] if deletes else sorted([*ROWS[:20], *NEW], key=repr))


def lose_kept_rows(spark: SparkSession) -> None:
    """What is kept is taken away."""
    jvm: Any = spark._jvm
    for number in spark.sparkContext._jsc.getPersistentRDDs():
        jvm.org.apache.spark.SparkEnv.get().blockManager().master().removeRdd(number, True)


def test_an_upsert_whose_kept_rows_are_gone_computes_them_anew(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, tries = lake.table(*ROWS, schema=SCHEMA, partitioned="part"), list[str]()
    monkeypatch.setattr(
        failpoints, "listener", amid("upsert.merging", partial(lose_kept_rows, lake.spark), tries)
    )
    with caplog.at_level("INFO", logger="lakewarden"):
        done = lake.lw.upsert(lake.rows(*NEW, schema=SCHEMA), path, ["id"])
    assert (len(tries), done.rows_inserted, done.rows_updated, done.left_because) == (2, 20, 20, "")
    assert lake.held(path) == sorted([*ROWS[:20], *NEW], key=repr)
    assert "rows that were kept for this write. Trying again (1 of 3)." in caplog.text


def test_rows_of_a_fixed_version_of_the_table_are_not_computed_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may have committed since: another try would put back what that version held."""
    path, tries = lake.table(*ROWS, schema=SCHEMA, partitioned="part"), list[str]()
    monkeypatch.setattr(
        failpoints, "listener", amid("upsert.merging", partial(lose_kept_rows, lake.spark), tries)
    )
    source = lake.spark.sql(f"SELECT id, 'old!' AS v, part FROM delta.`{path}` VERSION AS OF 0")
    with pytest.raises(ConflictError, match="executor was lost") as lost:
        lake.lw.upsert(source, path, ["id"])
    assert len(tries) == 1 and "fixed version" in str(lost.value.hint)
    assert lake.held(path) == sorted(ROWS, key=repr)
