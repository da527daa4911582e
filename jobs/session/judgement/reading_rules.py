"""What somebody may send to Spark who may read tables, and change own ones: Spark knows no users, so it is asked here.

A `Judge`: it is shown how a statement is said, and then the analysed plan that will be run. Everything is refused that
is not known to be harmless: any command but a few that show things, any source but tables and views of the catalog,
scripts, functions that are on no list (listed_functions.py) and thus not found in such a session: analysis could run
them.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.jobs.session.formats.plan_parts import QueriedTable
from lakewarden.jobs.session.judgement.listed_functions import keep_listed
from lakewarden.jobs.session.judgement.moments import require_plain_moment, require_plain_windows
from lakewarden.jobs.session.judgement.plan_tables import PlanTables
from lakewarden.jobs.session.judgement.statement_kinds import QUERIES, StatementKind, kind_of
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["Reading"]

_KEYS: Final = (
    "lakewarden.",
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
)
"""Beginnings of what a reader may SET and RESET."""
_COMMANDS: Final = frozenset(
    {
        "ShowNamespacesCommand", "ShowTables", "ShowViews", "ShowColumns", "DescribeRelation",
        "DescribeColumn", "SetCatalogAndNamespace", "SetNamespaceCommand",
    }
)  # fmt: skip
_NAMED: Final = frozenset(
    {
        "UnresolvedRelation", "RelationTimeTravel", "UnresolvedInlineTable", "ResolvedInlineTable",
        "OneRowRelation", "LocalRelation", "UnresolvedTableValuedFunction", "Range",
    }
)  # fmt: skip
"""What rows may come from, as a statement says it; EXECUTE IMMEDIATE is none of these."""
_FOUND: Final = frozenset({"LocalRelation", "OneRowRelation", "Range", "CTERelationRef", "HiveTableRelation"})
"""What rows may come from, after analysis, besides tables of the catalog."""
_TELLING: Final = frozenset({"DescribeRelation", "DescribeColumn"})
"""Commands that tell of a table's contents when they are EXTENDED: statistics of its columns."""
_TOLD_OF_NAMES: Final = frozenset({"DescribeColumnCommand", "DescribeTableCommand"})
"""What they become for views, and for tables that Spark's own catalog reads."""
_CHANGES: Final = {
    "InsertIntoStatement": "table", "UpdateTable": "table", "DeleteFromTable": "table",
    "MergeIntoTable": "targetTable",
}  # fmt: skip
"""Statements that change rows of one table, with the node that names the table."""
_PRIVILEGES: Final = "__required_write_privileges__"
"""What Spark itself says of a table that is written."""
_SOURCES: Final = {"InsertIntoStatement": "query", "MergeIntoTable": "sourceTable"}
"""Where in them the query sits."""


_READ_OPTIONS: Final = frozenset({"versionasof", "timestampasof"})
_WRITE_OPTIONS: Final = frozenset({"usermetadata", "partitionoverwritemode", _PRIVILEGES})


class Reading:
    """A session whose user reads, and changes own tables. From then on each statement of it has to be asked about.

    `require_open` is told which tables a query reads, those behind its views included, before any row is read, and
    raises `NotAllowedError` for one that is closed; `require_own` of which table rows are changed.
    """

    def __init__(
        self,
        spark: SparkSession,
        require_open: Callable[[Sequence[QueriedTable]], None],
        require_own: Callable[[QueriedTable], None],
    ) -> None:
        self._session: Any = spark._jsparkSession
        self._plans = Plans(spark)
        self._tables = PlanTables(spark, self._plans)
        self._require_open, self._require_own = require_open, require_own
        keep_listed(spark)
        spark.conf.set("spark.sql.runSQLOnFiles", "false")

    @staticmethod
    def may_set(key: str) -> bool:
        """Whether a reader's session may be opened with this setting."""
        return key.startswith(_KEYS)

    def require_said(self, plan: JavaPlan) -> None:
        if kind(plan) in _CHANGES:
            self._require_change(plan)
        elif kind_of(kind(plan)) is StatementKind.QUERY:
            self._require_named(plan)
        else:
            self._require_harmless(plan)

    def require_read(self, plan: JavaPlan, analysed: JavaPlan) -> None:
        name = kind(plan)
        if name in _CHANGES:  # of no Delta table, which alone have owners here
            self._require_own(QueriedTable(self._target(plan), None, None))
        elif name in _TELLING:
            self._require_told(plan, analysed)
        elif kind_of(name) is StatementKind.QUERY:
            self._require_open_sources(analysed)

    def require_written(
        self, plan: JavaPlan, target: str | None, query: JavaPlan | None, format_: str
    ) -> None:
        self._require_own(QueriedTable(self._target(plan), target, format_))
        if query is not None:
            self._require_open_sources(query)

    def require_run(self, analysed: JavaPlan) -> None:
        """What a reader's write reads is judged as its query."""

    def _require_change(self, plan: JavaPlan) -> None:
        """A change of one table by what a query may read. What a query in a condition reads, nobody would see."""
        if self._plans.sequence(plan.subqueries()):
            raise _refused("queries in the conditions of this statement")
        if kind(plan) == "MergeIntoTable" and plan.withSchemaEvolution():
            raise _refused("WITH SCHEMA EVOLUTION, which changes columns")
        _require_options(self._named(plan), _WRITE_OPTIONS)
        if kind(plan) in _SOURCES:
            self._require_named(getattr(plan, _SOURCES[kind(plan)])())

    def _target(self, plan: JavaPlan) -> str:
        """What a change calls its table."""
        return ".".join(self._plans.sequence(self._named(plan).multipartIdentifier()))

    def _named(self, plan: JavaPlan) -> JavaPlan:
        target = getattr(plan, _CHANGES[kind(plan)])()
        while kind(target) == "SubqueryAlias":
            target = target.child()
        if kind(target) != "UnresolvedRelation":
            raise _refused(f"{kind(target)} as what is changed")
        return target

    def _require_harmless(self, command: JavaPlan) -> None:
        match kind(command):
            case "SetCommand" if command.kv().isDefined():
                key = str(command.kv().get()._1())
            case "ResetCommand" if command.config().isDefined():
                key = str(command.config().get())
            case name if name in _COMMANDS:
                return
            case name:
                raise _refused(name)
        if not self.may_set(key):
            raise _refused(f"SET {key}")

    def _require_told(self, describe: JavaPlan, analysed: JavaPlan) -> None:
        """Whoever may not query a table is told the names and types of its columns, but nothing of its rows: neither
        statistics nor which partitions there are. Asked of the very table that is described."""
        is_plain = kind(describe) == "DescribeRelation" and not describe.isExtended()
        if is_plain and describe.partitionSpec().isEmpty():
            return
        if kind(analysed) in _TELLING and kind(analysed.relation()) == "ResolvedTable":
            self._require_open(self._sources([_leaf_of(self._plans, analysed.relation())]))
            return
        if kind(analysed) not in _TOLD_OF_NAMES:
            raise _refused(kind(analysed))
        # Spark looks for it by this name when it runs: with its catalog and database, whatever the session uses then.
        table = self._plans.unresolved(analysed.table().nameParts(), self._plans.no_options, False)
        self._require_open_sources(self._plans.analysed(self._session, table))

    def _require_named(self, query: JavaPlan) -> None:
        """Rows come from what a catalog names, as far as the statement says, and are read as they are by default."""
        for node in self._tables.nodes(query):
            name = kind(node)
            if kind_of(name) is not StatementKind.QUERY or name == "ScriptTransformation":
                raise _refused(name)
            if node.children().isEmpty() and name not in _NAMED:
                raise _refused(f"{name} that is no table of the catalog")
            relation = node
            if name == "WithWindowDefinition":
                require_plain_windows(self._plans, node, _refused)
            if name == "RelationTimeTravel":
                require_plain_moment(self._plans, node, _refused)
                relation = node.relation()
            if kind(relation) == "UnresolvedRelation":
                _require_options(relation, _READ_OPTIONS)
                if any("/" in part for part in self._plans.sequence(relation.multipartIdentifier())):
                    raise _refused("a path")
                if relation is not node or not relation.options().isEmpty():
                    self._require_open_now(relation)

    def _require_open_now(self, relation: JavaPlan) -> None:
        """A table of which an earlier version is asked for: Spark's analysis would tell which versions it has."""
        now = self._plans.unresolved(relation.multipartIdentifier(), self._plans.no_options, False)
        with suppress(AnalysisException):  # no table has this name, which the analysis of the whole will say
            self._require_open_sources(self._plans.analysed(self._session, now))

    def _require_open_sources(self, query: JavaPlan) -> None:
        """An analysed query reads tables of the catalog, each of them open to whoever asks, and does nothing else."""
        self._require_open(self._sources(self._leaves(query)))

    def _leaves(self, query: JavaPlan) -> list[JavaPlan]:
        leaves = []
        for node in self._tables.nodes(query):
            name = kind(node)
            if name not in QUERIES:
                raise _refused(name)
            if node.children().isEmpty():
                if name not in _FOUND and not _is_table(name, node):
                    raise _refused(f"{name} that is no table of the catalog")
                leaves.append(node)
        return leaves

    def _sources(self, leaves: Iterable[JavaPlan]) -> Sequence[QueriedTable]:
        return tuple(source for leaf in leaves if (source := self._tables.source(leaf)) is not None)


def _require_options(relation: JavaPlan, allowed: frozenset[str]) -> None:
    """A table is read, or written, with these options alone (WITH ...)."""
    for option in relation.options().keySet():
        if option not in allowed:
            raise _refused(f"the option {option}")


def _is_table(name: str, leaf: JavaPlan) -> bool:
    if name == "LogicalRelation":
        return bool(leaf.catalogTable().isDefined())
    return name == "DataSourceV2Relation" and bool(
        leaf.identifier().isDefined() and leaf.catalog().isDefined()
    )


def _refused(what: str) -> NotAllowedError:
    return NotAllowedError(
        f"A reader may not use {what}.",
        hint="Readers query tables and views, and change rows of their own tables. The gateway's "
        "gateway.writers says who may do more, besides admins.",
    )


def _leaf_of(plans: Plans, found: JavaPlan) -> JavaPlan:
    """The leaf that reads the very table that a command has found (`ResolvedTable`)."""
    create = plans.sql.execution.datasources.v2.DataSourceV2Relation.create
    return create(found.table(), plans.optional(found.catalog()), plans.optional(found.identifier()))
