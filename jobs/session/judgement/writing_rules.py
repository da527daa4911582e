"""Statements for a user who may change all tables by SQL, but may not run programs as Spark's user.

Refused are commands, functions and options by which a statement runs somebody's code, or opens a path or address that
it names: then the catalog would say nothing any more of who reads and changes what. It is asked of the statement as it
is said, and of its analysed plan, where the bodies of views and SQL functions are.
"""

from collections.abc import Iterable
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.policy.property_requests import is_request
from lakewarden.jobs.session.judgement.listed_functions import FUNCTIONS, keep_listed
from lakewarden.jobs.session.judgement.moments import require_plain_moment, require_plain_windows
from lakewarden.jobs.session.judgement.plan_tables import PlanTables
from lakewarden.jobs.session.judgement.statement_kinds import QUERIES, StatementKind, kind_of
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["Writing"]

_KEYS: Final = (
    "lakewarden.",
    "spark.databricks.delta.",
    "spark.sql.adaptive.",
    "spark.sql.ansi.enabled",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.caseSensitive",
    "spark.sql.files.max",
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
    "spark.sql.sources.partitionOverwriteMode",
)
"""Beginnings of what a writer may SET: other keys name classes, catalogs and storages."""
_REFUSED: Final = {
    "ScriptTransformation": "TRANSFORM",
    "AddJarsCommand": "ADD JAR",
    "AddFilesCommand": "ADD FILE",
    "AddArchivesCommand": "ADD ARCHIVE",
    "CreateFunction": "CREATE FUNCTION of a class",
    "CreateFunctionCommand": "CREATE FUNCTION of a class",
    "InsertIntoDir": "INSERT OVERWRITE DIRECTORY",
    "LoadData": "LOAD DATA",
    "SetTableLocation": "SET LOCATION",
    "SetNamespaceLocation": "SET LOCATION",
    "SetTableSerDeProperties": "SET SERDE",
    "CreateTempViewUsing": "CREATE VIEW ... USING",
    "Call": "CALL",
    "CompoundBody": "a script (BEGIN ... END)",
    "RefreshResource": "REFRESH of a path",
    "SetViewProperties": "ALTER VIEW ... SET TBLPROPERTIES (they say by which settings it is read)",
    "UnresolvedPathBasedDeltaTable": "a path",
    "UnresolvedPathBasedDeltaTableRelation": "a path",
    "UnresolvedPathBasedTable": "a path",
    "UnsetViewProperties": "ALTER VIEW ... UNSET TBLPROPERTIES",
    "UnresolvedExecuteImmediate": "EXECUTE IMMEDIATE",
    "PlanWithUnresolvedIdentifier": "IDENTIFIER of anything but a plain text",
    "AlterDatabaseSetLocationCommand": "SET LOCATION",
    "AlterTableSerDePropertiesCommand": "SET SERDE",
    "AlterTableSetLocationCommand": "SET LOCATION",
    "AlterTableSetLocationDeltaCommand": "SET LOCATION",
    "InsertIntoDataSourceDirCommand": "INSERT OVERWRITE DIRECTORY",
    "InsertIntoHiveDirCommand": "INSERT OVERWRITE DIRECTORY",
    "LoadDataCommand": "LOAD DATA",
}
"""Plans, parsed and analysed, by the simple name of their class, and what users call them."""
_BODIES: Final = ("CreateUserDefinedFunction", "CreateSQLFunctionCommand")
"""CREATE FUNCTION in SQL: what it does is a text until it is used, and its analysed plan is judged."""
_CONDITIONS: Final = {"OptimizeTableCommand": "userPartitionPredicates", "DeltaReorgTable": "predicates"}
"""Commands of Delta's with conditions that are texts until they run."""
_CHANGES: Final = "DeltaCDFRelation"
"""What `table_changes` reads, which is of a table that is named."""
_NAMING: Final = frozenset(
    {
        "UnresolvedIdentifier",
        "UnresolvedRelation",
        "UnresolvedTable",
        "UnresolvedTableOrView",
        "UnresolvedView",
    }
)
"""How a parsed statement names a table, a view, or what is to be one."""
_SPECIFIED: Final = frozenset({"CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect"})
_FORMATS: Final = frozenset({"delta", "parquet", "orc", "json", "csv", "text", "iceberg", "hive"})
"""Whose readers open nothing but a table's own files; Avro's opens the schema that an option names."""
_STORED: Final = frozenset({"parquet", "orc", "textfile", "sequencefile"})
"""Likewise, for STORED AS."""
_PLACES: Final = ("path", "url", "uri", "file", "location", "class", "provider", "codec")
"""An option whose name has one of these may name a place or a program."""
_CONSTRAINTS: Final = "delta.constraints."
"""Properties that are CHECK constraints; ALTER TABLE ... ADD CONSTRAINT makes them by a statement that is judged."""
_PROPERTIES: Final = (".class", "_handler", "-impl", ".impl", "location", ".path", ".schema.url")
"""A property of a table whose name ends like this may do so."""


class Writing:
    """A `Judge` of a session whose user writes by SQL alone."""

    def __init__(self, spark: SparkSession) -> None:
        self._session: Any = spark._jsparkSession
        self._plans = Plans(spark)
        self._tables = PlanTables(spark, self._plans)
        keep_listed(spark, "table_changes")
        spark.conf.set("spark.sql.runSQLOnFiles", "false")

    @staticmethod
    def may_set(key: str) -> bool:
        """Whether a writer's session may be opened with this setting."""
        return key.startswith(_KEYS)

    def require_said(self, plan: JavaPlan) -> None:
        """Raise `NotAllowedError` for a parsed statement that runs a program, or names a path."""
        for node in self._tables.nodes(plan):
            name = kind(node)
            if name in _REFUSED:
                raise _refused(_REFUSED[name])
            if name in ("SetCommand", "ResetCommand"):
                self._require_key(name, node)
            elif name in _NAMING:
                self._require_name(name, node)
            elif name in _BODIES:
                self._require_body(node)
            elif name == "AlterTableAddConstraint":
                self._require_condition(str(node.expr()))
            elif name in _CONDITIONS:
                for text in self._plans.sequence(getattr(node, _CONDITIONS[name])()):
                    self._require_condition(str(text))
            elif name == "VacuumTableCommand":
                self._require_inventory(node)
            elif name == "RelationTimeTravel":
                require_plain_moment(self._plans, node, _refused)
            elif name == "WithWindowDefinition":
                require_plain_windows(self._plans, node, _refused)
            elif self._is_placed(name, node):
                raise _refused("LOCATION")
            elif name in _SPECIFIED:
                self._require_specified(node.tableSpec())
                if not name.endswith("AsSelect"):
                    self._require_generated(node)
                if name.startswith("Replace"):
                    _require_no_policy(self._plans.texts(node.tableSpec().properties()))
            elif name == "CloneTableStatement":
                _require_plain_properties(self._plans.texts(node.tablePropertyOverrides()))
            elif name in ("CreateTableLikeCommand", "SetTableProperties"):
                _require_plain_properties(self._plans.texts(node.properties()))
                _require_no_policy(self._plans.texts(node.properties()))

    def require_read(self, plan: JavaPlan, analysed: JavaPlan) -> None:
        """A writer may read every table of the catalog, and nothing else, by whatever view or function."""
        self.require_run(analysed)

    def require_written(
        self, plan: JavaPlan, target: str | None, query: JavaPlan | None, format_: str
    ) -> None:
        """A writer may change every table of the catalog."""

    def require_run(self, analysed: JavaPlan) -> None:
        """Raise `NotAllowedError` for an analysed statement that runs a program, or reads what no catalog names."""
        for node in self._tables.nodes(analysed):
            name = kind(node)
            if name in _REFUSED:
                raise _refused(_REFUSED[name])
            if kind_of(name) in (StatementKind.QUERY, StatementKind.UNKNOWN) and name not in QUERIES:
                raise _refused(name)
            if name == "LogicalRelation" and node.catalogTable().isEmpty():
                if not kind(node.relation()).endswith(_CHANGES):
                    raise _refused("what is no table of the catalog")
            elif name == "DataSourceV2Relation" and node.identifier().isEmpty():
                raise _refused("what is no table of the catalog")

    def _require_body(self, definition: JavaPlan) -> None:
        """Of a function in SQL: its value, or the rows that it gives, as if they were asked for."""
        value, rows = self._plans.option(definition.exprText()), self._plans.option(definition.queryText())
        for text in (None if value is None else f"SELECT {value}", rows):
            if text is not None:
                self.require_said(self._plans.parsed(self._session, text))

    def _require_condition(self, text: str) -> None:
        """Of what Delta reads and runs by itself: nobody sees its analysed plan, so that it asks functions of Spark's
        alone."""
        said = self._plans.parsed(self._session, f"SELECT {text}")
        self.require_said(said)
        for node in self._tables.nodes(said):
            waiting = self._plans.sequence(node.expressions())
            while waiting:
                expression = waiting.pop()
                waiting += self._plans.sequence(expression.children())
                if kind(expression) == "ExpressionWithUnresolvedIdentifier":
                    raise _refused("IDENTIFIER in a condition")
                if kind(expression) == "UnresolvedFunction":
                    name = ".".join(self._plans.sequence(expression.nameParts()))
                    if name.lower() not in FUNCTIONS:
                        raise _refused(f"the function {name} in a condition")

    def _require_generated(self, made: JavaPlan) -> None:
        """Of columns that are computed from others by a text."""
        for column in self._plans.sequence(made.columns()):
            text = self._plans.option(column.generationExpression())
            if text is not None:
                self._require_condition(str(text))

    def _require_inventory(self, vacuum: JavaPlan) -> None:
        """VACUUM USING INVENTORY: Delta asks a query for it, or a table."""
        query, table = (
            self._plans.option(vacuum.inventoryQuery()),
            self._plans.option(vacuum.inventoryTable()),
        )
        if query is not None:
            raise _refused("a query as INVENTORY")
        if table is not None:
            self.require_said(table)

    def _require_name(self, name: str, node: JavaPlan) -> None:
        """A table of the catalog is named, not a folder, and read with options that open nothing else."""
        parts = node.nameParts() if name == "UnresolvedIdentifier" else node.multipartIdentifier()
        if any("/" in part for part in self._plans.sequence(parts)):
            raise _refused("a path")
        if name == "UnresolvedRelation":
            _require_plain_options(node.options().keySet())

    def _is_placed(self, name: str, node: JavaPlan) -> bool:
        """Whether a statement says where something is to lie."""
        match name:
            case "CreateNamespace":
                return bool(node.properties().contains("location"))
            case "CreateTableLikeCommand":
                return bool(node.fileFormat().locationUri().isDefined())
            case "CloneTableStatement":
                return bool(node.targetLocation().isDefined())
            case "AddPartitions":
                return any(part.location().isDefined() for part in self._plans.sequence(node.parts()))
            case _ if name in _SPECIFIED:
                return bool(node.tableSpec().location().isDefined())
            case _:
                return False

    def _require_key(self, name: str, command: JavaPlan) -> None:
        """Of one key that is allowed: all of them tell what is secret, and RESET takes back what makes the rule."""
        given = command.kv() if name == "SetCommand" else command.config()
        if given.isEmpty():
            raise _refused(f"{name.removesuffix('Command').upper()} of everything")
        key = str(given.get()._1() if name == "SetCommand" else given.get())
        if not self.may_set(key):
            raise _refused(f"SET {key}")

    def _require_specified(self, spec: Any) -> None:
        """A table is of a format whose reader opens nothing but the table's own files."""
        provider = self._plans.option(spec.provider())
        if provider is not None and provider.lower() not in _FORMATS:
            raise _refused(f"USING {provider}")
        serde = self._plans.option(spec.serde())
        if serde is not None:
            self._require_stored_plainly(serde)
        options = self._plans.sequence(spec.optionExpression().options())
        _require_plain_options(str(option._1()) for option in options)
        properties = self._plans.texts(spec.properties())
        if any(key.lower().startswith("option.") for key in properties):
            raise _refused("options as properties (option.*)")
        _require_plain_properties(properties)

    def _require_stored_plainly(self, serde: Any) -> None:
        stored = self._plans.option(serde.storedAs())
        if serde.serde().isDefined() or serde.formatClasses().isDefined():
            raise _refused("classes of Hive's (SERDE, INPUTFORMAT)")
        if stored is not None and stored.lower() not in _STORED:
            raise _refused(f"STORED AS {stored}")


def _require_plain_options(options: Iterable[str]) -> None:
    for option in options:
        if any(part in option.lower() for part in _PLACES) or option.lower().startswith(_CONSTRAINTS):
            raise _refused(f"the option {option}")


def _require_plain_properties(properties: Iterable[str]) -> None:
    """A property may say where files are written, which class does that, where an entry's rows are, and what Delta asks
    of each row that anybody writes."""
    for key in properties:
        if key.lower().removeprefix("option.").startswith(_CONSTRAINTS):
            raise _refused(f"the property {key}")
        if key.lower().endswith(_PROPERTIES):
            raise _refused(f"the property {key}")


def _require_no_policy(properties: Iterable[str]) -> None:
    """A property asks for a policy, and nobody asks who set it."""
    for key in properties:
        if is_request(key):
            raise NotAllowedError(
                f"A writer may not ask for a policy of a table that is there by the property {key}: nobody would know "
                "who did.",
                hint="ALTER TABLE ... SET POLICY does it, for its owner and admins.",
            )


def _refused(what: str) -> NotAllowedError:
    return NotAllowedError(
        f"A writer may not use {what}: it would run or read as the gateway's own user.",
        hint="Admins may. The gateway's gateway.writers_may = programs lets writers do so, too.",
    )
