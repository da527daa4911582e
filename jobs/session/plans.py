"""Spark's logical plans from Python: analyse, take apart, put together, run.

Everything is done with a few calls into the JVM and without code of ours in it. A Scala `Map` is a partial function,
so a map from leaves to leaves is what `transformWithSubqueries` takes. Looking a class up by its name costs 1 ms, a
call 0.02 ms: classes are looked up once.

What IDENTIFIER('...') names is in its place before anybody judges a statement: Spark keeps the statement around it, a
CREATE FUNCTION with its class, or a CALL, in a closure until it analyses it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.storage.file_store import from_hadoop
from lakewarden.catalog.units import MIB
from lakewarden.jobs.session.statement_depth import require_shallow

__all__ = ["JavaPlan", "Plans", "kind", "location_of"]

JavaPlan = Any
"""A `LogicalPlan` or `SparkPlan` in the JVM."""

_VARIABLES: Final = "spark.sql.variable.substitute"
_LONG: Final = 8
"""Bytes that a row of a range takes."""
_ONE_TASK: Final = 8 * MIB
"""Kept rows that take no more bytes than this are read by one task."""
_MERGE: Final = "MergeIntoTable"
_MERGE_OF_DELTA: Final = "MergeIntoCommand"
_WITHOUT_READER: Final = "DataSourceV2Relation"
_TABLE_OF_DELTA: Final = "DeltaTableV2"
_HIDING: Final = "IDENTIFIER"
"""The word by which a statement may be one that is seen only after analysis."""
_HIDDEN: Final = "PlanWithUnresolvedIdentifier"
_FILES: Final = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"


class Plans:
    """The doors into one Spark application. Holds no state of a statement: threads may share it."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        jvm: Any = spark.sparkContext._jvm
        sql = jvm.org.apache.spark.sql
        logical = sql.catalyst.plans.logical
        self.java: Any = jvm.java.util
        self.sql: Any = sql
        """Spark's package."""
        self.gateway: Any = spark.sparkContext._gateway
        self.text: Any = jvm.java.lang.String
        self.spark_path: Any = jvm.org.apache.spark.paths.SparkPath.fromPath
        self.logical: Any = logical
        self.unresolved: Any = sql.catalyst.analysis.UnresolvedRelation
        self.options: Any = sql.util.CaseInsensitiveStringMap
        self.no_options: Any = self.options.empty()
        self.always: Any = sql.catalyst.expressions.Literal.TrueLiteral()
        self.append_by_name: Any = logical.AppendData.byName
        self.overwrite_by_name: Any = logical.OverwriteByExpression.byName
        self.overwrite_partitions_by_name: Any = logical.OverwritePartitionsDynamic.byName
        self._active: Any = sql.classic.SparkSession
        self._dataset: Any = sql.classic.Dataset
        self._convert: Any = jvm.scala.jdk.javaapi.CollectionConverters
        self._identity_map: Any = jvm.java.util.IdentityHashMap
        self._files: Any = jvm.java.lang.Class.forName(_FILES)
        self._at_this_moment: Any = sql.catalyst.optimizer.ComputeCurrentTime.apply
        self._some: Any = jvm.scala.Some
        self.nothing: Any = jvm.scala.Option.empty()
        """A Scala Option without content."""
        self.single: Any = getattr(getattr(sql.catalyst.plans.physical, "SinglePartition$"), "MODULE$")
        self._has_subquery: Any = sql.catalyst.expressions.SubqueryExpression.hasSubquery
        self._current_user: Any = sql.catalyst.CurrentUserContext.getCurrentUser
        self._asks_who: Any = sql.catalyst.expressions.CurrentUser
        self._literal: Any = sql.catalyst.expressions.Literal.create
        self._int: Any = sql.types.DataTypes.IntegerType
        self._identifier: Any = sql.catalyst.analysis.IdentifierResolution.evalIdentifierExpr
        self._triple: Any = jvm.scala.Tuple3
        self._skip: Any = sql.execution.CommandExecutionMode.SKIP()
        self._json: Any = jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self._jvm: Any = jvm
        self._classes: dict[str, Any] = {}

    def class_named(self, name: str) -> Any:
        """A class of the JVM's by its full name, looked up once."""
        found = self._classes.get(name)
        if found is None:
            found = self._jvm
            for part in name.split("."):
                found = getattr(found, part)
            self._classes[name] = found
        return found

    def table_named(self, session: Any, name: str) -> JavaPlan | None:
        """The analysed leaf of the table that SQL calls so; None where there is none, and for a view, which is more
        than its table."""
        with self.active(session):
            if not session.catalog().tableExists(name):
                return None
            return self.bare_table(session.table(name).queryExecution().analyzed())

    @staticmethod
    def bare_table(plan: JavaPlan) -> JavaPlan | None:
        """The leaf of an analysed plan that is a table, and nothing else but what Spark puts above each table with
        columns of type CHAR. Views have a node of their own."""
        while kind(plan) == "SubqueryAlias":
            plan = plan.child()
        plan = plan.child() if kind(plan) == "Project" else plan
        return plan if plan.children().isEmpty() else None

    def asks(self, expression: Any) -> bool:
        """Whether a query is part of an expression."""
        return bool(self._has_subquery(expression))

    def cloned(self, session: Any) -> Any:
        """A clone that uses the same catalog, which Spark's own clone forgets: names would mean other tables."""
        made = session.cloneSession()
        told, own = session.sessionState().catalogManager(), made.sessionState().catalogManager()
        name = str(self.current_catalog(session).name())
        if name != str(self.current_catalog(made).name()):
            with self.active(made):
                own.setCurrentCatalog(name)
                if len(told.currentNamespace()):  # of a catalog alone, there may be none
                    own.setCurrentNamespace(told.currentNamespace())
        return made

    def catalog_named(self, session: Any, name: str) -> Any | None:
        """A session's catalog, None for none. Spark looks for it in the settings of the session that is active in the
        thread, and in a new thread none is."""
        with self.active(session):
            catalogs = session.sessionState().catalogManager()
            return catalogs.catalog(name) if catalogs.isCatalogRegistered(name) else None

    def current_catalog(self, session: Any) -> Any:
        """The catalog that a session uses."""
        with self.active(session):
            return session.sessionState().catalogManager().currentCatalog()

    @contextmanager
    def active(self, session: Any) -> Iterator[None]:
        """Have a session be the thread's own in the block: Delta and Spark's parser ask that one for settings."""
        before = self._active.getActiveSession()
        self._active.setActiveSession(session)
        try:
            yield
        finally:
            if before.isDefined():
                self._active.setActiveSession(before.get())
            else:
                self._active.clearActiveSession()

    def parsed(self, session: Any, text: str) -> JavaPlan:
        """A statement as a plan that knows no tables yet, with the names that IDENTIFIER gives by constant texts in
        their places. Raises Spark's ParseException."""
        require_shallow(text)
        plan = session.sessionState().sqlParser().parsePlan(text)
        if _HIDING not in text.upper() and "${" not in text:
            return plan
        with self.active(session):
            return self._named(plan)

    def _named(self, plan: JavaPlan) -> JavaPlan:
        """A parsed plan with the names that its IDENTIFIERs give by constant texts; itself where there are none. Others
        stay."""
        while pairs := list(self._named_parts(plan)):
            made = self.replaced(plan, pairs)
            if made.fastEquals(plan):
                return plan
            plan = made
        return plan

    def _named_parts(self, plan: JavaPlan) -> Iterator[tuple[JavaPlan, JavaPlan]]:
        """The outermost nodes of a plan that hold an IDENTIFIER, and what they are without."""
        waiting = [plan]
        while waiting:
            node = waiting.pop()
            plain = self._plain(node)
            if plain is not None:
                yield node, plain
                continue
            waiting += [*self.sequence(node.children()), *self.sequence(node.subqueries())]

    def _plain(self, node: JavaPlan) -> JavaPlan | None:
        """A node without the IDENTIFIER that it is, or that it holds where no transformation comes; None for any
        other."""
        match kind(node):
            case name if name == _HIDDEN:
                return self._built(node)
            case "ExplainCommand":
                said = node.logicalPlan()
                inner = self._named(said)
                return None if inner is said else node.copy(inner, node.mode())
            case "DescribeQueryCommand":
                said = node.plan()
                inner = self._named(said)
                return None if inner is said else node.copy(node.queryText(), inner)
            case "RelationTimeTravel":
                said = node.relation()
                inner = self._named(said)
                return None if inner is said else node.copy(inner, node.timestamp(), node.version())
            case "UnresolvedWith":
                return self._with_named_queries(node)
            case _:
                return None

    def _with_named_queries(self, said: JavaPlan) -> JavaPlan | None:
        """A WITH whose queries have no IDENTIFIER; None where they had none."""
        queries, is_other = [], False
        for one in self.sequence(said.cteRelations()):
            query = one._2()
            inner = self._named(query)
            is_other = is_other or inner is not query
            queries.append(self._triple(one._1(), inner, one._3()))
        made = self.scala_sequence(queries)
        return said.copy(said.child(), made, said.allowRecursion()) if is_other else None

    def _built(self, hidden: JavaPlan) -> JavaPlan | None:
        """The plan that an IDENTIFIER hides; None where it is no constant text: Spark finds its value when it analyses
        the statement."""
        told = hidden.identifierExpr()
        if not told.resolved() or not told.foldable() or str(told.dataType().typeName()) != "string":
            return None
        return hidden.planBuilder().apply(self._identifier(told), hidden.children())

    def composed(self, session: Any, text: str) -> JavaPlan:
        """As `parsed`, of a statement that we made out of others' texts and names: what looks like a variable in it,
        `${...}`, is none. `session` is a clone for this alone; Spark's parser asks the thread's active one."""
        session.conf().set(_VARIABLES, "false")
        with self.active(session):
            return self.parsed(session, text)

    def analysed(self, session: Any, plan: JavaPlan) -> JavaPlan:
        """A plan with its tables and columns found; commands are not run. Raises Spark's AnalysisException.

        Of a MERGE whose source asks about its target in a select list, Spark leaves that question without a reader, and
        fails when it comes to it; likewise where it asks by a Delta source which files of another table to read. A
        source that was analysed by itself has one.
        """
        found = self._found(session, plan)
        if kind(plan) != _MERGE:
            return found
        is_delta = kind(found) == _MERGE_OF_DELTA
        leaves = self.leaves(found.source() if is_delta else found)
        unread = [leaf for leaf in leaves if kind(leaf) == _WITHOUT_READER]
        if not any(is_delta or kind(leaf.table()) == _TABLE_OF_DELTA for leaf in unread):
            return found
        source = plan.sourceTable()
        return self._found(session, self.replaced(plan, [(source, self._found(session, source))]))

    def _found(self, session: Any, plan: JavaPlan) -> JavaPlan:
        return session.sessionState().executePlan(plan, self._skip).analyzed()

    def physical(self, session: Any, plan: JavaPlan) -> JavaPlan:
        """The `SparkPlan` that an analysed plan would be run as. Nothing is run."""
        plan.setAnalyzed()
        return session.sessionState().executePlan(plan, self._skip).executedPlan()

    def optimized(self, session: Any, plan: JavaPlan) -> JavaPlan:
        """An analysed plan as Spark's optimizer leaves it. Nothing is run."""
        return session.sessionState().executePlan(plan, self._skip).optimizedPlan()

    def run(self, session: Any, plan: JavaPlan) -> DataFrame:
        """Run an analysed plan as it is (commands at once, queries when they are asked for rows)."""
        plan.setAnalyzed()
        return self.frame(session, plan)

    def frame(self, session: Any, plan: JavaPlan) -> DataFrame:
        """A plan as a DataFrame of the user's session."""
        return DataFrame(self._dataset.ofRows(session, plan), self.spark)

    def stored_bytes(self, rdd: Any) -> int:
        """What the blocks of a kept RDD take, in memory and on disks."""
        told = self.spark.sparkContext._jsc.sc().getRDDStorageInfo()
        return sum(int(one.memSize()) + int(one.diskSize()) for one in told if one.id() == rdd.id())

    def sized(self, session: Any, rows: Any, size: int) -> JavaPlan:
        """A `LogicalRDD` that says how large it is: joins are chosen by that, and a local one claims to be huge. What
        is small is read by one task, and says so: what belongs together is together there, without an exchange."""
        rdd, partitioning, ordering = rows.rdd(), rows.outputPartitioning(), rows.outputOrdering()
        tasks = rdd.getNumPartitions()
        # What one task has kept is together already. Without a task, none would say that there are no rows.
        if tasks and size <= _ONE_TASK * (4 if tasks == 1 else 1):
            rdd = rdd if tasks == 1 else rdd.coalesce(1, False, self.nothing, None)
            partitioning, ordering = self.single, ordering.take(0)
        # Of a range that takes as much: py4j makes Python's numbers of the big ones that statistics are made of.
        told = session.range(0, max(size // _LONG, 1)).queryExecution().logical().stats()
        return rows.copy(
            rows.output(), rdd, partitioning, ordering, rows.isStreaming(), rows.stream(), session,
            self._some(told), self.nothing,
        )  # fmt: skip

    def leaves(self, plan: JavaPlan) -> list[Any]:
        """The leaves of a plan, including those of subqueries and shared expressions."""
        found = self.sequence(plan.collectLeaves())
        for subquery in self.sequence(plan.subqueriesAll()):
            found += self.sequence(subquery.collectLeaves())
        return found

    def nodes(self, plan: JavaPlan) -> Iterator[JavaPlan]:
        """A plan and what it is made of, logical or physical; not its subqueries."""
        yield plan
        for below in self.sequence(plan.children()):
            yield from self.nodes(below)

    def replaced(self, plan: JavaPlan, pairs: Sequence[tuple[Any, Any]]) -> JavaPlan:
        """The plan with some of its nodes, those very objects, replaced. Spark keeps a node that equals the new one,
        and tables are equal by their names: such a node is first replaced by another."""
        alike = [(old, new, self.logical.OneRowRelation()) for old, new in pairs if old.fastEquals(new)]
        if alike:
            plan = self._transformed(plan, [(old, between) for old, _, between in alike])
            pairs = [pair for pair in pairs if not any(pair[0] is old for old, _, _ in alike)]
        return self._transformed(plan, [*pairs, *((between, new) for _, new, between in alike)])

    def _transformed(self, plan: JavaPlan, pairs: Sequence[tuple[Any, Any]]) -> JavaPlan:
        if not pairs:
            return plan
        chosen = self._identity_map()
        for old, new in pairs:
            chosen.put(old, new)
        return plan.transformWithSubqueries(self._convert.asScala(chosen))

    def asks_for_the_time(self, plan: JavaPlan) -> bool:
        """Whether a value of an analysed plan, or of a view in it, depends on the time of the run."""
        return not self._at_this_moment(plan).fastEquals(plan)

    def for_this_user(self, session: Any, plan: JavaPlan) -> JavaPlan:
        """A plan that says who asks, in its views as well: what is kept in a cache for somebody else is another's."""
        if session.sharedState().cacheManager().isEmpty():
            return plan  # Spark fills the name in by itself, when it runs the plan
        names = self.java.HashMap()
        asked = self._asks_who()
        names.put(asked, self._literal(self._current_user(), asked.dataType()))
        return plan.transformAllExpressionsWithSubqueries(self._convert.asScala(names))

    def is_files(self, relation: Any) -> bool:
        """Whether a relation is one of files. Delta's own have no class name to go by."""
        return bool(self._files.isInstance(relation))

    def sequence(self, items: Any) -> list[Any]:
        """A Scala sequence as a list. Iterating over it would end in an exception, which costs py4j 20 ms."""
        return [items.apply(number) for number in range(items.length())]

    def items(self, found: Any) -> list[Any]:
        """A Java list as a list; `sequence` says why."""
        return [found.get(number) for number in range(found.size())]

    def listed(self, found: Any) -> list[Any]:
        """A Java collection as a list; `sequence` says why."""
        return self.items(self.java.ArrayList(found))

    def option(self, value: Any) -> Any | None:
        """A Scala Option's content, None for none."""
        return value.get() if value.isDefined() else None

    def number(self, value: int) -> Any:
        """A number of an INT as an expression."""
        return self._literal(value, self._int)

    def optional(self, value: Any | None) -> Any:
        """A Scala Option, empty for None."""
        return self.nothing if value is None else self._some(value)

    def scala_sequence(self, items: Iterable[Any]) -> Any:
        """An immutable Scala sequence."""
        collected = self.java.ArrayList()
        for item in items:
            collected.add(item)
        return self._convert.asScala(collected).toSeq()

    def texts(self, items: Any) -> dict[str, str]:
        """A Scala map of texts as a dict."""
        return {} if items.isEmpty() else self.entries(self._convert.asJava(items))

    def entries(self, items: Any) -> dict[str, str]:
        """A Java map of texts as a dict, by one call; `sequence` says why."""
        told: dict[str, str] = json.loads(self._json.writeValueAsString(items))
        return told

    def scala_map(self, pairs: Iterable[tuple[str, Any]]) -> Any:
        """An immutable Scala map."""
        entries = self.java.HashMap()
        for key, value in pairs:
            entries.put(key, value)
        return self._convert.asScala(entries).toMap(None)


def kind(thing: Any) -> str:
    """The simple name of a Java object's class: Delta has subclasses of its own for some, all called alike."""
    return str(thing.getClass().getName()).rpartition(".")[2]


def location_of(path: Any) -> str:
    """The canonical location of a Hadoop `Path`, which is never percent-encoded."""
    return from_hadoop(str(path.toString()))
