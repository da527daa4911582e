"""Which tables a plan names: those a query reads, and those that a command is about, whatever it calls them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import UnavailableError, UsageError
from lakewarden.jobs.session.formats.plan_parts import Affected, QueriedTable
from lakewarden.jobs.session.judgement.statement_kinds import StatementKind, kind_of
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind, location_of
from lakewarden.jobs.session.session_formats import FORMATS, first_known

__all__ = ["PlanTables"]

_PLAN: Final = "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"
_SCRIPT: Final = "org.apache.spark.sql.catalyst.plans.logical.CompoundPlanStatement"
_BESIDE: Final[Mapping[str, str]] = {
    "AppendData": "table",
    "DescribeQueryCommand": "plan",
    "ExplainCommand": "logicalPlan",
    "InsertIntoStatement": "table",
    "OverwriteByExpression": "table",
    "OverwritePartitionsDynamic": "table",
    "RelationTimeTravel": "relation",
    **{hidden: said for one in FORMATS for hidden, said in one.hidden_plans},
}
"""Plans that hold another one which Spark counts neither among their children nor among what is inside them."""
_BETWEEN: Final = re.compile(r"[\s`'\"]+")
_ABSOLUTE: Final = re.compile(r"(?:[A-Za-z][\w+.-]*:)?/")
_SESSION: Final = "spark_catalog"
_NO_PARTS: Final = (str, int, float, bool, bytes, type(None))


class PlanTables:
    """Looks into the plans of one Spark application."""

    def __init__(self, spark: SparkSession, plans: Plans) -> None:
        jvm: Any = spark._jvm
        self._plans = plans
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        classes = (_PLAN, _SCRIPT, "scala.Option", "scala.collection.Seq")
        self._plan, self._script, self._option, self._sequence = (
            jvm.java.lang.Class.forName(name) for name in classes
        )

    def source(self, leaf: JavaPlan) -> QueriedTable | None:
        """The table that a leaf of an analysed query reads; None where it reads none."""
        name = kind(leaf)
        told = first_known(one.queried(leaf, name) for one in FORMATS)
        if told is not None:
            return told
        if name == "DataSourceV2Relation":
            identifier, table = leaf.identifier().get(), leaf.table()
            location, provider = (table.properties().get(key) for key in ("location", "provider"))
            return QueriedTable(
                name=".".join((*identifier.namespace(), identifier.name())).lower(),
                location=None if location is None else self._place(location),
                format=None if provider is None else provider.lower(),
            )
        if name not in ("LogicalRelation", "HiveTableRelation"):
            return None
        entry = leaf.tableMeta() if name == "HiveTableRelation" else leaf.catalogTable().get()
        found, provider = entry.identifier(), self._plans.option(entry.provider())
        database = self._plans.option(found.database())
        return QueriedTable(
            name=".".join(part for part in (database, found.table()) if part is not None).lower(),
            location=self._place(entry.location()),
            format=None if provider is None else provider.lower(),
        )

    def about(self, session: Any, command: JavaPlan) -> frozenset[Affected]:
        """The tables and folders that an analysed command is about, wherever it holds them; not those that its query
        reads."""
        found: set[Affected] = set()
        for part in self._parts(command):
            found |= self._located(session, part)
        named = first_known(one.named_by(self._plans, session, command) for one in FORMATS)
        found |= frozenset() if named is None else self._located(session, named)
        for below in self._plans.sequence(command.children()):
            if kind_of(kind(below)) in (
                StatementKind.WRITES,
                StatementKind.UNRECORDED,
            ):  # several INSERTs, or one under a WITH
                found |= self.about(session, below)
        return frozenset(found)

    def inside(self, session: Any, namespace: JavaPlan) -> Iterator[Affected]:
        """The tables of a resolved namespace, by the entries that its catalog has. Raises `UnavailableError` where it
        cannot tell of one of them."""
        catalog, parts = namespace.catalog(), list(self._plans.sequence(namespace.namespace()))
        names = self._plans.gateway.new_array(self._plans.text, len(parts))
        for place, part in enumerate(parts):
            names[place] = part
        for identifier in catalog.listTables(names):
            name = str(identifier.name())
            try:
                if str(catalog.name()) == _SESSION:  # of which tables that nobody can read have entries, too
                    table = self._plans.sql.catalyst.TableIdentifier(name, self._plans.optional(parts[-1]))
                else:
                    table = catalog.loadTable(identifier)
                yield from self._located(session, table)
            except (Py4JJavaError, PySparkException) as error:
                raise UnavailableError(
                    f"{'.'.join((*parts, name))} cannot be looked at, and so not whether a legal hold keeps it.",
                    hint="Remove its entry first (DROP TABLE), or repair it.",
                ) from error

    def called(self, session: Any, call: JavaPlan) -> Iterator[Affected | None]:
        """The tables and folders that the arguments of a parsed CALL name, if its procedure is one of a
        format's; None for an argument that is no plain value."""
        if kind(call.procedure()) != "UnresolvedProcedure":  # an IDENTIFIER whose value only Spark finds
            yield None
            return
        first = str(call.procedure().nameParts().apply(0))
        catalog = self._plans.catalog_named(session, first) or self._plans.current_catalog(session)
        by = next((one for one in FORMATS if one.procedures_of(catalog)), None)
        if by is None:
            return
        for argument in self._plans.sequence(call.args()):
            value = argument.value() if kind(argument) == "NamedArgumentExpression" else argument
            if kind(value) != "Literal":
                yield None
            elif value.dataType().typeName() == "string" and value.value() is not None:
                named = by.found(self._plans, session, catalog, str(value.value()))
                yield from () if named is None else self._located(session, named)
                yield from self._places(str(value.value()))

    def _places(self, text: str) -> Iterator[Affected]:
        """The paths in a text, such as `parquet`.`/a/b`."""
        for word in _BETWEEN.split(text):
            if _ABSOLUTE.match(word):
                with suppress(UsageError, Py4JJavaError):  # no place of which a table could be
                    yield Affected(self._place(word))

    def within(self, script: JavaPlan) -> Iterator[JavaPlan]:
        """The statements of a parsed script, those in its branches and loops included."""
        for part in self._parts(script):
            if self._script.isInstance(part):
                yield from self.within(part)
            elif self._plan.isInstance(part):
                yield part

    def nodes(self, plan: JavaPlan) -> Iterator[JavaPlan]:
        """A plan and everything in it, subqueries and what a WITH names included."""
        waiting = [plan]
        while waiting:
            node = waiting.pop()
            yield node
            beside = _BESIDE.get(kind(node))
            if beside is not None:
                waiting.append(getattr(node, beside)())
            for below in (node.children(), node.subqueries(), node.innerChildren()):
                waiting += self._plans.sequence(below)

    def _parts(self, product: Any) -> Iterator[Any]:
        """The parts of a Scala object, with the contents of options and sequences in their place."""
        for number in range(product.productArity()):
            yield from self._contents(product.productElement(number))

    def _contents(self, part: Any) -> Iterator[Any]:
        if isinstance(part, _NO_PARTS):  # py4j makes Python's own of these
            return
        if self._option.isInstance(part):
            if part.isDefined():
                yield from self._contents(part.get())
        elif self._sequence.isInstance(part):
            for one in self._plans.sequence(part):
                yield from self._contents(one)
        else:
            yield part

    def _located(self, session: Any, part: Any) -> frozenset[Affected]:
        """Where a part of a command lies, if it is a table or a folder."""
        name = kind(part)
        table = first_known(one.about(part, name) for one in FORMATS)
        if table is not None:
            return frozenset({table})
        match name:
            case "RowLevelOperationTable":
                return self._located(session, part.table())
            case "V1Table":
                return self._located(session, part.v1Table())
            case "ResolvedTable" | "DataSourceV2Relation":
                return self._located(session, part.table())
            case "ResolvedIdentifier":
                catalog, name = part.catalog(), part.identifier()
                if not catalog.tableExists(name):
                    return frozenset()
                return self._located(session, catalog.loadTable(name))
            case "LogicalRelation":
                entry = self._plans.option(part.catalogTable())
                return frozenset() if entry is None else self._located(session, entry)
            case "HiveTableRelation":
                return self._located(session, part.tableMeta())
            case "CatalogTable":
                return self._located(session, part.storage()) | self._located(session, part.identifier())
            case "TableIdentifier":
                catalog = session.sessionState().catalog()
                if catalog.isTempView(part) or not catalog.tableExists(part):
                    return frozenset()
                return self._located(session, catalog.getTableMetadata(part).storage())
            case "CatalogStorageFormat":
                return self._placed(part.locationUri())
            case "TableSpec":
                return self._placed(part.location())
            case "Path":
                return frozenset({Affected(location_of(part))})
            case _:
                return frozenset()

    def _placed(self, uri: Any) -> frozenset[Affected]:
        return frozenset({Affected(self._place(uri.get()))} if uri.isDefined() else ())

    def _place(self, uri: Any) -> str:
        return location_of(self._path(uri))
