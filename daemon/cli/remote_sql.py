"""`lakewarden sql --url`: statements sent to a gateway, and what came of them."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.cli.output import Format, show
from lakewarden.daemon.client.address import Address
from lakewarden.daemon.client.connection import connect
from lakewarden.daemon.client.execution import StatementResult, execute
from lakewarden.daemon.client.script import split

__all__ = ["printed", "run_remotely"]


def run_remotely(address: Address, text: str, format: Format) -> None:
    """Run statements one after the other, each result printed before the next begins. The first that fails is the
    last."""
    statements = list(split(text))
    if not statements:
        raise UsageError("There is no statement.", hint="Try: SELECT * FROM lakewarden.tables")
    with connect(address) as connection:
        for statement in statements:
            printed(execute(connection, statement), format)


def printed(result: StatementResult, format: Format) -> None:
    """Print a result, if there is one."""
    if result.columns:
        items = [dict(zip(result.columns, map(_plain, row), strict=True)) for row in result.rows]
        show(items, columns=result.columns, format=format)


def _plain(value: Any) -> Any:
    """Times without a zone stay so; numbers with a scale, and bytes, are text."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, Decimal) else value
