"""Random upserts against an oracle written from docs/upsert.md alone (tests/support/upsert_oracle)."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.builders.lakes import Lake, running_lake
from support.upsert_oracle.game import Tally, play
from support.upsert_oracle.values import KINDS

pytestmark = pytest.mark.spark

EVERY_RUN = {4: 3, 15: 3}
"""Seeds, and how many batches of each, of every run: moments as partitions, numbers; both with deletion vectors."""
WORLDS = 25
BATCHES = 8


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with running_lake(spark, tmp_path_factory.mktemp("oracle")) as lake:
        yield lake


@pytest.mark.long
def test_a_few_random_upserts_leave_what_the_docs_say(lake: Lake) -> None:
    tally = Tally()
    for seed, batches in EVERY_RUN.items():
        play(lake.spark, lake.lw, str(lake.folder), seed, batches, tally)
    assert tally.batches == sum(EVERY_RUN.values())
    assert tally.refused and tally.pruned and tally.envelopes


@pytest.mark.long
def test_two_hundred_random_upserts_leave_what_the_docs_say(lake: Lake) -> None:
    tally = Tally()
    for seed in range(WORLDS):
        play(lake.spark, lake.lw, str(lake.folder), seed, BATCHES, tally)
    print(tally)
    assert tally.batches == WORLDS * BATCHES
    assert tally.kinds == set(KINDS) and tally.refused and tally.pruned and tally.envelopes
