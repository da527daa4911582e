"""`lakewarden sql --url`: statements sent to a gateway, and what came of them."""

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.cli.output import Format, show
from lakewarden.daemon.client.address import Address
from lakewarden.daemon.client.connection import connect
from lakewarden.daemon.client.execution import Result, execute

__all__ = ["is_whole", "printed", "run_remotely", "split"]


def run_remotely(address: Address, text: str, format: Format) -> None:
    """Run statements one after the other, each result printed before the next begins. The first that fails is the
    last."""
    statements = list(split(text))
    if not statements:
        raise UsageError("There is no statement.", hint="Try: SELECT * FROM lakewarden.tables")
    with connect(address) as connection:
        for statement in statements:
            printed(execute(connection, statement), format)


def printed(result: Result, format: Format) -> None:
    """Print a result, if there is one."""
    if result.columns:
        items = [dict(zip(result.columns, map(_plain, row), strict=True)) for row in result.rows]
        show(items, columns=result.columns, format=format)


def split(text: str) -> Iterator[str]:
    """The statements of a text, which semicolons end. Raises `UsageError` for an unclosed quote."""
    start = 0
    ends = [one for one in _tokens(text) if one.token_type is TokenType.SEMICOLON]
    for end in (*(one.start for one in ends), len(text)):
        statement = text[start:end].strip()
        start = end + 1
        if statement:
            yield statement


def is_whole(text: str) -> bool:
    """Whether a text ends with the semicolon that ends its last statement."""
    try:
        tokens = _tokens(text)
    except UsageError:
        return False
    return bool(tokens) and tokens[-1].token_type is TokenType.SEMICOLON


def _tokens(text: str) -> list[Token]:
    try:
        return Spark().tokenize(text)
    except SqlglotError as error:
        raise UsageError("The statements cannot be read.", hint="Look for an unclosed quote.") from error


def _plain(value: Any) -> Any:
    """Times without a zone stay so; numbers with a scale, and bytes, are text."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, Decimal) else value
