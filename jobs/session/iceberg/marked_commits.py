"""Spark's plans run so that what Iceberg's library commits in them says whose it is, and nothing else that looks like
ours."""

from collections.abc import Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import convert_exception

from lakewarden.catalog.errors import RefusedError
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["OUR_MARKS", "class_of", "forget_marks", "require_into_main", "run_marked"]

OUR_MARKS: Final = "spark.sql.iceberg.snapshot-property.lakewarden."
"""How settings begin by which snapshots would say that they are ours."""
_WAP: Final = ("spark.wap.id", "spark.wap.branch")
_WAP_ENABLED: Final = "write.wap.enabled"
_PLAIN: Final = "java.lang.RuntimeException"
_ANY: Final = "java.lang.Exception"
_CALLABLE: Final = "java.util.concurrent.Callable"


def require_into_main(session: Any, properties: Mapping[str, str], called: str) -> None:
    """Raise `RefusedError` if the session would put the rows aside instead of into a table with these properties."""
    if str(properties.get(_WAP_ENABLED)).lower() == "true":
        for key in _WAP:
            if session.conf().getOption(key).isDefined():
                raise RefusedError(
                    f"{key} is set, by which rows written to {called} would not be in it. Nothing was run.",
                    hint=f"RESET {key}, or write without lakewarden.",
                )


def forget_marks(plans: Plans, session: Any) -> None:
    """Take settings away by which a snapshot would say that it is ours."""
    for key in plans.texts(session.conf().getAll()):
        if key.startswith(OUR_MARKS):
            session.conf().unset(key)


def run_marked(plans: Plans, session: Any, plan: JavaPlan, marks: Mapping[str, str]) -> None:
    """Have Spark run a command, with marks on whatever it commits in this thread."""
    jvm: Any = plans.spark._jvm
    find = jvm.java.lang.Class.forName
    execution = session.sessionState().executePlan(
        plan, jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL()
    )
    # Spark runs a command when this lazy value is asked for.
    call = jvm.java.beans.EventHandler.create(find(_CALLABLE), execution, "commandExecuted")
    try:
        jvm.org.apache.iceberg.spark.CommitMetadata.withCommitProperties(marks, call, find(_ANY))
    except Py4JJavaError as error:
        cause = error.java_exception.getCause()
        if cause is None or str(error.java_exception.getClass().getName()) != _PLAIN:
            raise
        raise convert_exception(cause) from error


def class_of(error: Exception) -> str:
    """The name of the class of a Java exception; empty for any other."""
    origin = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    return "" if origin is None else str(origin.getClass().getName())
