"""HiveServer2's metadata calls, which PyHive knows and offers no method for."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyhive.exc import OperationalError
from pyhive.hive import _unwrap_column
from TCLIService import ttypes

__all__ = ["columns", "schemas", "tables"]

_ROWS: Final = 10_000


def schemas(connection: Any) -> list[str]:
    """The databases."""
    request = ttypes.TGetSchemasReq(sessionHandle=connection.sessionHandle)
    return [row["TABLE_SCHEM"] for row in _rows(connection, connection.client.GetSchemas(request))]


def tables(connection: Any, schema: str, name: str | None = None) -> list[Mapping[str, Any]]:
    """Tables and views of a database, or the one of that name; temporary views too."""
    request = ttypes.TGetTablesReq(
        sessionHandle=connection.sessionHandle, schemaName=_exactly(schema), tableName=name and _exactly(name)
    )
    return list(_rows(connection, connection.client.GetTables(request)))


def columns(connection: Any, schema: str, name: str) -> list[Mapping[str, Any]]:
    """The columns of a table, in order."""
    request = ttypes.TGetColumnsReq(
        sessionHandle=connection.sessionHandle, schemaName=_exactly(schema), tableName=_exactly(name)
    )
    return list(_rows(connection, connection.client.GetColumns(request)))


def _exactly(name: str) -> str:
    """A pattern that only this name matches."""
    return "".join(f"\\{letter}" if letter in "%_*\\" else letter for letter in name)


def _rows(connection: Any, begun: Any) -> Iterator[Mapping[str, Any]]:
    if begun.status.statusCode != ttypes.TStatusCode.SUCCESS_STATUS:
        raise OperationalError(begun)
    handle, client = begun.operationHandle, connection.client
    try:
        schema = client.GetResultSetMetadata(ttypes.TGetResultSetMetadataReq(handle)).schema
        names = [column.columnName for column in schema.columns]
        while True:
            request = ttypes.TFetchResultsReq(handle, ttypes.TFetchOrientation.FETCH_NEXT, _ROWS)
            page = client.FetchResults(request).results
            found = list(zip(*(_unwrap_column(column) for column in page.columns), strict=True))
            if not found:
                return
            yield from (dict(zip(names, row, strict=True)) for row in found)
    finally:
        client.CloseOperation(ttypes.TCloseOperationReq(handle))
