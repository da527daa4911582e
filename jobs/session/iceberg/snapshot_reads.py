"""Iceberg tables in the plans of a user's session: pinned to one snapshot, and what is read of them.

A pinned leaf has the table's metadata as one file tells it, which never changes, and no name: whatever somebody commits
meanwhile, nothing loads the table anew. What cannot be pinned is read as Spark reads it, and on record without
a version, so that its lineage is unknown: metadata tables, changelogs, reads with options, encrypted tables.
"""

from typing import Any, Final

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.storage.file_store import from_hadoop
from lakewarden.jobs.runs.spark_settings import ICEBERG_CATALOG
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.writes import Read

__all__ = [
    "committed_by",
    "head_of",
    "is_fixed",
    "is_iceberg",
    "is_whole",
    "key_of",
    "leaf_at",
    "location_of_table",
    "name_of_table",
    "named_table",
    "pinned_leaf",
    "place_of",
    "read_of_scan",
    "read_of_table",
    "tells_of",
    "unpinned_read",
    "uuid_of_table",
]

_FORMAT: Final = "iceberg"
_METASTORES: Final = ("spark_catalog", ICEBERG_CATALOG.rpartition(".")[2])
"""The catalogs that are the Hive metastore."""
_PACKAGE: Final = "org.apache.iceberg.spark."
_TABLE: Final = "SparkTable"
_PLAIN: Final = "BaseTable"
"""A table's own rows; the tables that tell of its metadata are of other classes."""
_CHANGELOG: Final = "SparkChangelogTable"
_MAIN: Final = "main"
_TRAVEL: Final = "timeTravel"
"""What a table that was named with a version or a tag holds."""
_FROZEN: Final = "StaticTableOperations"
_NOT_ENCRYPTED: Final = "PlaintextEncryptionManager"
_WHOLE: Final = "SparkBatchQueryScan"
"""A scan of one snapshot; others read what was appended since one, or what statistics alone told."""


def is_iceberg(table: Any) -> bool:
    """Whether a table of Spark's second API is Iceberg's."""
    return str(table.getClass().getName()).startswith(_PACKAGE)


def pinned_leaf(plans: Plans, leaf: JavaPlan, known: dict[str, Any]) -> JavaPlan | None:
    """The leaf, reading one snapshot; None where that cannot be done. `known` has the metadata, by `key_of`, in which
    the statement has read tables before; what is new is added."""
    table = leaf.table()
    if not is_whole(table) or not leaf.options().isEmpty():
        return None
    if kind(table.table().operations()) == _FROZEN:
        return leaf
    own, pinned = table.table().operations().current(), None
    if _is_at_head(table, own):
        seen = own if is_fixed(leaf) else known.setdefault(key_of(table), own)
        pinned = _pinned(plans, table, seen, None)
    if pinned is None and table.snapshotId() is not None:
        # A version, a branch or a tag that the statement names: also that of head, with the columns that it had.
        pinned = _pinned(plans, table, own, str(table.snapshotId()))
    if pinned is None:
        return None  # somebody has changed its columns since it was analysed
    return _with_table(plans, leaf, pinned)


def leaf_at(plans: Plans, leaf: JavaPlan, metadata: Any) -> JavaPlan | None:
    """A leaf that reads main, reading the head of this metadata of its table, whenever it was analysed; None where the
    columns are others there."""
    pinned = _pinned(plans, leaf.table(), metadata, None)
    return None if pinned is None else _with_table(plans, leaf, pinned)


def _with_table(plans: Plans, leaf: JavaPlan, pinned: Any) -> JavaPlan:
    """Without a name and a moment. Its catalog knows the functions that the table is partitioned by."""
    return leaf.copy(pinned, leaf.output(), leaf.catalog(), plans.nothing, leaf.options(), plans.nothing)


def _pinned(plans: Plans, table: Any, metadata: Any, snapshot: str | None) -> Any:
    """The table as this metadata has it, at a snapshot or at head; None where its columns are others then."""
    jvm: Any = plans.spark._jvm
    iceberg, inner = jvm.org.apache.iceberg, table.table()
    operations = iceberg.StaticTableOperations(str(metadata.metadataFileLocation()), inner.io())
    frozen, made = iceberg.BaseTable(operations, inner.name()), iceberg.spark.source.SparkTable
    pinned = (
        made(frozen) if snapshot is None else made.create(frozen, iceberg.spark.TimeTravel.version(snapshot))
    )
    return pinned if pinned.schema().equals(table.schema()) else None


def read_of_table(table: Any) -> Read:
    """What a pinned table is read at; without a version where its snapshots have no numbers."""
    inner = table.table()
    metadata, snapshot_id = inner.operations().current(), table.snapshotId()
    number = 0 if snapshot_id is None else int(metadata.snapshot(snapshot_id).sequenceNumber())
    is_numbered = int(metadata.formatVersion()) > 1 and (number > 0 or snapshot_id is None)
    return Read(
        location=_location(inner),
        format=_FORMAT,
        version=number if is_numbered else None,
        format_id=str(metadata.uuid()),
    )


def read_of_scan(table: Any, scan: Any) -> Read:
    """What a planned scan of a table reads."""
    return read_of_table(table) if is_whole(table) and kind(scan) == _WHOLE else unpinned_read(table)


def unpinned_read(table: Any) -> Read:
    """A read of which nobody can say of which version it is."""
    return Read(location=location_of_table(table), format=_FORMAT)


def committed_by(write: Any) -> int | None:
    """The number of the snapshot that a write of Spark's plans has made, by its own report; None where it has none."""
    reporter = _held(write, "metricsReporter")
    report = None if reporter is None else reporter.commitReport()
    return None if report is None else int(report.sequenceNumber()) or None


def is_whole(table: Any) -> bool:
    """Whether this reads the rows of a table at one snapshot."""
    if kind(table) != _TABLE:
        return False
    inner = table.table()
    return kind(inner) == _PLAIN and kind(inner.encryption()) == _NOT_ENCRYPTED


def is_fixed(leaf: JavaPlan) -> bool:
    """Whether a leaf is not just the table at its head: the statement names a version, a tag or a branch other than
    main, or it was pinned before."""
    table = leaf.table()
    if leaf.timeTravelSpec().isDefined():
        return True
    if not is_whole(table):
        return False
    return (
        kind(table.table().operations()) == _FROZEN
        or table.branch() not in (None, _MAIN)
        or _held(table, _TRAVEL) is not None
    )


def head_of(table: Any) -> Any | None:
    """The metadata of a table that follows main, rows and all; None for any other."""
    if not is_whole(table):
        return None
    metadata = table.table().operations().current()
    return metadata if _is_at_head(table, metadata) else None


def location_of_table(table: Any) -> str:
    """Where a table is: canonical; as the table has it where that is no place. Of what tells of a table, such as its
    changes or its snapshots, where that table is."""
    return _location(_inner(table))


def name_of_table(table: Any, catalog: str) -> str:
    """The table of which rows, a branch, changes or metadata are read, by its name in a catalog as tables are managed
    under it: `db.t`, `a_b.t` for one in the namespace `a.b`."""
    entry = str(named_table(table).name()).removeprefix(f"{catalog}.")
    return CatalogAddress(catalog=None if catalog in _METASTORES else catalog, entry=entry).managed_as


def uuid_of_table(table: Any) -> str:
    """The UUID of the table that is meant there."""
    return str(named_table(table).uuid())


def named_table(table: Any) -> Any:
    """Iceberg's own table of which rows, changes or metadata are read."""
    inner = _inner(table)
    return inner if kind(inner) == _PLAIN else inner.table()


def tells_of(table: Any, metadata: Any) -> bool:
    """Whether what tells of a table tells of the head of this metadata. Changes are looked for when they are read."""
    head = metadata.currentSnapshot()
    return kind(table) != _TABLE or table.snapshotId() == (None if head is None else head.snapshotId())


def place_of(table: Any) -> str:
    """What `key_of` begins with, under whichever name, of a table and of what tells of it."""
    return f"{location_of_table(table)} {uuid_of_table(table)}"


def key_of(table: Any) -> str:
    """What tells a table from others, in one statement: another may lie in the same folder, and under another name it
    may be at another version."""
    return f"{place_of(table)} {str(table.table().name()).lower()}"


def _inner(table: Any) -> Any:
    """Iceberg's own table behind one of Spark's."""
    if kind(table) != _CHANGELOG:
        return table.table()
    return _held(table, "table")


def _held(thing: Any, name: str) -> Any | None:
    """What a Java object holds by this name, which nothing else gives away; None where it holds nothing so."""
    of = thing.getClass()
    while of is not None:
        for field in of.getDeclaredFields():
            if str(field.getName()) == name:
                field.setAccessible(True)
                return field.get(thing)
        of = of.getSuperclass()
    return None


def _is_at_head(table: Any, metadata: Any) -> bool:
    """Whether a table as it was analysed follows main, and has the snapshot that main is at."""
    current = metadata.currentSnapshot()
    head = None if current is None else current.snapshotId()
    return table.branch() in (None, _MAIN) and table.snapshotId() == head


def _location(inner: Any) -> str:
    """Canonical; as the table has it where that is no place."""
    told = str(inner.location())
    try:
        return from_hadoop(told)
    except UsageError:
        return told
