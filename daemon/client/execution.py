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

__all__ = ["Cancelled", "StatementResult", "execute"]

_UNDER_WAY: Final = (
    TOperationState.INITIALIZED_STATE,
    TOperationState.PENDING_STATE,
    TOperationState.RUNNING_STATE,
)
_PAUSE_SECONDS: Final = 0.01
_STOPPED: Final = (TOperationState.CANCELED_STATE, TOperationState.TIMEDOUT_STATE)
_LOOKS: Final = 12
"""So often the gateway is asked what became of a cancelled statement; each answer takes it some seconds at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatementResult:
    """What a statement came to."""

    columns: Sequence[str]
    """Empty for a statement that has no result."""
    rows: Sequence[Sequence[Any]]


class Cancelled(KeyboardInterrupt):
    """Somebody interrupted a statement, and the gateway was told. Its text says what became of the statement there."""


def execute(connection: Any, statement: str) -> StatementResult:
    """Run one on PyHive's connection. Raises what it fails with. On KeyboardInterrupt the gateway
    stops it, and what comes out of that is raised as `Cancelled`."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, async_=True)
            try:
                while (told := cursor.poll()).operationState in _UNDER_WAY:
                    time.sleep(_PAUSE_SECONDS)  # the gateway has waited, too, before it answered
            except KeyboardInterrupt as interrupt:
                cursor.cancel()
                raise Cancelled(_outcome(cursor)) from interrupt
            if told.operationState != TOperationState.FINISHED_STATE:
                raise failure(told.errorCode, told.errorMessage)
            if not told.hasResultSet:
                return StatementResult(columns=(), rows=())
            return StatementResult(
                columns=[column[0] for column in cursor.description], rows=cursor.fetchall()
            )
    except OperationalError as error:
        raise complaint(error) from error
    except (OSError, EOFError, TTransportException) as error:
        raise UnavailableError(
            f"The gateway does not answer ({error or type(error).__name__}).",
            hint="Is it running? What a session had set, and its temporary views, "
            "are gone if it was restarted.",
        ) from error


def _outcome(cursor: Any) -> str:
    """The end of a cancelled statement: the cancel may have come too late, or much may have to be taken back."""
    for _ in range(_LOOKS):
        told = cursor.poll()
        if told.operationState == TOperationState.FINISHED_STATE:
            return "Too late to cancel: the statement is done."
        if told.operationState not in _STOPPED:
            return str(told.errorMessage)
        if told.operationCompleted is not None:
            return f"Cancelled. {told.errorMessage or ''}".rstrip()
    return "Cancelled, but it has not ended yet: look what became of it before you run it again."
