"""What other dialects read differently in a statement that was taken for Spark's, as nobody said whose it is. Pure."""

from collections.abc import Iterator
from itertools import pairwise

from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from lakewarden.jobs.sql.compile.dialects import PARSERS
from lakewarden.jobs.sql.compile.names.spelling import differ_in_case
from lakewarden.jobs.sql.compile.reading import tokens_of_any
from lakewarden.jobs.sql.compile.values import DIALECT_KEY, Dialect

__all__ = ["read_otherwise"]


def read_otherwise(text: str) -> tuple[str, ...]:
    """A note for each thing in an UPDATE or DELETE that means something else elsewhere; none where there is nothing."""
    try:
        trees = PARSERS[Dialect.SPARK].parse(text)
    except SqlglotError:
        return ()
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Update | exp.Delete):
        return ()
    told = (*_quotes(text), *_moments(text), *_operators(tree), *_order(tree), *_names(tree))
    found = tuple(dict.fromkeys(told))
    return (*found, f"It was read as Spark's: SET {DIALECT_KEY} says whose it is.") if found else ()


def _quotes(text: str) -> Iterator[str]:
    for token in tokens_of_any(text):
        written = text[token.start : token.end + 1]
        if written.startswith('"'):
            yield f"{written} is a text, where postgres, teradata and tsql have a name."


def _moments(text: str) -> Iterator[str]:
    for before, token in pairwise(tokens_of_any(text)):
        if before.token_type is TokenType.FOR and token.text.upper() == "SYSTEM_TIME":
            yield "FOR SYSTEM_TIME is in the session's zone, where tsql has UTC."


def _names(tree: exp.Expr) -> Iterator[str]:
    found = differ_in_case(tree, Dialect.MYSQL)
    if found is not None:
        yield f"{found[0]} and {found[1]} are one name, where mysql has two."


def _operators(tree: exp.Expr) -> Iterator[str]:
    for node in tree.find_all(exp.DPipe, exp.Div):
        if isinstance(node, exp.DPipe):
            yield "|| joins texts, where mysql has OR."
        elif not any(_has_point(part) for part in (node.this, node.expression)):
            yield (
                "/ keeps the fraction, where postgres, teradata and tsql cut it off "
                "if both are whole numbers."
            )


def _has_point(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and not node.is_int


def _order(tree: exp.Expr) -> Iterator[str]:
    """MySQL alone uses what it has just assigned."""
    done: set[str] = set()
    for assignment in tree.expressions if isinstance(tree, exp.Update) else ():
        if not isinstance(assignment, exp.EQ) or not isinstance(assignment.this, exp.Column):
            continue
        for column in assignment.expression.find_all(exp.Column):
            if column.name.lower() in done:
                yield (
                    f"{column.name} has its old value on the right, "
                    "where mysql has the one that was just set."
                )
        done.add(assignment.this.name.lower())
