"""Random tables and random statements on Spark and on PostgreSQL: the same contents, the same counts.

`bench.sql` plays many more. A statement that differs is printed with its seed: `play(both, seed)` plays it again.
"""

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from support.servers.postgres import PostgresServer
from support.two_databases.game import Outcome, play
from support.two_databases.sides import two_sides

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

SEEDS = range(20)


def test_random_changes_do_what_postgresql_does(
    spark: SparkSession, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with two_sides(spark, postgres, tmp_path_factory.mktemp("random")) as both:
        played = [play(both, seed) for seed in SEEDS]
    for key in ("lakewarden.dialect", "lakewarden.matches"):
        spark.conf.unset(key)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.REFUSED] <= 2
    assert outcomes[Outcome.CHOSEN] >= 1, "the policy about several matches is among them"
