"""Writes of a random history by governed statements on Spark:
what a row depends on is worked out by Spark, from what it reads."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from deltalake import DeltaTable
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.errors import ExecutionError
from lakewarden.daemon.settings.settings import Settings
from lakewarden.jobs.engines.spark.names import table_at
from lakewarden.jobs.session.attached import Attached
from support.histories.scribes import Deed, Kind

__all__ = ["GovernedSpark", "governed_until"]

_DEPENDS: Final = "array_join(collect_set(depends), ',')"
_QUOTED: Final = {"postgres": r'"\1"', "teradata": r'"\1"', "tsql": r"[\1]"}
"""How a dialect quotes what stands between backticks, where it has none."""
_STATEMENTS: Final[Mapping[Kind, Sequence[tuple[str, str]]]] = {
    Kind.UPDATE: (
        ("postgres",
            ("UPDATE {t} AS t SET depends = t.depends || ',' || c.depends FROM changes AS c "
            "WHERE t.write = c.write")),
        ("mysql",
            ("UPDATE {t} AS t JOIN changes AS c ON t.`write` = c.`write` "
            "SET t.depends = concat(t.depends, ',', c.depends)")),
        ("tsql",
            ("UPDATE t SET depends = t.depends + ',' + c.depends FROM {t} AS t JOIN changes "
            "AS c ON t.write = c.write")),
        ("teradata",
            ("UPDATE t FROM {t} AS t, changes AS c SET depends = t.depends || ',' || c.depends "
            "WHERE t.\"write\" = c.\"write\"")),
        ("spark",
            ("UPDATE {t} AS t SET depends = concat(t.depends, ',', (SELECT max(c.depends) FROM changes "
                  "AS c)) WHERE t.write IN (SELECT c.write FROM changes AS c)")),
    ),
    Kind.DELETE: (
        ("postgres", "DELETE FROM {t} AS t USING changes AS c WHERE t.write = c.write"),
        ("mysql", "DELETE t FROM {t} AS t JOIN changes AS c ON t.`write` = c.`write`"),
        ("tsql", "DELETE t FROM {t} AS t JOIN changes AS c ON t.write = c.write"),
        ("spark", "DELETE FROM {t} AS t WHERE EXISTS (SELECT 1 FROM changes AS c WHERE c.write = t.write)"),
    ),
    Kind.PARTIAL: (("spark", "UPSERT INTO {t} ON (write) SELECT write, depends FROM changes"),),
    Kind.MERGE: (
        ("postgres", ("INSERT INTO {t} AS t (write, depends) SELECT write, depends FROM changes "
                     "ON CONFLICT (write) DO UPDATE SET depends = t.depends || ',' || excluded.depends")),
        ("spark", ("MERGE INTO {t} AS t USING changes AS c ON t.write = c.write "
                  "WHEN MATCHED AND c.write IN (SELECT write FROM changes) THEN UPDATE "
                  "SET depends = concat(t.depends, ',', c.depends) WHEN NOT MATCHED THEN INSERT (write, "
                  "depends) VALUES (c.write, c.depends)")),
    ),
}  # fmt: skip
"""Dialects and their statements: by the rows of `changes`, `{t}` is changed as the deed of this kind says."""


def _attached(spark: SparkSession, settings: Settings) -> Attached:
    """A session of an installation, as a user opens it."""
    return lakewarden.attach(spark, home=settings.home)


class GovernedSpark:
    """Writes through `lakewarden.attach(spark)`; intrudes past it."""

    name = "spark"

    def __init__(self, spark: SparkSession, lw: Attached) -> None:
        self._spark, self._lw = spark, lw

    def write(self, deed: Deed) -> None:
        with _committing(deed.number):
            self._write(deed)

    def compact(self, place: str) -> bool:
        before = DeltaTable(place).version()
        self._lw.sql(f"OPTIMIZE {table_at(place)}")
        return DeltaTable(place).version() > before

    def restore(self, place: str, version: int) -> None:
        self._spark.sql(f"RESTORE TABLE {table_at(place)} TO VERSION AS OF {version}")

    def write_both(self, one: Deed, other: Deed) -> bool:
        with _committing(one.number):
            self._changes_are(f"SELECT ({_read(one)}) AS first, ({_read(other)}) AS second")
            self._say(
                "mysql",
                f"UPDATE {one.sql} AS a, {other.sql} AS b, changes AS c "
                "SET a.depends = concat(a.depends, ',', c.first), b.depends = concat(b.depends, ',', "
                f"c.second) WHERE a.`write` = {one.key} AND b.`write` = {other.key}",
            )
        return True

    def intrude(self, place: str, number: int) -> None:
        with _committing(number):
            self._spark.sql(f"INSERT INTO {table_at(place)} SELECT {number}L, '{number}'")

    def _write(self, deed: Deed) -> None:
        """As Spark itself is told, or as warehouses say it: by turns, but for what Spark has no words for."""
        is_worded = not deed.sources or deed.kind not in (Kind.UPDATE, Kind.DELETE)
        if deed.kind not in _STATEMENTS or (is_worded and deed.number % 2):
            self._write_plainly(deed)
            return
        forms = _STATEMENTS[deed.kind]
        rows = [_new_row(deed, key=deed.key)]
        if deed.kind is Kind.MERGE:
            rows.append(_new_row(deed))
        self._changes_are(" UNION ALL ".join(rows))
        dialect, statement = forms[deed.number // 2 % len(forms)]
        target = deed.sql
        if dialect in _QUOTED:
            target = re.sub("`(.*?)`", _QUOTED[dialect], target)
        self._say(dialect, statement.format(t=target))

    def _changes_are(self, query: str) -> None:
        self._lw.sql(f"CREATE OR REPLACE TEMPORARY VIEW changes AS {query}")

    def _say(self, dialect: str, statement: str) -> None:
        self._lw.sql(f"SET lakewarden.dialect = {dialect}")
        try:
            self._lw.sql(statement)
        finally:
            self._lw.sql("RESET lakewarden.dialect")

    def _write_plainly(self, deed: Deed) -> None:
        target = deed.sql
        match deed.kind:
            case Kind.APPEND:
                self._lw.write(self._spark.sql(_new_row(deed))).append(deed.sql)
            case Kind.OVERWRITE:
                self._lw.sql(f"INSERT OVERWRITE {target} {_new_row(deed)}")
            case Kind.PARTIAL:
                frame = self._spark.sql(_new_row(deed, key=deed.key))
                self._lw.write(frame).overwrite(deed.sql, where=f"write = {deed.key}")
            case Kind.AGAIN:
                read = _read(deed, f"SELECT {_DEPENDS} FROM {target}")
                keys = f"SELECT write FROM {target} UNION ALL SELECT {deed.number}L"
                self._lw.sql(f"INSERT OVERWRITE {target} SELECT write, ({read}) AS depends FROM ({keys})")
            case Kind.UPDATE:
                change = f"depends = concat(depends, ',{deed.number}')"
                self._lw.sql(f"UPDATE {target} SET {change} WHERE write = {deed.key}")
            case Kind.DELETE:
                self._lw.sql(f"DELETE FROM {target} WHERE write = {deed.key}")
            case Kind.MERGE:
                rows = f"{_new_row(deed)} UNION ALL {_new_row(deed, key=deed.key)}"
                self._lw.sql(
                    f"MERGE INTO {target} AS t USING ({rows}) AS s ON t.write = s.write "
                    "WHEN MATCHED THEN UPDATE SET depends = concat(t.depends, ',', s.depends) "
                    "WHEN NOT MATCHED THEN INSERT *"
                )
            case Kind.COMPACT | Kind.RESTORE | Kind.SEVERAL:
                raise AssertionError("no write of one table")


def governed_until(end: ExitStack, spark: SparkSession) -> Callable[[Settings], GovernedSpark]:
    """Writes for whatever installations it is given, each by a session that is detached at the end."""

    def governed(settings: Settings) -> GovernedSpark:
        return GovernedSpark(spark, end.enter_context(_attached(spark, settings)))

    return governed


@contextmanager
def _committing(number: int) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise ExecutionError(f"Spark did not commit write {number}.") from error


def _new_row(deed: Deed, key: int | None = None) -> str:
    """A query for the row that a write makes."""
    return f"SELECT {deed.number if key is None else key}L AS write, ({_read(deed)}) AS depends"


def _read(deed: Deed, *more: str) -> str:
    """A query for all numbers that a write and what it reads depend on."""
    queries = [f"SELECT {_DEPENDS} FROM {one.sql}" for one in deed.sources] + list(more)
    parts = ", ".join([f"'{deed.number}'", *(f"({query})" for query in queries)])
    return f"SELECT concat_ws(',', {parts})"
