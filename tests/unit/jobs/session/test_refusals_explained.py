"""Which of Spark's refusals of a statement get our words, and which keep Spark's."""

import pytest
from pyspark.errors import AnalysisException

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.session.compiled_changes import refusals_explained

MERGE = "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = (SELECT max(v) FROM u)"


def refused(condition: str, said: str) -> None:
    with refusals_explained(MERGE):
        raise AnalysisException(said, errorClass=condition, messageParameters={})


@pytest.mark.parametrize(
    "condition",
    [
        "DELTA_UNSUPPORTED_SUBQUERY",
        "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_CORRELATED_SCALAR_SUBQUERY",
    ],
)
def test_a_query_where_a_merge_takes_none_is_told_in_our_words(condition: str) -> None:
    with pytest.raises(UsageError, match="Delta runs no query here"):
        refused(condition, "Subqueries are not supported")


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("TABLE_OR_VIEW_NOT_FOUND", "The table or view `subquery_stage` cannot be found"),
        ("INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN", "Scalar subquery"),
    ],
)
def test_another_mistake_that_speaks_of_a_subquery_keeps_the_words_of_spark(
    condition: str, said: str
) -> None:
    with pytest.raises(AnalysisException, match="subquery"):
        refused(condition, said)
