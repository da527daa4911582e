"""What drivers ask about: databases, tables, columns, types. The system tables are always there, without a JVM."""

import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

import pyarrow as pa
from TCLIService import ttypes

from lakewarden import __version__
from lakewarden.catalog.system.port import SYSTEM_TABLES
from lakewarden.catalog.system.schema import row_schema
from lakewarden.daemon.gateway.operations import GatewayOperation, Lane
from lakewarden.daemon.gateway.results import ResultReader, Store, columns_of, result_of
from lakewarden.daemon.gateway.sessions import Session
from lakewarden.daemon.gateway.wire_types import JDBC_TYPES, ResultColumn, hive_type
from lakewarden.jobs.sql.wildcards import Wildcard, fitting

__all__ = ["CatalogPort", "ListedTable", "MetadataCalls"]

_OURS: Final = "lakewarden"
_TEXT, _INT, _SMALL, _FLAG = pa.string(), pa.int32(), pa.int16(), pa.bool_()
_INFO: Final = {
    ttypes.TGetInfoType.CLI_SERVER_NAME: "lakewarden",
    ttypes.TGetInfoType.CLI_DBMS_NAME: "lakewarden",
    ttypes.TGetInfoType.CLI_DBMS_VER: __version__,
    ttypes.TGetInfoType.CLI_IDENTIFIER_QUOTE_CHAR: "`",
    ttypes.TGetInfoType.CLI_SEARCH_PATTERN_ESCAPE: "\\",
}
_TYPES: Final = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "varchar",
    "char", "binary", "date", "timestamp", "array", "map", "struct",
)  # fmt: skip
_PRECISIONS: Final = {
    "boolean": 1, "tinyint": 3, "smallint": 5, "int": 10, "bigint": 19, "float": 7, "double": 15,
    "decimal": 38, "string": 2**31 - 1, "varchar": 65_535, "char": 255, "binary": 2**31 - 1, "date": 10,
    "timestamp": 29,
}  # fmt: skip
_NUMBERS: Final = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double", "decimal"})
_TABLES: Final = dict.fromkeys(("TABLE_CAT", "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE", "REMARKS"), _TEXT)
_COLUMNS: Final = {
    "TABLE_CAT": _TEXT, "TABLE_SCHEM": _TEXT, "TABLE_NAME": _TEXT, "COLUMN_NAME": _TEXT, "DATA_TYPE": _INT,
    "TYPE_NAME": _TEXT, "COLUMN_SIZE": _INT, "BUFFER_LENGTH": pa.int8(), "DECIMAL_DIGITS": _INT,
    "NUM_PREC_RADIX": _INT, "NULLABLE": _INT, "REMARKS": _TEXT, "COLUMN_DEF": _TEXT, "SQL_DATA_TYPE": _INT,
    "SQL_DATETIME_SUB": _INT, "CHAR_OCTET_LENGTH": _INT, "ORDINAL_POSITION": _INT, "IS_NULLABLE": _TEXT,
    "SCOPE_CATALOG": _TEXT, "SCOPE_SCHEMA": _TEXT, "SCOPE_TABLE": _TEXT, "SOURCE_DATA_TYPE": _SMALL,
    "IS_AUTO_INCREMENT": _TEXT,
}  # fmt: skip
_TYPE_INFO: Final = {
    "TYPE_NAME": _TEXT, "DATA_TYPE": _INT, "PRECISION": _INT, "LITERAL_PREFIX": _TEXT,
    "LITERAL_SUFFIX": _TEXT, "CREATE_PARAMS": _TEXT, "NULLABLE": _SMALL, "CASE_SENSITIVE": _FLAG,
    "SEARCHABLE": _SMALL, "UNSIGNED_ATTRIBUTE": _FLAG, "FIXED_PREC_SCALE": _FLAG, "AUTO_INCREMENT": _FLAG,
    "LOCAL_TYPE_NAME": _TEXT, "MINIMUM_SCALE": _SMALL, "MAXIMUM_SCALE": _SMALL, "SQL_DATA_TYPE": _INT,
    "SQL_DATETIME_SUB": _INT, "NUM_PREC_RADIX": _INT,
}  # fmt: skip
_FUNCTIONS: Final = {
    "FUNCTION_CAT": _TEXT, "FUNCTION_SCHEM": _TEXT, "FUNCTION_NAME": _TEXT, "REMARKS": _TEXT,
    "FUNCTION_TYPE": _INT, "SPECIFIC_NAME": _TEXT,
}  # fmt: skip
_KEYS: Final = {
    "TABLE_CAT": _TEXT, "TABLE_SCHEM": _TEXT, "TABLE_NAME": _TEXT, "COLUMN_NAME": _TEXT, "KEQ_SEQ": _INT,
    "PK_NAME": _TEXT,
}  # fmt: skip
_REFERENCES: Final = {
    "PKTABLE_CAT": _TEXT, "PKTABLE_SCHEM": _TEXT, "PKTABLE_NAME": _TEXT, "PKCOLUMN_NAME": _TEXT,
    "FKTABLE_CAT": _TEXT, "FKTABLE_SCHEM": _TEXT, "FKTABLE_NAME": _TEXT, "FKCOLUMN_NAME": _TEXT,
    "KEQ_SEQ": _INT, "UPDATE_RULE": _INT, "DELETE_RULE": _INT, "FK_NAME": _TEXT, "PK_NAME": _TEXT,
    "DEFERRABILITY": _SMALL,
}  # fmt: skip


class ListedTable(Protocol):
    """A table or view."""

    @property
    def schema(self) -> str:
        """The database; empty for a temporary view."""

    @property
    def name(self) -> str:
        """The name in Spark's catalog."""

    @property
    def view(self) -> bool:
        """Whether the entry is a view."""


class CatalogPort(Protocol):
    """What Spark's catalog has, as one connection sees it."""

    def schemas(self, session: Session, operation: GatewayOperation) -> Sequence[str]:
        """The databases."""

    def tables(self, session: Session, operation: GatewayOperation, schema: str) -> Sequence[ListedTable]:
        """What is in a database, and temporary views."""

    def columns(self, session: Session, operation: GatewayOperation, table: Any) -> Sequence[ResultColumn]:
        """The columns of one of these."""

    def keys(self, session: Session, operation: GatewayOperation, schema: str, table: str) -> Sequence[str]:
        """The columns by which a table's rows are told apart; none where nobody has said so."""


class MetadataCalls:
    """Metadata calls as operations. Names are patterns: `%` and `*` stand for any letters, `_` for one."""

    def __init__(self, *, catalog: Callable[[], CatalogPort], store: Callable[[str], Store]) -> None:
        self._catalog, self._store = catalog, store

    def info(self, kind: int) -> Any:
        """What the server is; an empty text for what it does not know."""
        return ttypes.TGetInfoValue(stringValue=_INFO.get(kind, ""))

    def catalogs(self, session: Session) -> GatewayOperation:
        """There is only one, and it has no name."""
        return self._told(session, {"TABLE_CAT": _TEXT}, [])

    def table_types(self, session: Session) -> GatewayOperation:
        """Tables and views."""
        return self._told(session, {"TABLE_TYPE": _TEXT}, [("TABLE",), ("VIEW",)])

    def types(self, session: Session) -> GatewayOperation:
        """The types of columns."""
        return self._told(session, _TYPE_INFO, [_type_info(name) for name in _TYPES])

    def functions(self, session: Session) -> GatewayOperation:
        """Not told."""
        return self._told(session, _FUNCTIONS, [])

    def primary_keys(self, session: Session, schema: str | None, table: str | None) -> GatewayOperation:
        """The key columns of one table: those of a system table, or what `lakewarden.keys` names. Nothing enforces
        them but the statements that go by them."""

        def look(operation: GatewayOperation) -> list[tuple[Any, ...]]:
            keys = self._keys(session, operation, schema or session.database, table or "")
            return [(None, schema, table, key, position, None) for position, key in enumerate(keys, start=1)]

        return self._operation(session, _KEYS, look)

    def cross_references(self, session: Session) -> GatewayOperation:
        """Tables have none."""
        return self._told(session, _REFERENCES, [])

    def schemas(self, session: Session, schema: str | None) -> GatewayOperation:
        """Databases."""
        columns = {"TABLE_SCHEM": _TEXT, "TABLE_CATALOG": _TEXT}
        return self._operation(
            session,
            columns,
            lambda operation: [(name, "") for name in self._schemas(session, operation, schema)],
        )

    def tables(
        self, session: Session, schema: str | None, table: str | None, kinds: Sequence[str] | None
    ) -> GatewayOperation:
        """Tables and views."""
        wanted = {kind.upper() for kind in kinds or ("TABLE", "VIEW")}

        def look(operation: GatewayOperation) -> list[tuple[Any, ...]]:
            found = [
                (None, entry.schema, entry.name, "VIEW" if entry.view else "TABLE", "")
                for entry in self._tables(session, operation, schema, table)
            ]
            return [one for one in found if one[3] in wanted]

        return self._operation(session, _TABLES, look)

    def columns(
        self, session: Session, schema: str | None, table: str | None, column: str | None
    ) -> GatewayOperation:
        """Columns of tables and views."""
        matches = _pattern(column)

        def look(operation: GatewayOperation) -> list[tuple[Any, ...]]:
            return [
                _column_row(entry, position, one)
                for entry in self._tables(session, operation, schema, table)
                for position, one in enumerate(self._columns(session, operation, entry), start=1)
                if matches(one.name)
            ]

        return self._operation(session, _COLUMNS, look)

    def _schemas(self, session: Session, operation: GatewayOperation, schema: str | None) -> list[str]:
        if schema is not None and schema.lower() == _OURS:
            return [_OURS]
        return sorted(filter(_pattern(schema), {_OURS, *self._catalog().schemas(session, operation)}))

    def _tables(
        self, session: Session, operation: GatewayOperation, schema: str | None, table: str | None
    ) -> Iterable[ListedTable]:
        matches, temporary = _pattern(table), set()
        for name in self._schemas(session, operation, schema):
            found = _OURS_TABLES if name == _OURS else self._catalog().tables(session, operation, name)
            for entry in found:
                if not matches(entry.name) or entry.name in temporary:
                    continue
                if not entry.schema:  # every database shows them
                    temporary.add(entry.name)
                yield entry

    def _keys(self, session: Session, operation: GatewayOperation, schema: str, table: str) -> Sequence[str]:
        if schema.lower() != _OURS:
            return self._catalog().keys(session, operation, schema, table)
        return next((one.key for one in SYSTEM_TABLES if one.name == table.lower()), ())

    def _columns(
        self, session: Session, operation: GatewayOperation, entry: ListedTable
    ) -> Sequence[ResultColumn]:
        if isinstance(entry, _SystemEntry):
            return entry.columns
        return self._catalog().columns(session, operation, entry)

    def _told(
        self, session: Session, columns: dict[str, pa.DataType], rows: Sequence[tuple[Any, ...]]
    ) -> GatewayOperation:
        return self._operation(session, columns, lambda _: rows)

    def _operation(
        self,
        session: Session,
        columns: dict[str, pa.DataType],
        look: Callable[[GatewayOperation], Sequence[tuple[Any, ...]]],
    ) -> GatewayOperation:
        def work(operation: GatewayOperation) -> ResultReader:
            rows = look(operation)
            arrays = [
                pa.array([row[position] for row in rows], kind)
                for position, kind in enumerate(columns.values())
            ]
            return result_of(pa.table(arrays, names=list(columns)), self._store(session.caller.name))

        return GatewayOperation(id=uuid.uuid4().hex, text="metadata", lane=Lane.QUICK, work=work)


class _SystemEntry:
    """A system table."""

    schema, view = _OURS, False

    def __init__(self, name: str, columns: tuple[ResultColumn, ...]) -> None:
        self.name, self.columns = name, columns


_OURS_TABLES: Final = [_SystemEntry(str(one.name), columns_of(row_schema(one))) for one in SYSTEM_TABLES]


_WILDCARDS: Final = {"%": Wildcard.MANY, "*": Wildcard.MANY, "_": Wildcard.ONE}


def _pattern(text: str | None) -> Callable[[str], bool]:
    """Whether a name is meant. None and nothing mean everything."""
    if not text:
        return lambda _: True
    parts = re.findall(r"\\.|.", text, re.DOTALL)
    return fitting(_WILDCARDS.get(part, part[-1]) for part in parts)


def _column_row(entry: ListedTable, position: int, column: ResultColumn) -> tuple[Any, ...]:
    base = re.split(r"[(<\s]", column.type, maxsplit=1)[0]
    scale = re.search(r"decimal\((\d+),\s*(\d+)\)", column.type)
    size = int(scale[1]) if scale is not None else _PRECISIONS.get(base)
    digits = int(scale[2]) if scale is not None else 0 if base in _NUMBERS else None
    return (
        None, entry.schema, entry.name, column.name, _jdbc(column.type), column.type.upper(), size, None,
        digits, 10 if base in _NUMBERS else None, 1, column.comment, None, None, None, None, position, "YES",
        None, None, None, None, "NO",
    )  # fmt: skip


def _type_info(name: str) -> tuple[Any, ...]:
    number = name in _NUMBERS
    return (
        name.upper(), _jdbc(name), _PRECISIONS.get(name), None, None, None, 1, name == "string", 3,
        not number, False, False, None, 0, 38 if name == "decimal" else 0, None, None, 10 if number else None,
    )  # fmt: skip


def _jdbc(name: str) -> int:
    return JDBC_TYPES[hive_type(name)]
