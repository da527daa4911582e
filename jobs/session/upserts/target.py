"""The target of an upsert in its session: found, made where it is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.session.frames import is_path, sql_name
from lakewarden.jobs.session.plans import Plans, kind
from lakewarden.jobs.session.reads import delta_index, location_of
from lakewarden.jobs.session.upserts.source import schema_of
from lakewarden.jobs.session.writes import Upsert
from lakewarden.jobs.sql.compile.values import KEYS_PROPERTY, TableSchema, quoted
from lakewarden.jobs.upsert.target_columns import Rules

__all__ = ["UpsertTarget", "emptied_of", "existing", "making"]

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
        found = self.snapshot.sizeInBytesIfKnown()
        return int(found.get()) if found.isDefined() else None

    def emptied(self, keys: Sequence[str]) -> frozenset[str]:
        """See `emptied_of`."""
        return emptied_of(self.schema, self.partitions, keys)

    def last_number(self, app: str) -> int | None:
        """The last number of an application id; None for one that is not known."""
        found = self.snapshot.transactions().get(app)
        return int(found.get()) if found.isDefined() else None


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
