"""`t AT VERSION n`, `t AT TIMESTAMP '...'`, `t AT BRANCH '...'` and `t AT TAG '...'`: said in Spark's words, VERSION AS
OF and TIMESTAMP AS OF. Pure.

Two words of the user's own text are replaced, and nothing else: strings, comments and quoted names stay as they are.
Only MERGE, whose USING takes no time in Spark, gets a query instead of its table.
"""

import re
from collections.abc import Sequence
from typing import Final

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.dialects import PARSERS
from lakewarden.jobs.sql.compile.places import told_with_places, wrong_at
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["in_sparks_words"]

_LIKELY: Final = re.compile(r"\bAT\b", re.IGNORECASE)
_REFERENCES: Final = frozenset({"BRANCH", "TAG"})
"""What Spark knows as versions with a name."""
_POINTS: Final = frozenset({"VERSION", "TIMESTAMP", *_REFERENCES})
_LITERALS: Final = frozenset({TokenType.NUMBER, TokenType.STRING})
_BEFORE_TABLES: Final = frozenset({"FROM", "JOIN", "USING", ",", "(", "TABLE"})
_WRITTEN: Final = frozenset({"INTO", "UPDATE", "OVERWRITE"})
_EXAMPLE: Final = (
    "Write FROM t AT VERSION 3, or FROM t AT TIMESTAMP '2026-11-21 08:00:00', and an alias after it."
)


@told_with_places
def in_sparks_words(text: str, dialect: Dialect | None = None) -> str:
    """The statement, in a dialect if it is known, with its times in Spark's notation. Raises `UsageError`, with the
    place, for one that is wrong."""
    if _LIKELY.search(text) is None:
        return text
    try:
        tokens = Spark().tokenize(text)
    except SqlglotError:
        return text  # another dialect's quotes, or none that anybody knows: its parser says so
    if tokens and tokens[0].text.upper() == "SET":
        return text
    pieces, done, merges = list[str](), 0, False
    texts = _texts_in_dollars(text) if dialect in (None, Dialect.POSTGRES) else ()
    for number in range(1, len(tokens)):
        if any(tokens[number].start in one for one in texts):
            continue
        merges = merges or _is_word(tokens[number - 1], frozenset({"MERGE"}))
        if _is_time(tokens, number):
            _check(tokens, number)
            at, point, literal = tokens[number : number + 3]
            head, tail = text[done : at.start], ""
            if merges and _before_name(tokens, number) == "USING":
                name = tokens[_name_start(tokens, number)].start
                head = f"{text[done:name]}(SELECT * FROM {text[name : at.start]}"
                tail = ")" + _missing_alias(tokens, number)
            moment = text[point.end + 1 : literal.end + 1]
            said = "VERSION" if _is_word(point, _REFERENCES) else point.text
            pieces += [head, said, text[at.end + 1 : point.start], "AS OF", moment, tail]
            done = literal.end + 1
    return "".join([*pieces, text[done:]])


def _texts_in_dollars(text: str) -> tuple[range, ...]:
    """Where PostgreSQL's texts in dollars ($$...$$) stand, which Spark has not."""
    if "$" not in text:
        return ()
    try:
        tokens = PARSERS[Dialect.POSTGRES].tokenize(text)
    except SqlglotError:
        return ()
    return tuple(range(one.start, one.end) for one in tokens if one.token_type is TokenType.HEREDOC_STRING)


def _missing_alias(tokens: Sequence[Token], at: int) -> str:
    """What a query has to be called in place of a table without an alias."""
    following = tokens[at + 3] if at + 3 < len(tokens) else None
    if following is None or not _is_word(following, frozenset({"ON"})):
        return ""
    return " AS `" + tokens[at - 1].text.replace("`", "``") + "`"


def _is_time(tokens: Sequence[Token], at: int) -> bool:
    """Whether AT and one of the points begins here. Both words can be names, too: of columns and their aliases, where
    no literal follows them, but never right after the name of a table."""
    if not _is_word(tokens[at], frozenset({"AT"})) or at + 1 >= len(tokens):
        return False
    if not _is_word(tokens[at + 1], _POINTS):
        return False
    followed = at + 2 < len(tokens) and tokens[at + 2].token_type in _LITERALS
    return followed or _before_name(tokens, at) in _BEFORE_TABLES - {",", "("}


def _check(tokens: Sequence[Token], at: int) -> None:
    before, point = _before_name(tokens, at), tokens[at + 1].text.upper()
    if before is None:
        raise _wrong(tokens[at], f"AT {point} belongs to the name of a table.")
    if before in _WRITTEN:
        raise _wrong(tokens[at], "Only what is read has a version; what is written is head.")
    if before not in _BEFORE_TABLES:
        raise _wrong(tokens[at], f"AT {point} comes right after the table, before its alias.")
    literal = tokens[at + 2] if at + 2 < len(tokens) else None
    if literal is None or literal.token_type not in _LITERALS:
        raise _wrong(literal or tokens[at + 1], f"AT {point} needs a literal.")
    if point == "TIMESTAMP" and literal.token_type is not TokenType.STRING:
        raise _wrong(literal, "A timestamp is a text.")
    if point in _REFERENCES and literal.token_type is not TokenType.STRING:
        raise _wrong(literal, f"The name of a {point.lower()} is a text.")
    if point == "VERSION" and not (literal.text.isascii() and literal.text.isdigit()):
        raise _wrong(literal, "A version is a whole number.")


def _before_name(tokens: Sequence[Token], at: int) -> str | None:
    """The word before the name that ends right before `at`, in capitals; None if there is no name."""
    place = _name_start(tokens, at)
    if place == at:
        return None
    return tokens[place - 1].text.upper() if place else ""


def _name_start(tokens: Sequence[Token], at: int) -> int:
    """Where the name begins that ends right before `at`; `at` itself if there is none."""
    place = at - 1
    if not _is_name(tokens[place]):
        return at
    while place >= 2 and tokens[place - 1].token_type is TokenType.DOT and _is_name(tokens[place - 2]):
        place -= 2
    return place


def _is_name(token: Token) -> bool:
    """Whether it can be a part of a name: keywords can, punctuation and literals cannot."""
    named = token.text[:1].isalpha() or token.text[:1] == "_"
    return token.token_type is TokenType.IDENTIFIER or (named and token.token_type not in _LITERALS)


def _is_word(token: Token, wanted: frozenset[str]) -> bool:
    quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
    return not quoted and token.text.upper() in wanted


def _wrong(token: Token, message: str) -> UsageError:
    return wrong_at(token.start, message, hint=_EXAMPLE)
