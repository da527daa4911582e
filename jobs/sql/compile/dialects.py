"""Each dialect's own parser: sqlglot's, and what it lacks. Pure."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from sqlglot import Dialect as SqlDialect
from sqlglot import Parser, Token, TokenType, exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.spark import Spark
from sqlglot.dialects.teradata import Teradata
from sqlglot.dialects.tsql import TSQL
from sqlglot.parsers.mysql import MySQLParser
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.parsers.spark import SparkParser
from sqlglot.parsers.teradata import TeradataParser
from sqlglot.parsers.tsql import TSQLParser

from lakewarden.jobs.sql.compile.places import wrong_at
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["OWN", "PARSERS", "STRAIGHT"]

OWN: Final = "own"
"""Marks a column that is of the table that is changed, whoever else has such a column."""
STRAIGHT: Final = "straight"
"""Marks a statement that had STRAIGHT_JOIN."""
_COMPOUND: Final[Mapping[TokenType, type[exp.Binary]]] = {
    TokenType.PLUS: exp.Add,
    TokenType.DASH: exp.Sub,
    TokenType.STAR: exp.Mul,
    TokenType.SLASH: exp.Div,
    TokenType.MOD: exp.Mod,
}
_KNOWN_IN_SPARK: Final = (
    "ABS", "ARRAY", "AVG", "BOOLEAN", "COALESCE", "COLLECT_LIST", "COLLECT_SET", "CONCAT", "COUNT",
    "CURRENT_DATE", "CURRENT_TIMESTAMP", "DATE", "DENSE_RANK", "DOUBLE", "FIRST_VALUE", "FLOAT", "GREATEST",
    "IF", "IFNULL", "INT", "LAG", "LAST_VALUE", "LEAD", "LEAST", "LENGTH", "LOWER", "LTRIM", "MAX", "MIN",
    "NULLIF", "NVL", "RANK", "ROUND", "ROW_NUMBER", "RTRIM", "STRING", "SUBSTRING", "SUM", "TIMESTAMP",
    "UPPER",
)  # fmt: skip
_ESCAPE: Final = re.compile(
    r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)|''", re.DOTALL
)
_SPAN: Final = re.compile(r"([+-]?\d{1,9})\s{0,9}([A-Za-z]{1,9})")
_SPAN_UNITS: Final = frozenset({"YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})
_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ASCII: Final = 0x80


def _text(parser: Parser, token: Token) -> exp.Expr:
    """N'...': a text as any other."""
    return exp.Literal.string(token.text).update_positions(token)


def _escaped(parser: Parser, token: Token) -> exp.Expr:
    """PostgreSQL's E'...'."""
    written = parser.sql[token.start + len("E'") : token.end]

    def unescaped(found: re.Match[str]) -> str:
        """What an escape stands for; bytes, of which several may be one character, are no text by themselves."""
        escape = found[1]
        if escape is None:
            return "'"
        if len(escape) == 1 and escape not in "01234567":
            return _LETTERS.get(escape, escape)
        point = _point(escape)
        if point == 0 or point > 0x10FFFF or (escape[0] not in "uU" and point >= _ASCII):
            raise wrong_at(token.start, f"\\{escape} is no character.", hint="Write the character itself.")
        return chr(point)

    return exp.Literal.string(_ESCAPE.sub(unescaped, written)).update_positions(token)


def _point(escape: str) -> int:
    return int(escape[1:], 16) if escape[0] in "uUx" else int(escape, 8)


class _Functions(Parser):
    """sqlglot forgets where some functions stand: those with a grammar of their own."""

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        token = self._curr
        found: exp.Expr | None = super()._parse_function_call(*args, **kwargs)
        if isinstance(found, exp.Func) and "start" not in found.meta:
            found.update_positions(token)
        return found


class _SparkParser(_Functions, SparkParser):
    """sqlglot rewrites what it knows of functions (`first(a, true)`, `log10`, `to_char`), not always to the same: of
    Spark's own, and of users', all stay as they are written but those that the compiler has to know."""

    FUNCTIONS: ClassVar = {name: SparkParser.FUNCTIONS[name] for name in _KNOWN_IN_SPARK}


class _Joins(Parser):
    """sqlglot lacks a join behind USING of a MERGE."""

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if self._prev.token_type is TokenType.USING:
            kwargs["joins"] = True
        found: exp.Expr | None = super()._parse_table(*args, **kwargs)
        return found


class _Moments(Parser):
    """sqlglot takes FOR SYSTEM_TIME for Spark's TIMESTAMP, whose moments are in the session's zone."""

    def _parse_version(self) -> exp.Version | None:
        start, word = self._curr, self._next
        found = super()._parse_version()
        if found is not None and start.token_type is TokenType.FOR and word.text.upper() == "SYSTEM_TIME":
            raise wrong_at(
                start.start,
                "The zone of a time behind FOR SYSTEM_TIME is not that of the database here: SQL Server has UTC.",
                hint="Write AT TIMESTAMP '2026-11-21 08:00:00+00:00', with its zone.",
            )
        return found


class _PostgresParser(_Functions, _Joins, _Moments, PostgresParser):
    """sqlglot takes E'...' for bytes, and of the text of an interval what it understands."""

    PRIMARY_PARSERS: ClassVar = {**PostgresParser.PRIMARY_PARSERS, TokenType.BYTE_STRING: _escaped}

    def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
        """'1 month 2 days' as it is written; a number alone has its unit behind the text."""
        text = this.name if this is not None and this.is_string else ""
        if not any(one.isalpha() or one == ":" for one in text):
            return super()._parse_interval_span(this, parse_function_unit)
        parts = _SPAN.findall(text)
        units = {unit.upper().removesuffix("S") for _, unit in parts}
        if "".join(map("".join, parts)) != "".join(text.split()) or not units <= _SPAN_UNITS:
            raise wrong_at(
                self._prev.start,
                "This interval is not read here as PostgreSQL reads it.",
                hint="Write whole numbers of years, months, weeks, days, hours, minutes or seconds: '1 day 2 hours'.",
            )
        told = " ".join(f"{number} {unit}" for number, unit in parts)
        return self.expression(exp.Interval(this=exp.Literal.string(told)))


class _TSQLParser(_Functions, _Joins, _Moments, TSQLParser):
    """sqlglot lacks `SET a += 1` and `DELETE FROM t FROM t JOIN s`."""

    PRIMARY_PARSERS: ClassVar = {**TSQLParser.PRIMARY_PARSERS, TokenType.NATIONAL_STRING: _text}

    def _parse_update(self) -> exp.Update:
        self._refuse_top()
        return super()._parse_update()

    def _parse_convert(self, strict: bool, safe: bool | None = None) -> exp.Expr | None:
        """CONVERT(type, value) is a CAST, unless it names a style."""
        found: exp.Expr | None = super()._parse_convert(strict, safe)
        if not isinstance(found, exp.Convert) or found.args.get("style") is not None:
            return found
        return self.build_cast(strict=not safe, safe=safe, this=found.expression, to=found.this)

    def _parse_update_assignment(self) -> exp.Expr | None:
        index = self._index
        column, sign = self._parse_column(), self._curr.token_type
        if column is None or sign not in _COMPOUND or self._next.token_type is not TokenType.EQ:
            self._retreat(index)
            return super()._parse_update_assignment()
        self._advance(2)
        before = column.copy()
        before.meta[OWN] = True
        operand = self._parse_disjunction()
        if operand is None:
            self.raise_error("Expected a value")
        value = _COMPOUND[sign](this=before, expression=exp.Paren(this=operand))
        return self.expression(exp.EQ(this=column, expression=value))

    def _parse_delete(self) -> exp.Delete:
        self._refuse_top()
        deletion = super()._parse_delete()
        if (
            isinstance(deletion.this, exp.Table)
            and not deletion.args.get("tables")
            and self._match(TokenType.FROM)
        ):
            deletion.set("tables", [deletion.this])
            deletion.set("this", self._parse_table(joins=True))
            deletion.set("where", self._parse_where())
        if self._match_text_seq("OPTION"):
            self._retreat(self._index - 1)
            deletion.set("options", self._parse_options())
        return deletion

    def _refuse_top(self) -> None:
        if self._curr.text.upper() == "TOP" and self._next.token_type is TokenType.L_PAREN:
            raise wrong_at(
                self._curr.start,
                "TOP changes some rows or others, by chance.",
                hint="Choose them by a condition: WHERE k IN (SELECT TOP (5) k FROM t ORDER BY k).",
            )


class _MySQLParser(_Functions, _Moments, MySQLParser):
    """sqlglot lacks `DELETE t.* FROM`, and words for the planner."""

    PRIMARY_PARSERS: ClassVar = {**MySQLParser.PRIMARY_PARSERS, TokenType.NATIONAL_STRING: _text}

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """Statements, with JOIN for STRAIGHT_JOIN, and without it behind SELECT."""
        before = [None, *(token.token_type for token in raw_tokens)]
        straight = [token.token_type is TokenType.STRAIGHT_JOIN for token in raw_tokens]
        tokens = [
            _as_join(token) if is_straight else token
            for token, is_straight, last in zip(raw_tokens, straight, before, strict=False)
            if not is_straight or last is not TokenType.SELECT
        ]
        found: list[exp.Expr | None] = super().parse(tokens, sql)
        for tree in found if any(straight) else ():
            if tree is not None:
                tree.meta[STRAIGHT] = True
        return found

    def _parse_update(self) -> exp.Update:
        self._skip("LOW_PRIORITY")
        return super()._parse_update()

    def _parse_delete(self) -> exp.Delete:
        self._skip("LOW_PRIORITY", "QUICK")
        kept, named = self._tokens[: self._index], self._tokens[self._index :]
        end = next((n for n, one in enumerate(named) if one.token_type in _AFTER_NAMES), len(named))
        stars = [n for n in range(1, end) if [one.token_type for one in named[n - 1 : n + 1]] == _DOT_STAR]
        gone = {place for n in stars for place in (n - 1, n)}
        self._tokens = [*kept, *(one for n, one in enumerate(named) if n not in gone)]
        self._tokens_size = len(self._tokens)
        self._advance(0)
        return super()._parse_delete()

    def _skip(self, *for_its_planner: str) -> None:
        while self._curr.text.upper() in for_its_planner:
            self._advance()
        if self._curr.token_type is TokenType.IGNORE:
            raise wrong_at(
                self._curr.start,
                "IGNORE leaves rows as they are that cannot be written.",
                hint="Leave it out: what cannot be written is an error, and nothing is changed then.",
            )


def _as_join(token: Token) -> Token:
    return Token(TokenType.JOIN, token.text, token.line, token.col, token.start, token.end, token.comments)


_AFTER_NAMES: Final = (TokenType.WHERE, TokenType.JOIN, TokenType.L_PAREN, TokenType.ON)
_DOT_STAR: Final = [TokenType.DOT, TokenType.STAR]


class _WarehouseParser(_Functions, _Moments, TeradataParser):
    """sqlglot takes SET for the alias of the last table before it, and ALL for one of the table it empties."""

    def _parse_update(self) -> exp.Update:
        target = self._parse_table(alias_tokens=self.UPDATE_ALIAS_TOKENS)
        from_ = None
        if self._match_text_seq("FROM"):
            sources = self._parse_csv(
                lambda: self._parse_table(joins=True, alias_tokens=self.UPDATE_ALIAS_TOKENS)
            )
            for source in sources[1:]:
                sources[0].append("joins", exp.Join(this=source))
            from_ = exp.From(this=sources[0]) if sources else None
        if not self._match_text_seq("SET"):
            self.raise_error("Expected SET")
        assignments = self._parse_csv(self._parse_update_assignment)
        where = None if self._match_text_seq("ALL") else self._parse_where()
        return self.expression(exp.Update(this=target, from_=from_, expressions=assignments, where=where))

    def _parse_delete(self) -> exp.Delete:
        deletion = super()._parse_delete()
        for table in (deletion.this, *(deletion.args.get("tables") or ())):
            if isinstance(table, exp.Table) and _is_all(table.args.get("alias")):
                table.set("alias", None)
        return deletion


class _Warehouse(Teradata):
    Parser = _WarehouseParser


class _SparkTokenizer(Spark.Tokenizer):
    """Spark 4 reads 'it''s' as one text; sqlglot takes it for two that are joined."""

    STRING_ESCAPES: ClassVar = ["\\", "'", '"']


class _Spark(Spark):
    Parser = _SparkParser
    Tokenizer = _SparkTokenizer


class _Postgres(Postgres):
    Parser = _PostgresParser


class _TSQL(TSQL):
    Parser = _TSQLParser


class _MySQL(MySQL):
    Parser = _MySQLParser


def _is_all(alias: exp.TableAlias | None) -> bool:
    name = None if alias is None else alias.this
    return isinstance(name, exp.Identifier) and not name.args.get("quoted") and name.name.upper() == "ALL"


PARSERS: Final[Mapping[Dialect, SqlDialect]] = {
    Dialect.SPARK: _Spark(),
    Dialect.POSTGRES: _Postgres(),
    Dialect.TSQL: _TSQL(),
    Dialect.MYSQL: _MySQL(),
    Dialect.TERADATA: _Warehouse(),
}
"""In the order in which dialects that read a text alike are named."""
