"""Which of Spark's refusals of a statement get our words, and which keep Spark's."""

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

from lakewarden.catalog.errors import LakewardenError, PreconditionError, RefusedError, UsageError
from lakewarden.jobs.session.compiled_changes import refusals_explained, wrong_rows_explained

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


class Told(Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """What py4j raises, without a Java to ask."""

    def __init__(self, said: str) -> None:
        self.java_exception = SimpleNamespace(
            getClass=lambda: SimpleNamespace(getName=lambda: "java.lang.UnsupportedOperationException"),
            getMessage=lambda: said,
            getCause=lambda: None,
        )

    def __str__(self) -> str:
        return f"An error occurred.\n\tat java.base/one.of.many.Lines\n{self.java_exception.getMessage()}"


@pytest.mark.parametrize(
    ("said", "kind", "sentence"),
    [
        (
            "[DELTA_CANNOT_MODIFY_APPEND_ONLY] This table only allows appends. SQLSTATE: 42809",
            RefusedError,
            "Delta does not do that: This table only allows appends.",
        ),
        (
            "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint few (v < 21) violated",
            PreconditionError,
            "A row cannot be written: CHECK constraint few (v < 21) violated.",
        ),
    ],
    ids=["a refusal", "a row that does not fit"],
)
def test_what_delta_does_not_do_is_a_sentence_without_javas_stack(
    said: str, kind: type[LakewardenError], sentence: str
) -> None:
    with pytest.raises(kind) as caught, wrong_rows_explained():
        raise Told(said)
    assert (str(caught.value), caught.value.hint) == (sentence, "Nothing was changed.")


@pytest.mark.parametrize("said", ["[DELTA_CONCURRENT_APPEND] Retry.", "[INTERNAL_ERROR] A bug."])
def test_a_lost_race_and_a_bug_stay_what_they_are(said: str) -> None:
    with pytest.raises(Told), wrong_rows_explained():
        raise Told(said)
