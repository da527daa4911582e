"""What somebody may send to Spark who may read tables, and change own ones: Spark knows no users, so it is asked here.

A statement is analysed without being run, and what was looked at is what is run. Everything is refused that is not
known to be harmless: any command but a few that show things, any source but tables and views of the catalog, scripts.
Functions that call Java by name are not to be found in such a session: analysis alone could run them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.reads import location_of

__all__ = ["Reading", "Source"]

_KEYS: Final = (
    "lakewarden.",
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
)
"""Beginnings of what a reader may SET."""
_COMMANDS: Final = frozenset(
    {
        "ShowNamespaces", "ShowNamespacesCommand", "ShowTables", "ShowViews", "ShowColumns",
        "DescribeRelation", "DescribeColumn", "SetCatalogAndNamespace", "SetNamespaceCommand",
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
_CHANGES: Final = {
    "InsertIntoStatement": "table", "UpdateTable": "table", "DeleteFromTable": "table",
    "MergeIntoTable": "targetTable",
}  # fmt: skip
"""Statements that change the rows of one table, and what tells which."""
_FUNCTIONS: Final = ("reflect", "java_method", "try_reflect")
_COMMAND_CLASSES: Final = ("Command", "ParsedStatement", "CompoundPlanStatement")


@dataclass(frozen=True, slots=True)
class Source:
    """A table that a query reads: `db.t`, its canonical location and its format (`delta`), None where the catalog does
    not tell it."""

    name: str
    location: str | None
    format: str | None


class Reading:
    """A session that only reads. From then on it has to be given its statements by `run`.

    `require_open` is told which tables a query reads, those behind its views included, before any row is read, and
    raises `NotAllowedError` for one that is closed.
    """

    def __init__(self, spark: SparkSession, require_open: Callable[[Sequence[Source]], None]) -> None:
        self._session: Any = spark._jsparkSession
        self._plans = Plans(spark)
        self._require_open = require_open
        jvm: Any = spark._jvm
        self._path: Any = jvm.org.apache.hadoop.fs.Path
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
            if kind(parsed) in _TELLING:
                self._require_readable(parsed)
        else:
            self._require(parsed, _NAMED)
        analysed = self._plans.analysed(self._session, parsed)
        if not command:
            self._require_open(self._sources(self._require(analysed, _FOUND)))
        return self._plans.run(self._session, analysed)

    def is_change(self, text: str) -> bool:
        """Whether a statement changes the rows of one table, and does nothing else."""
        return kind(self._plans.parsed(self._session, text)) in _CHANGES

    def require_change(
        self, text: str, require_own: Callable[[Source], None], *, composed: bool = False
    ) -> None:
        """Raise `NotAllowedError` unless a statement changes rows of a table that `require_own` lets pass, and reads
        nothing that a query may not. `composed`: we have made it out of the user's, as it will be run."""
        session = self._session.cloneSession()
        plan = (self._plans.composed if composed else self._plans.parsed)(session, text)
        if kind(plan) not in _CHANGES:
            raise _refused(kind(plan))
        if self._plans.sequence(plan.subqueries()):
            raise _refused("queries in the conditions of this statement")
        if kind(plan) == "MergeIntoTable" and plan.withSchemaEvolution():
            raise _refused("WITH SCHEMA EVOLUTION, which changes columns")
        target = _named(getattr(plan, _CHANGES[kind(plan)])())
        if kind(target) != "UnresolvedRelation":
            raise _refused(f"{kind(target)} as what is changed")
        name = ".".join(map(quoted, self._plans.sequence(target.multipartIdentifier())))
        found = self._looked_at(session, self._plans.parsed(session, f"TABLE {name}"))
        if len(found) != 1:
            raise _refused(f"{name} as what is changed")
        require_own(found[0])
        source = {"InsertIntoStatement": "query", "MergeIntoTable": "sourceTable"}.get(kind(plan))
        if source is not None:
            query = getattr(plan, source)()
            self._require(query, _NAMED)
            self._looked_at(session, query)

    def _looked_at(self, session: Any, parsed: JavaPlan) -> Sequence[Source]:
        """The tables that a query reads, each of which is open to whoever asks."""
        sources = self._sources(self._require(self._plans.analysed(session, parsed), _FOUND))
        self._require_open(sources)
        return sources

    def _require_readable(self, describe: JavaPlan) -> None:
        """Whoever may not query a table is told the names and types of its columns, but nothing of its rows."""
        if kind(describe) == "DescribeRelation" and not describe.isExtended():
            return
        name = ".".join(map(quoted, self._plans.sequence(describe.relation().multipartIdentifier())))
        self._looked_at(self._session, self._plans.parsed(self._session, f"TABLE {name}"))

    def _require_harmless(self, command: JavaPlan) -> None:
        name = kind(command)
        if name == "SetCommand" and command.kv().isDefined():
            key = str(command.kv().get()._1())
            if self.may_set(key):
                return
            raise _refused(f"SET {key}")
        if name not in _COMMANDS:
            raise _refused(name)

    def _require(self, query: JavaPlan, sources: frozenset[str]) -> list[JavaPlan]:
        """Rows come from these sources and from tables of the catalog, and nothing is done with them but to read.
        Returns where they come from."""
        leaves = []
        for node in self._nodes(query):
            name = kind(node)
            if name == "ScriptTransformation" or self._is_command(node):
                raise _refused(name)
            if node.children().isEmpty():
                if name not in sources and not _is_table(name, node):
                    raise _refused(f"{name} that is no table of the catalog")
                leaves.append(node)
        return leaves

    def _sources(self, leaves: Iterable[JavaPlan]) -> Sequence[Source]:
        return tuple(source for leaf in leaves if (source := self._source(leaf)) is not None)

    def _source(self, leaf: JavaPlan) -> Source | None:
        name = kind(leaf)
        if name == "DataSourceV2Relation":
            identifier, table = leaf.identifier().get(), leaf.table()
            location, provider = (table.properties().get(key) for key in ("location", "provider"))
            return Source(
                name=".".join((*identifier.namespace(), identifier.name())).lower(),
                location=None if location is None else location_of(self._path(location)),
                format=_format(provider),
            )
        if name not in ("LogicalRelation", "HiveTableRelation"):
            return None
        entry = leaf.tableMeta() if name == "HiveTableRelation" else leaf.catalogTable().get()
        found = entry.identifier()
        named = (self._plans.option(found.database()), found.table())
        return Source(
            name=".".join(part for part in named if part is not None).lower(),
            location=location_of(self._path(entry.location())),
            format=_format(self._plans.option(entry.provider())),
        )

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


def _named(relation: JavaPlan) -> JavaPlan:
    """What an alias stands for."""
    while kind(relation) == "SubqueryAlias":
        relation = relation.child()
    return relation


def _format(provider: str | None) -> str | None:
    """What a catalog calls a provider, as lakewarden names formats."""
    return None if provider is None else provider.lower()


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
