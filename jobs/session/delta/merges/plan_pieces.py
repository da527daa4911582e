"""What plans of changes are put together from, and their commit."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lakewarden.jobs.session.plans import Plans

__all__ = ["Replacement", "attribute", "column", "counted", "leaf_of", "metric", "used"]


def metric(plans: Plans, name: str, value: int = 0) -> Any:
    """A number that tasks add to."""
    made = plans.sql.execution.metric.SQLMetrics.createMetric(plans.spark.sparkContext._jsc.sc(), name)
    made.set(value)
    return made


def counted(plans: Plans, number: Any) -> Any:
    """A condition that always holds, and counts the rows that come by."""
    return plans.sql.delta.metric.IncrementMetric(plans.always, number)


def column(plans: Plans, name: str, value: Any) -> Any:
    """An expression as a column."""
    expressions = plans.sql.catalyst.expressions
    nothing, none = plans.scala_sequence(()), plans.nothing
    return expressions.Alias(value, name, expressions.NamedExpression.newExprId(), nothing, none, nothing)


def attribute(plans: Plans, name: str, type_: Any) -> Any:
    """A column of a leaf."""
    expressions = plans.sql.catalyst.expressions
    new, nothing = expressions.NamedExpression.newExprId(), plans.scala_sequence(())
    return expressions.AttributeReference(name, type_, True, plans.sql.types.Metadata.empty(), new, nothing)


def leaf_of(plans: Plans, session: Any, columns: Sequence[Any], rdd: Any, partitioning: Any) -> Any:
    """A plan of the rows of an RDD, in no order."""
    none, nothing = plans.nothing, plans.scala_sequence(())
    return plans.sql.execution.LogicalRDD(
        plans.scala_sequence(columns), rdd, partitioning, nothing, False, none, session, none, none
    )


def used(plans: Plans, parts: Iterable[Any]) -> Any:
    """The attributes that expressions, or nodes of a plan, refer to."""
    sets = [one.references() for one in parts]
    return plans.sql.catalyst.expressions.AttributeSet.fromAttributeSets(plans.scala_sequence(sets))


class Replacement:
    """Files of a table that are written anew: one commit of a transaction, under the statement's id."""

    def __init__(self, plans: Plans, session: Any, command: Any, transaction: Any) -> None:
        self._plans, self._session, self._command = plans, session, command
        self._transaction = transaction

    @property
    def is_done(self) -> bool:
        """Whether it was done before, under the operation id of this session."""
        return bool(self._command.hasBeenExecuted(self._transaction, self._session, self._plans.nothing))

    @property
    def is_numbered(self) -> bool:
        """Whether the session gives it an operation id, which the table is to know whatever it changes."""
        return bool(self._number().isDefined())

    def _number(self) -> Any:
        log = self._transaction.deltaLog()
        return self._command.createSetTransaction(self._session, log, self._plans.nothing)

    def written(self, rows: Any) -> Sequence[Any]:
        """The `AddFile`s of a DataFrame's rows."""
        return self._plans.sequence(self._transaction.writeFiles(rows._jdf))

    def run(self, rows: Any, *, writes: bool) -> Sequence[Any]:
        """The `AddFile`s of a DataFrame's rows; none where they are read for what is told on the way alone."""
        if writes:
            return self.written(rows)
        rows.write.format("noop").mode("overwrite").save()
        return ()

    def discard(self, added: Sequence[Any]) -> None:
        """Delete files that were written for this commit, and that it will not name."""
        log = self._transaction.deltaLog()
        for one in added:
            absolute = self._plans.sql.delta.util.DeltaFileOperations.absolutePath
            path = absolute(str(log.dataPath()), str(one.path()))
            with suppress(PySparkException, Py4JJavaError):  # what stays, a vacuum takes
                path.getFileSystem(log.newDeltaHadoopConf()).delete(path, False)

    def commit(
        self,
        operation: Any,
        actions: Sequence[Any],
        added: Sequence[Any],
        told: Mapping[str, int],
        *,
        reads_whole: bool = True,
    ) -> None:
        """Put new files in the place of old ones, given what is done about these. Whoever `reads_whole` loses to
        everybody who commits first, others to those who change what they have asked the transaction for."""
        plans, transaction = self._plans, self._transaction
        metrics = {name: metric(plans, name, value) for name, value in told.items()}
        if reads_whole:
            transaction.readWholeTable()
        transaction.registerSQLMetrics(self._session, plans.scala_map(metrics.items()))
        number = plans.option(self._number())
        whole = (*actions, *added, *(() if number is None else (number,)))
        transaction.commit(plans.scala_sequence(whole), operation)

    def recache(self) -> None:
        """Have Spark read the table anew where it is kept in a cache."""
        cache = self._session.sharedState().cacheManager()
        cache.recacheByPlan(self._session, self._command.target())
