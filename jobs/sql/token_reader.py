"""The words of one governed statement, read one after the other. Pure."""

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from lakewarden.catalog.bounds import LONGEST_SECONDS, MOST_DIGITS, as_whole
from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.units import DAY, HOUR

__all__ = ["StatementWords", "tokens_of"]

_PATH_FORMATS: Final = ("parquet", "delta")
_UNIT_SECONDS: Final = {"DAY": DAY, "DAYS": DAY, "HOUR": HOUR, "HOURS": HOUR}
_AMOUNT: Final = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


class _SparkTokens(Spark):
    """Spark's SQL in which SHOW, VACUUM and EXPLAIN do not swallow what follows them as one word."""

    class Tokenizer(Spark.Tokenizer):
        """Without commands."""

        COMMANDS: ClassVar[set[TokenType]] = set()


_SPARK: Final = _SparkTokens()


def tokens_of(text: str) -> Sequence[Token]:
    """The words of a statement, without the semicolons that end it. Raises `UsageError` for an unclosed quote."""
    try:
        return [token for token in _SPARK.tokenize(text) if token.token_type is not TokenType.SEMICOLON]
    except SqlglotError as error:
        raise UsageError("The statement cannot be read.", hint="Look for an unclosed quote.") from error


class StatementWords:
    """What is left of a statement. Every method raises `UsageError`, with `syntax` as its hint, for what does
    not belong there."""

    def __init__(self, tokens: Sequence[Token], *, syntax: str) -> None:
        self._tokens, self._at, self._syntax = tokens, 0, syntax

    @property
    def more(self) -> bool:
        """Whether anything is left."""
        return self._at < len(self._tokens)

    def next(self) -> str:
        """The next word as it is written, without its quotes."""
        return self._token().text

    def takes(self, *wanted: str) -> bool:
        """Whether these words (in capitals) come next; if so, they are behind us now."""
        coming = self._tokens[self._at : self._at + len(wanted)]
        found = [token.text.upper() for token in coming] == list(wanted)
        self._at += len(wanted) if found else 0
        return found

    def expect(self, *wanted: str) -> None:
        """Read these words."""
        if not self.takes(*wanted):
            raise self.unexpected()

    def table(self) -> str:
        """A table: `db.t` (parts in backticks or not), a path or an id; quoted where blanks or commas are in it."""
        first = self._token()
        if first.token_type is TokenType.STRING:
            return first.text
        parts, end = [first.text], first.end
        while self.more and self._goes_on(parts[-1], end):
            token = self._token()
            parts.append(token.text)
            end = token.end
        prefixed = len(parts) > 2 and parts[0].lower() in _PATH_FORMATS and parts[1] == "."
        return "".join(parts[2:] if prefixed else parts)

    def table_and_spelling(self) -> tuple[str, str]:
        """A table, and its name as Spark reads it: with its quotes."""
        first = self._at
        name = self.table()
        return name, "".join(_spelled(token) for token in self._tokens[first : self._at])

    def tables(self) -> tuple[str, ...]:
        """One table or more, with commas between them."""
        found = [self.table()]
        while self.takes(","):
            found.append(self.table())
        return tuple(found)

    def number(self) -> int:
        """A whole number from 0 on."""
        number = as_whole(self.next(), digits=MOST_DIGITS)
        if number is None:
            raise self.wrong()
        return number

    def versions(self) -> tuple[int, ...]:
        """VERSION n, or VERSIONS n, m, ..."""
        if not self.takes("VERSIONS"):
            self.expect("VERSION")
        found = [self.number()]
        while self.takes(","):
            found.append(self.number())
        return tuple(found)

    def retention(self, *, least: int = 1) -> int:
        """`30 DAYS` or `36 HOURS` after RETAIN, in seconds."""
        number, unit = self.next(), self.next().upper()
        size = _UNIT_SECONDS.get(unit)
        seconds = round(float(number) * size) if size and _AMOUNT.fullmatch(number) else -1
        if not least <= seconds <= LONGEST_SECONDS:
            raise UsageError(f"RETAIN {number} {unit} makes no sense.", hint="Write RETAIN 30 DAYS.")
        return seconds

    def end(self) -> None:
        """Nothing comes any more."""
        if self.more:
            raise self.unexpected()

    def text(self) -> str:
        """Something in quotes."""
        token = self._token()
        if token.token_type is not TokenType.STRING:
            raise self.wrong()
        return token.text

    def wrong(self) -> UsageError:
        """What is said of the word that was read last."""
        return UsageError(f"'{self._tokens[self._at - 1].text}' is not expected here.", hint=self._syntax)

    def unexpected(self) -> UsageError:
        """What is said of the word that comes next, or of none coming."""
        self._token()
        return self.wrong()

    def _token(self) -> Token:
        if not self.more:
            raise UsageError("The statement ends too early.", hint=self._syntax)
        self._at += 1
        return self._tokens[self._at - 1]

    def _goes_on(self, last: str, end: int) -> bool:
        """Whether the next token belongs to the name that ended at `end`: they touch, or a dot is between them."""
        token = self._tokens[self._at]
        touches = token.start == end + 1 and token.token_type not in (TokenType.COMMA, TokenType.L_PAREN)
        return touches or "." in (token.text, last)


def _spelled(token: Token) -> str:
    if token.token_type is TokenType.IDENTIFIER:
        return "`" + token.text.replace("`", "``") + "`"
    if token.token_type is TokenType.STRING:
        return "'" + token.text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return token.text
