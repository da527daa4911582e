"""The Delta table that is the target of an upsert in its session: found, made where it is missing, and asked what it
holds already."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError, UsageError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.lineage_record import RENUMBERED
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import stamped
from lakewarden.jobs.engines.delta.stream_offsets import lower_number, number_at
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError
from lakewarden.jobs.session.delta.checksums import bytes_of, numbers_of
from lakewarden.jobs.session.delta.delta_reads import delta_index
from lakewarden.jobs.session.delta.history import found, was_done
from lakewarden.jobs.session.frames import is_path, schema_of, sql_name
from lakewarden.jobs.session.plans import Plans, kind, location_of
from lakewarden.jobs.session.writes import Upsert
from lakewarden.jobs.sql.compile.values import KEYS_PROPERTY, TableSchema, quoted
from lakewarden.jobs.upsert.once import OperationVerdict
from lakewarden.jobs.upsert.target_columns import Rules

__all__ = ["UpsertTarget", "emptied_of", "existing", "is_done", "making"]

_WIDENING: Final = "delta.enableTypeWidening"


@dataclass(frozen=True, kw_only=True)
class UpsertTarget:
    """A Delta table as it is now."""

    location: str
    version: int
    schema: TableSchema
    rules: Rules
    partitions: tuple[str, ...]
    """The columns that it is partitioned by."""
    snapshot: Any
    """Delta's own, in the JVM, which computes its state when it is asked for it."""
    entry: Any
    """That of Spark's catalog, an Option."""

    @property
    def size(self) -> int | None:
        """The bytes of its files; None where the log does not tell without being read through."""
        return bytes_of(self.snapshot)

    def emptied(self, keys: Sequence[str]) -> frozenset[str]:
        """See `emptied_of`."""
        return emptied_of(self.schema, self.partitions, keys)

    def last_number(self, app: str) -> int | None:
        """The last number of an application id; None for one that is not known."""
        known = numbers_of(self.snapshot)
        if known is not None:
            return known.get(app)
        found = self.snapshot.transactions().get(app)
        return int(found.get()) if found.isDefined() else None


def is_done(
    spark: SparkSession, reader: TableReader, target: UpsertTarget, request: Upsert, app: str
) -> bool:
    """Whether the operation was done, and not undone since. What was undone by a RESTORE that left its number has
    no number afterwards: Delta would skip it. A number above the last may have been done as well: where numbers
    went back with a rollback, and a RESTORE of somebody else's took that back."""
    number, last = request.number, target.last_number(app)
    if last is None:
        return False
    finding = found(
        reader,
        target.location,
        head=target.version,
        app=app,
        number=number,
        last=last,
        known=lambda version: number_at(spark, target.location, version=version, app=app),
    )
    if last < number and finding.verdict is OperationVerdict.UNTOLD:
        return False  # nothing that is left of the log speaks for it
    if was_done(finding, app=app, number=number, reads=request.reads or ()):
        return True
    if last < number:
        return False
    try:
        with stamped(spark, f"{RENUMBERED}{uuid.uuid4().hex}", "upsert") as stamping:
            lower_number(stamping, target.location, requires=target.version, app=app, number=number - 1)
    except ConflictError as error:  # what was decided on moved: look again
        raise LostRaceError(str(error), is_mendable=True) from error
    return False


def emptied_of(schema: TableSchema, partitions: Sequence[str], keys: Sequence[str]) -> frozenset[str]:
    """The keys (in lower case) whose empty texts are NULL in a table: Delta keeps them so in partitions."""
    texts = {one.name.lower() for one in schema if one.type == "string" or "char(" in one.type}
    return frozenset(texts).intersection(keys, (name.lower() for name in partitions))


def existing(plans: Plans, session: Any, table: str) -> UpsertTarget | None:
    """The table; None if there is none. Raises `UsageError` if it is none of Delta's."""
    if not _is_there(plans, session, table):
        return None
    frame = plans.frame(session, plans.composed(session, f"SELECT * FROM {sql_name(table)}"))
    leaf = plans.bare_table(frame._jdf.queryExecution().analyzed().child())
    is_files = leaf is not None and kind(leaf) == "LogicalRelation"
    index = delta_index(plans, leaf.relation()) if leaf and is_files else None
    if leaf is None or index is None:
        raise UsageError(
            f"{table} is not a Delta table: only these are upserted into.",
            hint="Convert it (CONVERT TO DELTA), or name another one; of a view, name its table.",
        )
    snapshot = index.getSnapshot()
    widening = snapshot.metadata().configuration().get(_WIDENING)
    return UpsertTarget(
        location=location_of(index.path()),
        version=int(snapshot.version()),
        schema=schema_of(frame),
        rules=Rules(widens=str(plans.option(widening)).lower() == "true"),
        partitions=tuple(map(str, plans.sequence(snapshot.metadata().partitionColumns()))),
        snapshot=snapshot,
        entry=leaf.catalogTable(),
    )


def making(request: Upsert, schema: TableSchema) -> str:
    """The CREATE TABLE for a target that is missing: the columns of the source, its buckets by the keys, and the keys
    as a property."""
    columns = ", ".join(f"{quoted(one.name)} {one.type}" for one in schema)
    parts = ", ".join(quoted(name) for name in request.partitioned)
    buckets = ", ".join(quoted(name) for name in request.options.keys)
    keys = ",".join(request.options.keys).replace("\\", "\\\\").replace("'", "\\'")
    return (
        f"CREATE TABLE IF NOT EXISTS {sql_name(request.table)} ({columns}) USING delta"
        + (f" PARTITIONED BY ({parts})" if parts else "")
        + (f" CLUSTERED BY ({buckets}) INTO {request.buckets} BUCKETS" if request.buckets else "")
        + f" TBLPROPERTIES ('{KEYS_PROPERTY}' = '{keys}')"
    )


def _is_there(plans: Plans, session: Any, table: str) -> bool:
    if is_path(table):
        jvm: Any = plans.spark.sparkContext._jvm
        return bool(jvm.io.delta.tables.DeltaTable.isDeltaTable(session, table))
    return bool(session.catalog().tableExists(sql_name(table)))
