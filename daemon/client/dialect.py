"""SQLAlchemy's dialect `lakewarden+pyhive://user:token@host:port/database`, with `?tls=yes&authority=FILE`.

Spark's SQL is close to the standard: what is done here is types, USING delta, reflection by metadata calls, and values
written into statements. Tables have no keys and no transactions; constraints are left out of CREATE TABLE.
"""

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from datetime import date
from typing import Any, Final

from pyhive import hive
from sqlalchemy import exc, types
from sqlalchemy.engine import URL, default
from sqlalchemy.sql import compiler

from lakewarden.daemon.client import catalog_calls
from lakewarden.daemon.client.address import Address
from lakewarden.daemon.client.connection import connect
from lakewarden.daemon.client.literals import literal

__all__ = ["LakewardenDialect"]

_PORT: Final = 10_001
_ROWS_PER_INSERT: Final = 1_000
_VALUES: Final = " VALUES ("
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_YES: Final = frozenset({"yes", "true", "1"})


class _Date(types.Date):
    """Comes as text."""

    def result_processor(self, dialect: Any, coltype: object) -> Callable[[Any], date | None]:
        return lambda value: date.fromisoformat(value) if isinstance(value, str) else value


class _Bytes(types.LargeBinary):
    """Bytes are bytes."""

    def bind_processor(self, dialect: Any) -> None:
        return None

    def result_processor(self, dialect: Any, coltype: object) -> None:
        return None


_TYPES: Final[Mapping[str, type[types.TypeEngine[Any]]]] = {
    "boolean": types.Boolean,
    "tinyint": types.SmallInteger,
    "smallint": types.SmallInteger,
    "int": types.Integer,
    "bigint": types.BigInteger,
    "float": types.Float,
    "double": types.Double,
    "date": _Date,
    "timestamp": types.DateTime,
    "timestamp_ntz": types.DateTime,
    "binary": _Bytes,
}
"""Everything else is text, as the gateway sends it."""

_COLUMNS: Final[MutableMapping[type[types.TypeEngine[Any]], type[types.TypeEngine[Any]]]] = {
    types.Date: _Date,
    types.LargeBinary: _Bytes,
}


class _Preparer(compiler.IdentifierPreparer):
    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`")

    def _requires_quotes(self, value: str) -> bool:
        return True


class _Types(compiler.GenericTypeCompiler):
    def visit_INTEGER(self, type_: Any, **kw: Any) -> str:
        return "INT"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        precision = 38 if type_.precision is None else type_.precision
        return f"DECIMAL({precision}, {10 if type_.scale is None else type_.scale})"

    visit_DECIMAL = visit_NUMERIC

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        return "FLOAT" if type_.precision is not None and type_.precision <= 24 else "DOUBLE"

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:
        return "STRING"

    visit_CHAR = visit_NCHAR = visit_NVARCHAR = visit_TEXT = visit_CLOB = visit_TIME = visit_UUID = (
        visit_VARCHAR
    )

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP"

    visit_TIMESTAMP = visit_DATETIME

    def visit_BLOB(self, type_: Any, **kw: Any) -> str:
        return "BINARY"

    visit_BINARY = visit_VARBINARY = visit_BLOB


class _Ddl(compiler.DDLCompiler):
    def create_table_constraints(
        self, table: Any, _include_foreign_key_constraints: Any = None, **kw: Any
    ) -> str:
        return ""

    def post_create_table(self, table: Any) -> str:
        return " USING delta"


class LakewardenDialect(default.DefaultDialect):
    """See the module."""

    name = "lakewarden"
    driver = "pyhive"
    preparer: type[compiler.IdentifierPreparer] = _Preparer
    type_compiler_cls = _Types
    ddl_compiler = _Ddl
    default_paramstyle = "pyformat"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_multivalues_insert = True
    supports_default_values = False
    supports_empty_insert = False
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    supports_sequences = False
    postfetch_lastrowid = False
    colspecs = _COLUMNS

    @classmethod
    def import_dbapi(cls) -> Any:
        return hive

    def create_connect_args(self, url: URL) -> Any:
        said = {key: value if isinstance(value, str) else value[-1] for key, value in url.query.items()}
        self.default_schema_name = url.database or "default"
        address = Address(
            host=url.host or "127.0.0.1",
            port=url.port or _PORT,
            user=url.username,
            token=url.password,
            database=self.default_schema_name,
            tls=said.pop("tls", "no").lower() in _YES,
            authority=said.pop("authority", None),
            settings=said,
        )
        return [address], {}

    def connect(self, *arguments: Any, **_: Any) -> Any:
        return connect(*arguments)

    def do_commit(self, dbapi_connection: Any) -> None:
        """Each statement is its own transaction."""

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Nothing is open that could be rolled back."""

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        compiled = context is not None and context.compiled is not None
        cursor.execute(_filled(statement, parameters) if parameters or compiled else statement)

    def do_executemany(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Rows of an INSERT in a few statements: each one is a commit."""
        head, values, row = statement.partition(_VALUES)
        if not (head.startswith("INSERT INTO ") and row.endswith(")")):
            for one in parameters:
                cursor.execute(_filled(statement, one))
            return
        head, row = f"{head}{values[:-1]}", f"({row}"
        for batch in _batches(parameters):
            cursor.execute((head % ()) + ", ".join(_filled(row, one) for one in batch))

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        return catalog_calls.schemas(_driver(connection))

    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, schema, "TABLE")

    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._names(connection, schema, "VIEW")

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        where = schema or self.default_schema_name or "default"
        return bool(catalog_calls.tables(_driver(connection), where, table_name))

    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        where = schema or self.default_schema_name or "default"
        found = catalog_calls.columns(_driver(connection), where, table_name)
        if not found:
            raise exc.NoSuchTableError(table_name)
        return [
            {
                "name": row["COLUMN_NAME"],
                "type": _type(row["TYPE_NAME"].lower()),
                "nullable": True,
                "default": None,
                "comment": row["REMARKS"] or None,
            }
            for row in found
        ]

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, *_: Any, **kw: Any) -> list[Any]:
        return []

    def get_indexes(self, *_: Any, **kw: Any) -> list[Any]:
        return []

    def get_unique_constraints(self, *_: Any, **kw: Any) -> list[Any]:
        return []

    def get_check_constraints(self, *_: Any, **kw: Any) -> list[Any]:
        return []

    def _get_default_schema_name(self, connection: Any) -> str:
        return self.default_schema_name or "default"

    def _names(self, connection: Any, schema: str | None, kind: str) -> list[str]:
        found = catalog_calls.tables(_driver(connection), schema or self.default_schema_name or "default")
        return [row["TABLE_NAME"] for row in found if row["TABLE_TYPE"] == kind and row["TABLE_SCHEM"]]


def _driver(connection: Any) -> Any:
    """PyHive's connection below SQLAlchemy's."""
    return connection.connection.dbapi_connection


def _filled(statement: str, parameters: Any) -> str:
    return statement % {name: literal(value) for name, value in dict(parameters or {}).items()}


def _batches(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (rows[start : start + _ROWS_PER_INSERT] for start in range(0, len(rows), _ROWS_PER_INSERT))


def _type(name: str) -> types.TypeEngine[Any]:
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return types.Numeric(int(decimal[1]), int(decimal[2]))
    return _TYPES.get(name, types.String)()
