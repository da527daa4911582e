"""Governed SQL: from text to a statement. Pure; sqlglot does the lexing and everything that is standard SQL."""

from collections.abc import Sequence
from typing import Final

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.catalog.policies import Value, parse_value
from lakewarden.catalog.system.base import SystemTableName
from lakewarden.jobs.sql.rollback import parse_rollback
from lakewarden.jobs.sql.statements import ConvertToDelta, Query, SetRows, Statement, Unmanaged

__all__ = ["CONVERT_SYNTAX", "parse"]

CONVERT_SYNTAX: Final = "CONVERT TO DELTA table [PARTITIONED BY (column type, ...)] [NO STATISTICS] [VACUUM RETAIN n DAYS|HOURS] [OWNER name]"
_DATABASE = "lakewarden"
_UNIT_SECONDS = {"DAY": 86_400, "DAYS": 86_400, "HOUR": 3_600, "HOURS": 3_600}


def parse(text: str) -> Statement:
    """Read one statement. Raises `UsageError` with the place of the mistake for a governed one that is wrong."""
    tokens = _tokens(text)
    if not tokens:
        raise UsageError("There is no statement.", hint="Try: SELECT * FROM lakewarden.tables")
    words = [token.text.upper() for token in tokens[:3]]
    if words == ["CONVERT", "TO", "DELTA"]:
        return _Convert(tokens).parse()
    if words[:2] == ["ROLLBACK", "TABLE"]:
        return parse_rollback(tokens)
    if words[0] not in ("SELECT", "WITH", "UPDATE", "DELETE", "INSERT", "MERGE", "("):
        return Unmanaged(sql=text)
    tree = _tree(text)
    if tree is None or not _touches_system(tree):
        return Unmanaged(sql=text)
    if isinstance(tree, exp.Query):
        return Query(sql=text.strip().rstrip(";"))
    if isinstance(tree, exp.Update):
        return _update(tree)
    raise NotAllowedError(
        "System tables are changed with UPDATE lakewarden.tables or the CLI, not like this.",
        hint="Rows come and go with CONVERT TO DELTA, register and drop.",
    )


def _tokens(text: str) -> Sequence[Token]:
    try:
        return [token for token in Spark().tokenize(text) if token.token_type is not TokenType.SEMICOLON]
    except SqlglotError as error:
        raise UsageError("The statement cannot be read.", hint="Look for an unclosed quote.") from error


def _tree(text: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as error:
        if f"{_DATABASE}." not in text.lower():
            return None  # Spark's own parser is the judge of what is not ours
        raise UsageError("The statement is not valid SQL.", hint=str(error).splitlines()[0][:200]) from error


def _touches_system(tree: exp.Expr) -> bool:
    return any(
        table.db.lower() == _DATABASE and table.name.lower() in set(SystemTableName)
        for table in tree.find_all(exp.Table)
    )


def _update(tree: exp.Update) -> SetRows:
    target = tree.this
    if not isinstance(target, exp.Table) or target.name.lower() != SystemTableName.TABLES:
        raise NotAllowedError(
            "Only lakewarden.tables can be updated.", hint="The other system tables are a record."
        )
    where = tree.args.get("where")
    if where is None:
        raise UsageError(
            "UPDATE lakewarden.tables needs a WHERE.", hint="Name the tables: WHERE name = 'db.t'."
        )
    policy: list[tuple[str, Value | None]] = []
    owner: str | None = None
    for assignment in tree.expressions:
        path, value = _assignment(assignment)
        if path == "owner" and value:
            owner = value
        elif path.startswith("policy."):
            key = path.removeprefix("policy.")
            policy.append((key, None if value is None else parse_value(key, value)))
        else:
            raise NotAllowedError(
                f"Column {path} cannot be set by SQL.",
                hint="SET takes owner and policy.<key>, such as policy.mode.",
            )
    return SetRows(policy=tuple(policy), owner=owner, condition=where.this.sql(dialect="spark"))


def _assignment(tree: exp.Expr) -> tuple[str, str | None]:
    if not isinstance(tree, exp.EQ) or not isinstance(tree.left, exp.Column):
        raise UsageError(f"'{tree.sql()}' is not an assignment.", hint="Write SET policy.mode = 'manage'.")
    path = ".".join(part.name for part in tree.left.parts).lower()
    value = tree.right
    if isinstance(value, exp.Null):
        return path, None
    if isinstance(value, exp.Literal | exp.Boolean):
        return path, str(value.this) if isinstance(value, exp.Literal) else ("yes" if value.this else "no")
    raise UsageError(
        f"{path} takes a literal, not '{value.sql()}'.", hint="Write it like '30 days', 0.1 or NULL."
    )


class _Convert:
    """A recursive-descent reader over the tokens of one CONVERT TO DELTA."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens, self._at = tokens, 3

    def parse(self) -> ConvertToDelta:
        where = self._table()
        partitioned: tuple[tuple[str, str], ...] = ()
        statistics, retain, owner = True, None, None
        while self._at < len(self._tokens):
            word = self._next().upper()
            if word == "PARTITIONED BY" and not partitioned:
                partitioned = self._partitions()
            elif word == "NO" and self._next().upper() == "STATISTICS":
                statistics = False
            elif word == "VACUUM" and retain is None:
                retain = self._retain()
            elif word == "OWNER" and owner is None:
                owner = self._next()
            else:
                raise self._wrong()
        return ConvertToDelta(
            where=where, partitioned_by=partitioned, statistics=statistics, retain_seconds=retain, owner=owner
        )

    def _table(self) -> str:
        first = self._token()
        if (
            first.text.lower() in ("parquet", "delta") and self._peek() == "."
        ) or first.token_type is TokenType.STRING:
            if self._peek() == ".":
                self._next()
                return self._next()
            return first.text
        parts = [first.text]
        while self._peek() == ".":
            self._next()
            parts.append(self._next())
        return ".".join(parts)

    def _partitions(self) -> tuple[tuple[str, str], ...]:
        self._expect("(")
        columns: list[tuple[str, str]] = []
        while True:
            name, words, depth = self._next(), list[str](), 0
            while (text := self._next()) not in (",", ")") or depth:
                depth += (text == "(") - (text == ")")
                words.append(text)
            if not words:
                raise self._wrong()
            columns.append((name, "".join(words)))
            if text == ")":
                return tuple(columns)

    def _retain(self) -> int:
        self._expect("RETAIN")
        number, unit = self._next(), self._next().upper()
        if not number.isdigit() or int(number) == 0 or unit not in _UNIT_SECONDS:
            raise UsageError(
                f"VACUUM RETAIN {number} {unit} makes no sense.", hint="Write VACUUM RETAIN 30 DAYS."
            )
        return int(number) * _UNIT_SECONDS[unit]

    def _peek(self) -> str | None:
        return self._tokens[self._at].text if self._at < len(self._tokens) else None

    def _token(self) -> Token:
        if self._at >= len(self._tokens):
            raise UsageError("The statement ends too early.", hint=CONVERT_SYNTAX)
        self._at += 1
        return self._tokens[self._at - 1]

    def _next(self) -> str:
        return self._token().text

    def _expect(self, text: str) -> None:
        if self._next().upper() != text:
            raise self._wrong()

    def _wrong(self) -> UsageError:
        return UsageError(f"'{self._tokens[self._at - 1].text}' is not expected here.", hint=CONVERT_SYNTAX)
