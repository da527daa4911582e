"""What somebody may send to Spark who may read tables and nothing else: Spark knows no users, so it is asked here.

A statement is analysed without being run, and what was looked at is what is run. Everything is refused that is not
known to be harmless: any command but a few that show things, any source but tables and views of the catalog, scripts.
Functions that call Java by name are not to be found in such a session: analysis alone could run them.
"""

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["Reading"]

_KEYS: Final = (
    "lakewarden.",
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
)
"""Beginnings of what a reader may SET."""
_COMMANDS: Final = frozenset(
    {
        "ShowNamespaces", "ShowTables", "ShowViews", "ShowColumns", "DescribeRelation", "DescribeColumn",
        "SetCatalogAndNamespace", "SetNamespaceCommand",
    }
)  # fmt: skip
_NAMED: Final = frozenset(
    {
        "UnresolvedRelation", "RelationTimeTravel", "UnresolvedInlineTable", "ResolvedInlineTable", "OneRowRelation",
        "LocalRelation", "UnresolvedTableValuedFunction", "Range",
    }
)  # fmt: skip
"""What rows may come from, as a statement says it; EXECUTE IMMEDIATE is none of these."""
_FOUND: Final = frozenset({"LocalRelation", "OneRowRelation", "Range", "CTERelationRef", "HiveTableRelation"})
"""What rows may come from, after analysis, besides tables of the catalog."""
_FUNCTIONS: Final = ("reflect", "java_method", "try_reflect")
_COMMAND_CLASSES: Final = ("Command", "ParsedStatement", "CompoundPlanStatement")


class Reading:
    """A session that only reads. From then on it has to be given its statements by `run`."""

    def __init__(self, spark: SparkSession) -> None:
        self._session: Any = spark._jsparkSession
        self._plans = Plans(spark)
        jvm: Any = spark._jvm
        registry = self._session.sessionState().functionRegistry()
        for name in _FUNCTIONS:
            registry.dropFunction(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name))
        spark.conf.set("spark.sql.runSQLOnFiles", "false")
        logical = "org.apache.spark.sql.catalyst.plans.logical"
        self._commands = [jvm.java.lang.Class.forName(f"{logical}.{name}") for name in _COMMAND_CLASSES]

    @staticmethod
    def may_set(key: str) -> bool:
        """Whether a reader's session may be opened with this setting."""
        return key.startswith(_KEYS)

    def run(self, text: str) -> DataFrame:
        """Run a statement that reads or shows. Raises `NotAllowedError` for any other."""
        parsed = self._plans.parsed(self._session, text)
        command = self._is_command(parsed)
        if command:
            self._require_harmless(parsed)
        else:
            self._require(parsed, _NAMED)
        analysed = self._plans.analysed(self._session, parsed)
        if not command:
            self._require(analysed, _FOUND)
        return self._plans.run(self._session, analysed)

    def _require_harmless(self, command: JavaPlan) -> None:
        name = kind(command)
        if name == "SetCommand" and command.kv().isDefined():
            key = str(command.kv().get()._1())
            if self.may_set(key):
                return
            raise _refused(f"SET {key}")
        if name not in _COMMANDS:
            raise _refused(name)

    def _require(self, query: JavaPlan, sources: frozenset[str]) -> None:
        """Rows come from these sources and from tables of the catalog, and nothing is done with them but to read."""
        for node in self._nodes(query):
            name = kind(node)
            if name == "ScriptTransformation" or self._is_command(node):
                raise _refused(name)
            if node.children().isEmpty() and name not in sources and not _is_table(name, node):
                raise _refused(f"{name} that is no table of the catalog")

    def _is_command(self, plan: JavaPlan) -> bool:
        return any(one.isInstance(plan) for one in self._commands)

    def _nodes(self, plan: JavaPlan) -> Iterator[JavaPlan]:
        """A plan and everything in it, subqueries and what a WITH names included."""
        waiting = [plan]
        while waiting:
            node = waiting.pop()
            yield node
            for below in (node.children(), node.subqueries(), node.innerChildren()):
                waiting += self._plans.sequence(below)


def _is_table(name: str, leaf: JavaPlan) -> bool:
    if name == "LogicalRelation":
        return bool(leaf.catalogTable().isDefined())
    return name == "DataSourceV2Relation" and bool(
        leaf.identifier().isDefined() and leaf.catalog().isDefined()
    )


def _refused(what: str) -> NotAllowedError:
    return NotAllowedError(
        f"A reader may not use {what}.",
        hint="Readers query tables and views. The gateway's gateway.writers says who may do more, besides admins.",
    )
