"""Each dialect's own parser: sqlglot's, and what it lacks of Teradata. Pure."""

from collections.abc import Mapping
from typing import Final

from sqlglot import Dialect as SqlDialect
from sqlglot import exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.spark import Spark
from sqlglot.dialects.teradata import Teradata
from sqlglot.dialects.tsql import TSQL
from sqlglot.parsers.teradata import TeradataParser

from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["PARSERS"]


class _WarehouseParser(TeradataParser):
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


def _is_all(alias: exp.TableAlias | None) -> bool:
    name = None if alias is None else alias.this
    return isinstance(name, exp.Identifier) and not name.args.get("quoted") and name.name.upper() == "ALL"


PARSERS: Final[Mapping[Dialect, SqlDialect]] = {
    Dialect.SPARK: Spark(),
    Dialect.POSTGRES: Postgres(),
    Dialect.TSQL: TSQL(),
    Dialect.MYSQL: MySQL(),
    Dialect.TERADATA: _Warehouse(),
}
"""In the order in which dialects that read a text alike are named."""
