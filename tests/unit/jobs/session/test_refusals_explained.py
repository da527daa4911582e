"""Which of Spark's refusals of a statement get our words, and which keep Spark's."""

import re
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException

from lakewarden.catalog.errors import LakewardenError, PreconditionError, RefusedError, UsageError
from lakewarden.jobs.session.compiled_changes import refusals_explained, wrong_rows_explained
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.refusals import CONDITIONS
from lakewarden.jobs.sql.compile.values import Dialect

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


CHANGE = draft_of("UPDATE t SET a = (SELECT max(e) FROM u) WHERE nosuch(a) = 1", Dialect.POSTGRES)
ADVICE = (
    'Use `try_cast`. If necessary set "spark.sql.ansi.enabled" to "false". SQLSTATE: 22003; line 1 pos 0;'
)


@pytest.mark.parametrize("condition", [*CONDITIONS, "SOMETHING_NEW"])
def test_no_condition_of_a_compiled_statement_is_told_in_the_words_of_spark(condition: str) -> None:
    """Every condition that has words, and one that has none."""
    about = {"relationName": "`db`.`u`", "columnName": "`a`", "value": "300", "targetType": '"TINYINT"'}
    error = AnalysisException(
        f"[{condition}] {ADVICE}\n'Project [1]", errorClass=condition, messageParameters=about
    )
    with pytest.raises(LakewardenError) as caught, wrong_rows_explained(CHANGE):
        raise error
    told = caught.value
    assert told.hint and not {"SQLSTATE", "ansi", "try_cast", "Project", "{"} & set(
        re.findall(r"\w+|{", str(told))
    )
    assert (condition in str(told)) is (condition == "SOMETHING_NEW")


@pytest.mark.parametrize(
    ("condition", "about", "said"),
    [
        ("TABLE_OR_VIEW_NOT_FOUND", {"relationName": "`u`"}, "There is no table u. Line 1, column 38:"),
        (
            "UNRESOLVED_ROUTINE",
            {"routineName": "`nosuch`"},
            "There is no function nosuch. Line 1, column 47:",
        ),
        (
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            {"objectName": "`u`.`e`"},
            "Spark does not find this column of a query around it. Line 1, column 30:",
        ),
        ("SCALAR_SUBQUERY_TOO_MANY_ROWS", {}, "found several rows. Line 1, column 26:"),
        ("USER_RAISED_EXCEPTION", {"errorMessage": "'12L' is not read as INT."}, "'12L' is not read as INT."),
        (
            "CAST_OVERFLOW_IN_TABLE_INSERT",
            {"columnName": "`a`", "targetType": '"TINYINT"'},
            "A value is too large for a, whose type is TINYINT. Line 1, column 14:",
        ),
        ("CAST_OVERFLOW", {"value": "300S", "targetType": '"TINYINT"'}, "300 is too large for TINYINT."),
        ("SOMETHING_NEW", {}, "Spark refused this (SOMETHING_NEW). Line 1, column 8:"),
    ],
)
def test_what_it_is_about_is_named_and_shown(condition: str, about: dict[str, str], said: str) -> None:
    with pytest.raises(LakewardenError) as caught, wrong_rows_explained(CHANGE):
        raise AnalysisException("...", errorClass=condition, messageParameters=about)
    assert said in str(caught.value)


def test_a_constraint_of_the_owner_is_told_as_the_owner_wrote_it() -> None:
    with (
        pytest.raises(PreconditionError, match=r"A row cannot be written: CHECK constraint few"),
        wrong_rows_explained(CHANGE),
    ):
        raise Told("[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint few (v < 21) violated")
