"""What a cancel still reaches of a statement, and what not any more."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import CancelledError
from lakewarden.jobs.engines.spark.cancellation import it_is_done, require_wanted, unwanted_once


def counted() -> tuple[SparkSession, list[str]]:
    """A session, and the job groups that its thread was put into."""
    groups: list[str] = []
    context = SimpleNamespace(setJobGroup=lambda name, said: groups.append(name))
    return cast(SparkSession, cast(Any, SimpleNamespace(sparkContext=context))), groups


def test_nothing_is_begun_that_is_not_wanted_any_more() -> None:
    require_wanted()
    with unwanted_once(lambda: True), pytest.raises(CancelledError):
        require_wanted()
    require_wanted()


def test_the_result_of_what_is_done_is_in_no_job_that_a_cancel_ends() -> None:
    spark, groups = counted()
    with unwanted_once(lambda: True):
        it_is_done(spark)
    assert len(groups) == 1 and groups[0].startswith("told-")


def test_a_session_that_nobody_can_cancel_keeps_the_job_group_of_its_user() -> None:
    spark, groups = counted()
    it_is_done(spark)
    assert groups == []
