"""The statements of a text, which semicolons end. Pure."""

from collections.abc import Iterator

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from lakewarden.catalog.errors import UsageError

__all__ = ["is_whole", "split"]


def split(text: str) -> Iterator[str]:
    """One after the other; nothing but blanks and comments is none. Raises `UsageError` for an unclosed quote."""
    start, said = 0, False
    for token in _tokens(text):
        if token.token_type is not TokenType.SEMICOLON:
            said = True
            continue
        if said:
            yield text[start : token.start].strip()
        start, said = token.start + 1, False
    if said:
        yield text[start:].strip()


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
