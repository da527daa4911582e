"""Writes of a random history by governed statements on Spark:
what a row depends on is worked out by Spark, from what it reads."""

from collections.abc import Iterator
from contextlib import contextmanager
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
from support.histories.scribes import Deed, Kind, Source

__all__ = ["GovernedSpark", "attached"]

_DEPENDS: Final = "array_join(collect_set(depends), ',')"


def attached(spark: SparkSession, settings: Settings) -> Attached:
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
        self._lw.sql(f"RESTORE TABLE {table_at(place)} TO VERSION AS OF {version}")

    def intrude(self, place: str, number: int) -> None:
        with _committing(number):
            self._spark.sql(f"INSERT INTO {table_at(place)} SELECT {number}L, '{number}'")

    def _write(self, deed: Deed) -> None:
        target = table_at(deed.place)
        match deed.kind:
            case Kind.APPEND:
                self._lw.write(self._spark.sql(_new_row(deed))).append(deed.place)
            case Kind.OVERWRITE:
                self._lw.sql(f"INSERT OVERWRITE {target} {_new_row(deed)}")
            case Kind.PARTIAL:
                frame = self._spark.sql(_new_row(deed, key=deed.key))
                self._lw.write(frame).overwrite(deed.place, where=f"write = {deed.key}")
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
            case Kind.COMPACT | Kind.RESTORE:
                raise AssertionError("no write")


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
    queries = [f"SELECT {_DEPENDS} FROM {_at(one)}" for one in deed.sources] + list(more)
    parts = ", ".join([f"'{deed.number}'", *(f"({query})" for query in queries)])
    return f"SELECT concat_ws(',', {parts})"


def _at(source: Source) -> str:
    """A version to read; without one where it is head, so that lakewarden is what pins it."""
    table = table_at(source.location)
    return table if source.at_head else f"{table} VERSION AS OF {source.version}"
