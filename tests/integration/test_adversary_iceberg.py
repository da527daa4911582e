"""The adversary with Iceberg tables beside Delta tables, on the real engine and one session of Spark: what it always
plays, and each hole of that side open and closed. `bench.adversary --iceberg` plays what nobody has seen before."""

import time
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.adversary.game import played, shrunk, told
from support.adversary.holes import Hole
from support.adversary.iceberg.ice_stage import ice_stage
from support.adversary.stage import Stage, leave
from support.adversary.themes import ICEBERG, chosen
from support.adversary.witnesses import ICE_HOLES, is_seen, steps_of
from support.cases import mostly_long
from support.servers.postgres import PostgresServer

pytestmark = [pytest.mark.spark, pytest.mark.metastore, pytest.mark.postgres, pytest.mark.heavy]

SEEDS = range(60)
FEW = [2, 48]
EACH_RUN = [one for one in ICE_HOLES if one.name == "ice second name"]
SECONDS = 400


@pytest.fixture(scope="module")
def stage(
    spark: SparkSession, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    yield ice_stage(tmp_path_factory.mktemp("adversary"), spark, postgres.fresh_url())
    leave()


@pytest.mark.parametrize("seeds", mostly_long([FEW, SEEDS], [FEW]), ids=["few", "many"])
def test_nothing_that_is_needed_is_lost_whatever_happens_in_whatever_order(
    stage: Stage, seeds: list[int] | range
) -> None:
    until = time.monotonic() + SECONDS
    for seed in seeds:
        if time.monotonic() < until:
            _nothing_is_wrong(stage, seed)


@pytest.mark.long
@pytest.mark.parametrize("hole", mostly_long(ICE_HOLES, EACH_RUN), ids=lambda hole: hole.name)
def test_a_hole_is_seen_while_it_is_open_and_only_then(stage: Stage, hole: Hole) -> None:
    sound = played(stage, steps_of(hole.name))
    assert not sound.findings, "\n".join(told(sound))
    assert is_seen(stage, hole) is not None


def _nothing_is_wrong(stage: Stage, seed: int) -> None:
    history = played(stage, chosen(seed, ICEBERG))
    if history.findings:
        lines = told(shrunk(stage, history.steps, history.findings[0], seconds=30))
        command = f"python -m bench.adversary --iceberg --replay {seed}"
        pytest.fail("\n".join([command, *lines]))
