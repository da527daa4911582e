"""`lakewarden sql --url`: statements sent to a gateway, and what came of them."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyhive.exc import OperationalError
from sqlglot import TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.cli.output import Format, show
from lakewarden.daemon.client.address import Address
from lakewarden.daemon.client.connection import complaint, connect

__all__ = ["run_remotely", "split"]


def run_remotely(address: Address, text: str, format: Format) -> None:
    """Run statements one after the other, each result printed before the next begins. The first that fails is the
    last."""
    statements = list(split(text))
    if not statements:
        raise UsageError("There is no statement.", hint="Try: SELECT * FROM lakewarden.tables")
    with connect(address) as connection, connection.cursor() as cursor:
        for statement in statements:
            try:
                cursor.execute(statement)
                columns = [column[0] for column in cursor.description or ()]
                rows = cursor.fetchall() if columns else []
            except OperationalError as error:
                raise complaint(error) from error
            if columns:
                items = [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]
                show(items, columns=columns, format=format)


def split(text: str) -> Iterator[str]:
    """The statements of a text, which semicolons end. Raises `UsageError` for an unclosed quote."""
    start = 0
    try:
        ends = [one for one in Spark().tokenize(text) if one.token_type is TokenType.SEMICOLON]
    except SqlglotError as error:
        raise UsageError("The statements cannot be read.", hint="Look for an unclosed quote.") from error
    for end in (*(one.start for one in ends), len(text)):
        statement = text[start:end].strip()
        start = end + 1
        if statement:
            yield statement


def _plain(value: Any) -> Any:
    """Times without a zone stay so; numbers with a scale, and bytes, are text."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, Decimal) else value
