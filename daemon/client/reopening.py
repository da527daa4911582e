"""Statements on a connection whose session the gateway may have closed: a new one is opened then, and that is said."""

from collections.abc import Callable
from typing import Any

from lakewarden.daemon.client.connection import SessionClosedError
from lakewarden.daemon.client.execution import StatementResult, execute

__all__ = ["Reopening"]


class Reopening:
    """A connection that is opened by `connect`, and anew when its session is gone."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect, self._connection = connect, connect()

    def execute(self, statement: str) -> StatementResult:
        """Run one. Raises what it fails with: `SessionClosedError` if nothing was run, because what the session had set
        might have been needed for it."""
        try:
            return execute(self._connection, statement)
        except SessionClosedError as error:
            self._connection = self._connect()
            raise SessionClosedError(
                "The gateway had closed the session, which nobody had used for long; a new one is open.",
                hint="Settings, USE and temporary views of the old one are gone: make them again, "
                "then repeat the statement, which was not run.",
            ) from error

    def look(self, statement: str) -> StatementResult:
        """Run one that nobody asked for: where the session is gone, that is left for `execute` to say."""
        return execute(self._connection, statement)

    def close(self) -> None:
        """End the session."""
        self._connection.close()
