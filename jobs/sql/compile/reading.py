"""From text to a draft: whose SQL is it, which table does it change, and which does it read? Pure."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final

from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.jobs.sql.compile.change import RowChange, name_of, tables_of
from lakewarden.jobs.sql.compile.clauses import Clauses, Placement
from lakewarden.jobs.sql.compile.dialects import PARSERS
from lakewarden.jobs.sql.compile.names.spelling import refuse_names_that_differ_in_case
from lakewarden.jobs.sql.compile.places import WrongPartError, told_with_places, wrong_at
from lakewarden.jobs.sql.compile.precedence import refuse_unclear
from lakewarden.jobs.sql.compile.shapes import RETURNING, ForeignError, shapes_of
from lakewarden.jobs.sql.compile.values import DIALECT_KEY, Dialect, TableName

__all__ = [
    "Draft",
    "ambiguous",
    "draft_of",
    "is_change",
    "only_statement",
    "outer_tokens",
    "refuse_run_comments",
    "refuse_system",
    "refuse_unclear_order",
    "tables_read",
    "tokens_of_any",
]

_QUOTES: Final = 'Only Spark and MySQL quote names with backticks; in the forms of the others write "name".'
_SYSTEM: Final = "lakewarden"
_BEGINNINGS: Final = frozenset({"UPDATE", "UPD", "DELETE", "DEL"})
_KEPT: Final = 8
"""So many texts are lexed once alone: each is looked at several times while it is judged."""
_FAILURES: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""How sqlglot fails at what it does not expect, such as a function without its arguments."""
_RUN_COMMENT: Final = re.compile(r"/\*M?!")
_ELSEWHERE: Final = frozenset({"FROM", "USING", "JOIN"})


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A statement that is read but not yet held against the schemas of its tables."""

    text: str
    dialects: tuple[Dialect, ...]
    """Several: they read it alike."""
    change: RowChange
    """What is changed; with a placement, what becomes of rows that are there."""
    tables: tuple[TableName, ...]
    """The first is the one that is changed."""
    placement: Placement | None = None
    """It is an upsert."""
    others: tuple[RowChange, ...] = ()
    """What it changes in further tables of the same."""
    merge: Clauses | None = None
    """The clauses of a MERGE: the assignments of the change are then their conditions and values."""
    chosen: bool = False
    """The dialect was."""

    @property
    def each(self) -> tuple["Draft", ...]:
        """A draft for each table that is changed, in the order in which the statement names them."""
        changes = (self.change, *self.others)
        return tuple(replace(self, change=one, tables=tables_read(one), others=()) for one in changes)

    @property
    def identifiers(self) -> tuple[exp.Identifier, ...]:
        """All names, as they are written."""
        changes = (self.change, *self.others)
        found = (part for one in changes for part in one.parts(exp.Identifier))
        return tuple(one for one in found if isinstance(one, exp.Identifier) and "start" in one.meta)


def is_change(text: str) -> bool:
    """Whether this is an UPDATE or DELETE, in any dialect, after a WITH or not."""
    words = _outer_words(text)
    if words and words[0] == "WITH":  # the statement begins behind the last query in parentheses
        after = (next_ for word, next_ in pairwise(words) if word == ")" and next_ not in ("AS", ","))
        return next(after, None) in _BEGINNINGS
    return bool(words) and words[0] in _BEGINNINGS


@told_with_places
def draft_of(text: str, dialect: Dialect | None = None) -> Draft | None:
    """Read an UPDATE or DELETE; None where Spark and Delta run it as it is.

    Without a dialect, what Spark can read is Spark's, and anything else is that of the dialects that have such a
    statement. Raises `UsageError` where they read it differently, where nobody reads it, or where it is not supported.
    """
    refuse_run_comments(text, dialect)
    chosen = tuple(PARSERS) if dialect is None else (dialect,)
    changes: dict[Dialect, tuple[RowChange, ...]] = {}
    misspelled: dict[Dialect, UsageError] = {}
    refusals: list[UsageError] = []
    unread: list[tuple[int, ParseError]] = []
    for one in chosen:
        try:
            tree = _tree(text, one)
            try:
                refuse_names_that_differ_in_case(tree, one)
            except UsageError as error:
                misspelled[one] = error
            changes[one] = shapes_of(tree, one)
        except ForeignError:
            continue
        except UsageError as error:
            refusals.append(misspelled.get(one, error))
        except ParseError as error:
            unread.append((_offset(text, error), error))
        if one is Dialect.SPARK and one in changes:
            break
    if not changes:
        if dialect in (None, Dialect.SPARK) and not refusals and _may_be_sparks(text):
            return None
        raise _unreadable(text, dialect, refusals, unread)
    first = next(iter(changes.values()))
    if any(other != first for other in changes.values()):
        raise ambiguous(tuple(changes))
    for one in changes:
        if one in misspelled:
            raise misspelled[one] if len(changes) == 1 else ambiguous(tuple(changes), misspelled[one])
    draft = Draft(
        text=text,
        dialects=tuple(changes),
        change=first[0],
        tables=tuple(dict.fromkeys(table for one in first for table in tables_read(one))),
        others=first[1:],
        chosen=dialect is not None,
    )
    refuse_system(draft)
    if draft.dialects == (Dialect.SPARK,) and draft.change.is_plain:
        return None
    refuse_unclear_order(draft)
    return draft


def refuse_run_comments(text: str, dialect: Dialect | None) -> None:
    """Raise `UsageError` for a comment that MySQL runs, unless another dialect was chosen."""
    if dialect not in (None, Dialect.MYSQL):
        return
    tokens = tokens_of_any(text)
    spans = [range(token.start, token.end) for token in tokens]
    places = (found.start() for found in _RUN_COMMENT.finditer(text))
    place = next((one for one in places if not any(one in span for span in spans)), None)
    held = (comment.lstrip() for token in tokens for comment in token.comments)
    if place is not None and any(comment.startswith(("!", "M!")) for comment in held):
        raise wrong_at(
            place,
            "MySQL runs what stands in this comment, all others pass over it.",
            hint="Write it without the comment, or leave it out.",
        )


def ambiguous(dialects: tuple[Dialect, ...], why: UsageError | str = "") -> UsageError:
    """The error for what dialects read differently; `why` may be what one of them refuses."""
    part = why if isinstance(why, WrongPartError) else None
    return WrongPartError(
        f"This means one thing in {' and another in '.join(dialects)}. {part.message if part else why}".rstrip(),
        hint=f"Say which it is: SET {DIALECT_KEY} = {dialects[0]}.",
        node=None if part is None else part.node,
        offset=None if part is None else part.offset,
    )


def only_statement(text: str, dialect: Dialect, plain: str | None = None) -> exp.Expr:
    """The one statement of a text, by the dialect's parser; `plain` is what it reads in place of the text, with
    everything where it was. Raises `UsageError`, with the place, for what it cannot read."""
    try:
        tree = _parsed(text if plain is None else plain, dialect)
    except ParseError as error:
        raise _parse_error(text, error) from error
    return exp.Expression() if tree is None else tree


def _tree(text: str, dialect: Dialect) -> exp.Expr:
    tree = _parsed(text, dialect)
    if not isinstance(tree, exp.Update | exp.Delete):
        raise ForeignError("no UPDATE or DELETE")
    if isinstance(tree, exp.Update):
        _refuse_twice(text)
    return tree


def _parsed(text: str, dialect: Dialect) -> exp.Expr | None:
    try:
        trees = [tree for tree in PARSERS[dialect].parse(text) if tree is not None]
    except ParseError:
        raise
    except (SqlglotError, *_FAILURES) as error:  # unclosed quotes; functions that lack arguments
        raise ParseError(str(error)) from error
    if len(trees) > 1:
        raise UsageError(
            "These are several statements.", hint="Run one after the other, each by a call of its own."
        )
    return trees[0] if trees else None


def _refuse_twice(text: str) -> None:
    """Raise `UsageError` for a second WHERE or FROM of an UPDATE: its parser would forget the first."""
    tokens = outer_tokens(text)
    for kind in (TokenType.WHERE, TokenType.FROM):
        found = [
            token
            for before, token in pairwise(tokens)
            if token.token_type is kind and before.token_type is not TokenType.DISTINCT
        ]
        if len(found) > 1:
            word = found[1].text.upper()
            raise wrong_at(found[1].start, f"There is a second {word}.", hint="Write all of it in one.")


def _unreadable(
    text: str, dialect: Dialect | None, refusals: list[UsageError], unread: list[tuple[int, ParseError]]
) -> UsageError:
    """What to say of a statement that nobody reads: of all readings, the one that came furthest."""
    if refusals:
        return refusals[0]
    if not unread:
        names = ", ".join(Dialect) if dialect is None else dialect
        return UsageError(
            f"No UPDATE or DELETE has this form (read as {names}).",
            hint="docs/sql.md has a table of the forms.",
        )
    output = next((token for token in outer_tokens(text) if token.text.upper() == "OUTPUT"), None)
    if output is not None and dialect in (None, Dialect.TSQL):
        return wrong_at(output.start, RETURNING, hint="Leave it out, and SELECT the rows afterwards.")
    told = _parse_error(text, max(unread, key=lambda one: one[0])[1])
    if "`" in text:
        told.hint = _QUOTES
    return told


def _parse_error(text: str, error: ParseError) -> WrongPartError:
    """What a parser says of a text that it cannot read, with the place."""
    if not error.errors:
        return wrong_at(
            None,
            "The statement cannot be read.",
            hint="Look for an unclosed quote, or a function without its arguments.",
        )
    described = str(error.errors[0].get("description") or "")
    if not described or "<class" in described:
        described = "Something is missing here"
    elif "<Token" in described:
        described = "This cannot be read here"
    return wrong_at(
        _offset(text, error),
        f"{described.rstrip('.')}.",
        hint="docs/sql.md has a table of the forms that statements may have.",
    )


def _offset(text: str, error: ParseError) -> int:
    """Where a parser stopped: the beginning of what it points at."""
    if not error.errors or error.errors[0].get("line") is None:
        return 0
    found = error.errors[0]
    before = sum(len(line) for line in text.splitlines(keepends=True)[: int(found["line"] or 1) - 1])
    return max(before + int(found["col"] or 1) - len(str(found["highlight"] or "")), 0)


def tables_read(change: RowChange) -> tuple[TableName, ...]:
    """The table that is changed, and those that are read."""
    return tuple(dict.fromkeys([name_of(change.target), *(name_of(table) for table in tables_of(change))]))


def refuse_system(draft: Draft) -> None:
    """Raise `NotAllowedError` if a system table is changed or read."""
    for table in draft.tables:
        if len(table.parts) == 2 and table.parts[0].lower() == _SYSTEM:
            raise NotAllowedError(
                f"{table} is a system table: no UPDATE or DELETE of other tables reads or changes it.",
                hint="UPDATE lakewarden.tables SET policy... changes it; SELECT alone reads it.",
            )


def refuse_unclear_order(draft: Draft) -> None:
    """Raise `UsageError` for comparisons in an order that a dialect may read in another way than sqlglot."""
    for dialect in draft.dialects:
        for change in (draft.change, *draft.others):
            refuse_unclear(change.parts(exp.Binary, exp.In), dialect)


def _outer_words(text: str) -> list[str]:
    """The words outside all parentheses, in capitals; none of a text that nobody can read."""
    return [token.text.upper() for token in outer_tokens(text)]


@lru_cache(maxsize=_KEPT)
def outer_tokens(text: str) -> tuple[Token, ...]:
    """What stands outside all parentheses, and the closing ones; without strings. None of a text that nobody reads."""
    found, depth = list[Token](), 0
    for token in tokens_of_any(text):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth == 0 and token.token_type is not TokenType.STRING:
            found.append(token)
    return tuple(found)


@lru_cache(maxsize=_KEPT)
def tokens_of_any(text: str) -> tuple[Token, ...]:
    """All tokens, by the first dialect that knows all the quotes; none of a text that nobody reads."""
    for parser in PARSERS.values():
        try:
            return tuple(parser.tokenize(text))
        except SqlglotError:
            continue
    return ()


def _may_be_sparks(text: str) -> bool:
    """Whether it looks like Spark's own UPDATE t SET ... or DELETE FROM t WHERE ...: its parser is the judge then."""
    words = _outer_words(text)
    beyond = words[2:] if words[:2] == ["DELETE", "FROM"] else words[1:]
    return bool(words) and words[0] in ("UPDATE", "DELETE", "WITH") and not _ELSEWHERE.intersection(beyond)
