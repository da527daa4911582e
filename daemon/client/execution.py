"""One statement on a connection: sent, waited for, and cancelled there if the one who waits has had enough."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyhive.exc import OperationalError
from TCLIService.ttypes import TOperationState
from thrift.transport.TTransport import TTransportException

from lakewarden.catalog.errors import UnavailableError
from lakewarden.daemon.client.connection import complaint, failure

__all__ = ["Result", "execute"]

_UNDER_WAY: Final = (
    TOperationState.INITIALIZED_STATE,
    TOperationState.PENDING_STATE,
    TOperationState.RUNNING_STATE,
)
_PAUSE_SECONDS: Final = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """`columns` are empty for a statement that has no result."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def execute(connection: Any, statement: str) -> Result:
    """Run one on PyHive's connection. Raises what it fails with. On KeyboardInterrupt the gateway stops it first."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, async_=True)
            try:
                while (told := cursor.poll()).operationState in _UNDER_WAY:
                    time.sleep(_PAUSE_SECONDS)  # the gateway has waited, too, before it answered
            except KeyboardInterrupt:
                cursor.cancel()
                raise
            if told.operationState != TOperationState.FINISHED_STATE:
                raise failure(told.errorCode, told.errorMessage)
            if not told.hasResultSet:
                return Result(columns=(), rows=())
            return Result(columns=[column[0] for column in cursor.description], rows=cursor.fetchall())
    except OperationalError as error:
        raise complaint(error) from error
    except (OSError, EOFError, TTransportException) as error:
        raise UnavailableError(
            f"The gateway does not answer ({error or type(error).__name__}).",
            hint="Is it running? What a session had set, and its temporary views, are gone if it was restarted.",
        ) from error
