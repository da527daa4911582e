"""HiveServer2's calls, each answered for one authenticated user: what is asked for in, sessions and operations out."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from TCLIService import TCLIService, ttypes
from thrift.protocol.TProtocol import TProtocolBase

from lakewarden.catalog.errors import (
    LakewardenError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
    UsageError,
)
from lakewarden.catalog.isolation import Unforeseen, isolated
from lakewarden.catalog.policy.access import Caller
from lakewarden.daemon.gateway.metadata import MetadataCalls
from lakewarden.daemon.gateway.operations import GatewayOperation, Pools, State
from lakewarden.daemon.gateway.results import From, ResultReader
from lakewarden.daemon.gateway.sessions import Handle, Limits, NoSessionError, Session, Sessions, plain_keys
from lakewarden.daemon.gateway.statements import Statements
from lakewarden.daemon.gateway.wire_columns import row_set
from lakewarden.daemon.gateway.wire_progress import progress_of
from lakewarden.daemon.gateway.wire_types import ResultColumn, table_schema
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["Gateway", "answer"]

_NEWEST: Final = ttypes.TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V10
_OLDEST: Final = ttypes.TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V6
"""From here on results come by columns."""
_DATABASE: Final = "use:database"
_POLL_SECONDS: Final = 5.0
"""How long a question for the state of an operation waits for its end: some clients ask without a pause."""
_MOST_ROWS: Final = 100_000
_LOGS: Final = 1
_SUCCESS: Final = ttypes.TStatus(statusCode=ttypes.TStatusCode.SUCCESS_STATUS)
_STATES: Final = {
    State.PENDING: ttypes.TOperationState.PENDING_STATE,
    State.RUNNING: ttypes.TOperationState.RUNNING_STATE,
    State.FINISHED: ttypes.TOperationState.FINISHED_STATE,
    State.FAILED: ttypes.TOperationState.ERROR_STATE,
    State.CANCELLED: ttypes.TOperationState.CANCELED_STATE,
    State.TIMED_OUT: ttypes.TOperationState.TIMEDOUT_STATE,
}
_SQL_STATES: Final[tuple[tuple[type[LakewardenError], str], ...]] = (
    (UsageError, "42000"),
    (NotAllowedError, "42501"),
    (NoSessionError, "08003"),
    (NotFoundError, "HY010"),
    (UnavailableError, "08S01"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Gateway:
    """What all calls share."""

    sessions: Sessions
    statements: Statements
    metadata: MetadataCalls
    pools: Pools
    limits: Limits
    caller: Callable[[str], Caller]
    """Somebody by the name that was authenticated, as the installation knows them at this moment."""


def answer(
    gateway: Gateway,
    user: str,
    reading: TProtocolBase,
    writing: TProtocolBase,
    *,
    has_left: Callable[[], bool] = lambda: False,
) -> None:
    """Read one call and write its answer; `has_left` says whether nobody waits for that any more. Raises what the
    protocol raises for bytes that are no call."""
    TCLIService.Processor(_Calls(gateway, user, has_left)).process(reading, writing)


class _Calls(TCLIService.Iface):  # type: ignore[misc]  # generated code has no types
    def __init__(self, gateway: Gateway, user: str, has_left: Callable[[], bool]) -> None:
        self._gateway, self._user, self._has_left = gateway, user, has_left
        self._sessions = gateway.sessions

    def OpenSession(self, req: Any) -> Any:
        def opened() -> dict[str, Any]:
            if req.client_protocol < _OLDEST:
                raise UsageError(
                    "The client is too old.", hint="It has to know results by columns (Hive 0.13)."
                )
            given = dict(req.configuration or {})
            database = given.pop(_DATABASE, None) or "default"
            session = self._sessions.open(self._gateway.caller(self._user), plain_keys(given), database)
            return {
                "serverProtocolVersion": min(req.client_protocol, _NEWEST),
                "sessionHandle": ttypes.TSessionHandle(sessionId=_identifier(session.handle)),
                "configuration": {},
            }

        return _answered(ttypes.TOpenSessionResp, opened)

    def CloseSession(self, req: Any) -> Any:
        return _done(
            ttypes.TCloseSessionResp,
            lambda: self._sessions.close(_handle(req.sessionHandle, "sessionId"), self._user),
        )

    def GetInfo(self, req: Any) -> Any:
        def known() -> dict[str, Any]:
            self._session(req)
            return {"infoValue": self._gateway.metadata.info(req.infoType)}

        return _answered(ttypes.TGetInfoResp, known)

    def ExecuteStatement(self, req: Any) -> Any:
        def begun() -> dict[str, Any]:
            session = self._session(req)
            if not (req.statement or "").strip():
                raise UsageError("There is no statement.", hint="Try: SELECT * FROM lakewarden.tables")
            session.caller = self._gateway.caller(self._user)  # roles may have changed since it was opened
            operation = self._gateway.statements.operation(
                session, req.statement, wanted=lambda: not self._has_left()
            )
            return self._begin(
                session, operation, req.runAsync, ttypes.TOperationType.EXECUTE_STATEMENT, req.queryTimeout
            )

        return _answered(ttypes.TExecuteStatementResp, begun)

    def GetOperationStatus(self, req: Any) -> Any:
        def looked() -> dict[str, Any]:
            operation = self._operation(req)
            operation.wait(_POLL_SECONDS)
            error = operation.error
            left = operation.state.over and operation.wait_until_left(_POLL_SECONDS)
            return {
                "operationState": _STATES[operation.state],
                "sqlState": None if error is None else _sql_state(error),
                "errorCode": None if error is None else int(error.exit_code),
                "errorMessage": operation.outcome if error is None else error.in_full,
                "operationCompleted": int(time.time() * 1000) if left else None,
                "hasResultSet": operation.result is not None and bool(operation.result.columns),
                "progressUpdateResponse": progress_of(operation) if req.getProgressUpdate else None,
            }

        return _answered(ttypes.TGetOperationStatusResp, looked)

    def CancelOperation(self, req: Any) -> Any:
        return _done(ttypes.TCancelOperationResp, lambda: self._operation(req).cancel())

    def CloseOperation(self, req: Any) -> Any:
        return _done(
            ttypes.TCloseOperationResp,
            lambda: self._sessions.end(_handle(req.operationHandle, "operationId"), self._user),
        )

    def GetResultSetMetadata(self, req: Any) -> Any:
        return _answered(
            ttypes.TGetResultSetMetadataResp,
            lambda: {"schema": table_schema(_shown(self._result(self._operation(req))))},
        )

    def FetchResults(self, req: Any) -> Any:
        def fetched() -> dict[str, Any]:
            operation, most = self._operation(req), max(min(req.maxRows or 0, _MOST_ROWS), 1)
            if req.fetchType == _LOGS:
                lines = pa.record_batch({"Log": pa.array(operation.lines(most), pa.string())})
                return {"hasMoreRows": False, "results": row_set(lines, 0)}
            result = self._result(operation)
            start, page = result.page(_BEGINNINGS.get(req.orientation, From.NEXT), most)
            if not result.columns:
                page = pa.record_batch({"ResultReader": pa.array([], pa.string())})
            return {
                "hasMoreRows": start + page.num_rows < result.rows,
                "results": row_set(page, start),
            }

        return _answered(ttypes.TFetchResultsResp, fetched)

    def GetLog(self, req: Any) -> Any:
        return _answered(ttypes.TGetLogResp, lambda: {"log": "\n".join(self._operation(req).lines())})

    def GetTypeInfo(self, req: Any) -> Any:
        return self._look(
            req, ttypes.TGetTypeInfoResp, ttypes.TOperationType.GET_TYPE_INFO, self._gateway.metadata.types
        )

    def GetCatalogs(self, req: Any) -> Any:
        return self._look(
            req, ttypes.TGetCatalogsResp, ttypes.TOperationType.GET_CATALOGS, self._gateway.metadata.catalogs
        )

    def GetSchemas(self, req: Any) -> Any:
        return self._look(
            req, ttypes.TGetSchemasResp, ttypes.TOperationType.GET_SCHEMAS,
            lambda session: self._gateway.metadata.schemas(session, req.schemaName),
        )  # fmt: skip

    def GetTables(self, req: Any) -> Any:
        return self._look(
            req, ttypes.TGetTablesResp, ttypes.TOperationType.GET_TABLES,
            lambda session: self._gateway.metadata.tables(session, req.schemaName, req.tableName,
                req.tableTypes),
        )  # fmt: skip

    def GetTableTypes(self, req: Any) -> Any:
        return self._look(
            req, ttypes.TGetTableTypesResp, ttypes.TOperationType.GET_TABLE_TYPES,
            self._gateway.metadata.table_types,
        )  # fmt: skip

    def GetColumns(self, req: Any) -> Any:
        return self._look(
            req, ttypes.TGetColumnsResp, ttypes.TOperationType.GET_COLUMNS,
            lambda session: self._gateway.metadata.columns(
                session, req.schemaName, req.tableName, req.columnName
            ),
        )  # fmt: skip

    def GetFunctions(self, req: Any) -> Any:
        return self._look(
            req,
            ttypes.TGetFunctionsResp,
            ttypes.TOperationType.GET_FUNCTIONS,
            self._gateway.metadata.functions,
        )

    def GetPrimaryKeys(self, req: Any) -> Any:
        return self._look(
            req, ttypes.TGetPrimaryKeysResp, ttypes.TOperationType.UNKNOWN,
            lambda session: self._gateway.metadata.primary_keys(session, req.schemaName, req.tableName),
        )  # fmt: skip

    def GetCrossReference(self, req: Any) -> Any:
        return self._look(
            req, ttypes.TGetCrossReferenceResp, ttypes.TOperationType.UNKNOWN,
            self._gateway.metadata.cross_references,
        )  # fmt: skip

    def GetDelegationToken(self, req: Any) -> Any:
        return _done(ttypes.TGetDelegationTokenResp, _no_delegation)

    def CancelDelegationToken(self, req: Any) -> Any:
        return _done(ttypes.TCancelDelegationTokenResp, _no_delegation)

    def RenewDelegationToken(self, req: Any) -> Any:
        return _done(ttypes.TRenewDelegationTokenResp, _no_delegation)

    def _look(self, req: Any, kind: Any, type_: int, look: Callable[[Session], GatewayOperation]) -> Any:
        def begun() -> dict[str, Any]:
            session = self._session(req)
            return self._begin(session, look(session), False, type_, None)

        return _answered(kind, begun)

    def _begin(
        self, session: Session, operation: GatewayOperation, later: bool, type_: int, timeout: int | None
    ) -> dict[str, Any]:
        """Start it, and wait for it unless its client does."""
        longest = [float(seconds) for seconds in (timeout, self._gateway.limits.statement) if seconds]
        if longest:
            operation.deadline = operation.began + min(longest)
        handle = self._sessions.begin(session, operation)
        try:
            self._gateway.pools.submit(operation, self._user)
            if not later:
                operation.wait()
                self._result(operation)
        except LakewardenError:
            self._sessions.end(handle, self._user)
            raise
        has_rows = later or bool(operation.result and operation.result.columns)
        return {
            "operationHandle": ttypes.TOperationHandle(
                operationId=_identifier(handle), operationType=type_, hasResultSet=has_rows
            )
        }

    def _session(self, req: Any) -> Session:
        return self._sessions.find(_handle(req.sessionHandle, "sessionId"), self._user)

    def _operation(self, req: Any) -> GatewayOperation:
        return self._sessions.operation(_handle(req.operationHandle, "operationId"), self._user)

    @staticmethod
    def _result(operation: GatewayOperation) -> ResultReader:
        """What a finished operation came to. Raises what went wrong with it."""
        operation.wait()
        if operation.error is not None:
            raise operation.error
        result = operation.result
        if result is None:
            said = {State.TIMED_OUT: "took longer than it may", State.CANCELLED: "was cancelled"}
            raise UnavailableError(f"The statement {said.get(operation.state, 'was closed')}.")
        return result


_BEGINNINGS: Final[Mapping[int, From]] = {
    ttypes.TFetchOrientation.FETCH_NEXT: From.NEXT,
    ttypes.TFetchOrientation.FETCH_PRIOR: From.PRIOR,
    ttypes.TFetchOrientation.FETCH_FIRST: From.FIRST,
}


def _answered(kind: Any, act: Callable[[], dict[str, Any]]) -> Any:
    """An answer of that kind, by what the act returns or raises."""
    try:
        came = isolated(act)
    except LakewardenError as error:
        return kind(status=_failed(error))
    if isinstance(came, Unforeseen):
        get_log("gateway").error("unforeseen", problem=came.problem, trace=came.trace)
        broken = UnavailableError(f"The gateway failed ({came.problem}).", hint="Its log says more.")
        return kind(status=_failed(broken))
    return kind(status=_SUCCESS, **came)


def _failed(error: LakewardenError) -> Any:
    return ttypes.TStatus(
        statusCode=ttypes.TStatusCode.ERROR_STATUS,
        sqlState=_sql_state(error),
        errorCode=int(error.exit_code),
        errorMessage=error.in_full,
    )


def _done(kind: Any, act: Callable[[], None]) -> Any:
    def acted() -> dict[str, Any]:
        act()
        return {}

    return _answered(kind, acted)


def _no_delegation() -> None:
    raise UsageError("There are no delegation tokens.", hint="`lakewarden tokens create` makes tokens.")


def _sql_state(error: LakewardenError) -> str:
    return next((state for kind, state in _SQL_STATES if isinstance(error, kind)), "HY000")


def _shown(result: ResultReader) -> tuple[ResultColumn, ...]:
    """Clients want a column, also where there is none."""
    return result.columns or (ResultColumn(name="ResultReader", type="string"),)


def _identifier(handle: Handle) -> Any:
    return ttypes.THandleIdentifier(guid=handle.id, secret=handle.secret)


def _handle(given: Any, part: str) -> Handle:
    identifier = getattr(given, part, None)
    if (
        identifier is None
        or not isinstance(identifier.guid, bytes)
        or not isinstance(identifier.secret, bytes)
    ):
        raise UsageError(
            "The call names no session or statement.", hint="The client speaks another protocol."
        )
    return Handle(identifier.guid, identifier.secret)
