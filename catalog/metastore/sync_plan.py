"""What a metastore entry should say about a table, and how it differs. Pure.

The plan is a value: `metastore diff` prints it, validation turns it into findings, the sync carries it out.
Planned again after it was carried out, there is nothing left to do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.registry import provider_of, spec_of
from lakewarden.catalog.metastore.entry_obstacles import (
    Obstacle,
    foreign,
    obstacle_in,
    of_a_catalog,
    pointed_away,
)
from lakewarden.catalog.metastore.entry_statistics import misleads, recorded_in, without_statistics
from lakewarden.catalog.metastore.ownership import (
    foreign_owner,
    is_system_entry,
)
from lakewarden.catalog.metastore.parameters import (
    INSTALLATION,
    PARTITION_COLUMN,
    PARTITION_COLUMNS,
    PROVIDER,
    SCHEMA,
    SCHEMA_HASH,
    TABLE_ID,
    VERSION,
    long_value,
    with_long_value,
)
from lakewarden.catalog.metastore.port import Entry, EntryColumn
from lakewarden.catalog.metastore.types import (
    UnknownTypeError,
    hive_type,
    same_schema,
    spark_schema,
    top_level,
)
from lakewarden.catalog.observation.health import schema_hash
from lakewarden.catalog.storage.file_store import from_hadoop, local_path

__all__ = [
    "INPUT_FORMAT",
    "OUTPUT_FORMAT",
    "SERDE",
    "Aspect",
    "SyncChange",
    "SyncPlan",
    "hadoop_location",
    "hive_columns",
    "plan_sync",
    "stored_schema",
]

# Classes that every Hive and Spark has, and that Hive refuses when it compiles a statement: they are those of the newer
# Hadoop API, where Hive wants the older. What Spark writes itself (the older SequenceFile) lets Hive answer
# "no rows" for a partitioned entry or a shallow clone, and lets it overwrite the folder.
INPUT_FORMAT: Final = "org.apache.hadoop.mapreduce.lib.input.SequenceFileInputFormat"
OUTPUT_FORMAT: Final = "org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat"
SERDE: Final = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"

_PATH: Final = "path"
_COMMENT: Final = "comment"
_PLACEHOLDER: Final = ("col", "array<string>")
"""The one column that Spark shows Hive for a table whose columns it keeps to itself."""
_LONGEST_COMMENT: Final = 256
_NAMED: Final = 5
"""Columns named in a sentence."""


class Aspect(StrEnum):
    """What about an entry differs."""

    PROVIDER = "provider"
    LOCATION = "location"
    STORAGE = "storage"
    COLUMNS = "columns"
    SCHEMA = "schema"
    COMMENT = "comment"
    IDENTITY = "identity"
    STATISTICS = "statistics"

    @property
    def check(self) -> str:
        """The documented check that a difference belongs to."""
        return "schema_matches_metastore" if self in (Aspect.COLUMNS, Aspect.SCHEMA) else "metastore_entry"


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncChange:
    """One difference that the sync removes, as a sentence about how things are now."""

    aspect: Aspect
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncPlan:
    """From an entry to the wanted one."""

    entry: Entry
    wanted: Entry
    changes: tuple[SyncChange, ...] = ()
    obstacle: Obstacle | None = None
    """Why nothing is changed: the wanted entry is then the present one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    table_id: str
    location: str
    seen: Observation
    provider: str
    strict: bool
    stale_share: float
    installation: str | None


def plan_sync(
    seen: Observation,
    entry: Entry,
    *,
    table_id: str,
    location: str,
    strict: bool,
    stale_share: float,
    installation: str | None = None,
    at_another: bool = False,
) -> SyncPlan:
    """How `entry` has to change to agree with what was observed of the managed table at `location` (canonical).

    `strict` says that the server has strict columns (`Metastore.strict_columns`); `stale_share` is the policy's
    `statistics.stale_share`. An entry that says it is of another `installation` than ours keeps saying so: two that
    sync one entry would otherwise change it back and forth for ever. `at_another` says that there is a table, or may be
    one, at another place that the entry gives (`points_at_another`): somebody has pointed it there.
    """
    provider = provider_of(seen.format)
    obstacle = obstacle_in(entry, table_id, location, installation) if provider else foreign(seen)
    if obstacle is None:
        obstacle = of_a_catalog(entry, seen, location) or (
            pointed_away(entry, location) if at_another else None
        )
    if provider is None or obstacle is not None:
        return SyncPlan(entry=entry, wanted=entry, obstacle=obstacle)
    case = _Case(
        table_id=table_id,
        location=location,
        seen=seen,
        provider=provider,
        strict=strict,
        stale_share=stale_share,
        installation=installation,
    )
    wanted, changes = entry, []
    for aspect, step in _STEPS.items():
        changed, message = step(wanted, case)
        if message is not None:
            wanted = changed
            changes.append(SyncChange(aspect=aspect, message=message))
    if changes:
        ours = {SCHEMA_HASH: schema_hash(seen.schema), VERSION: str(seen.version)}
        if installation is not None and foreign_owner(entry, installation) is None:
            ours[INSTALLATION] = installation
        wanted = replace(wanted, parameters={**wanted.parameters, **ours})
    return SyncPlan(entry=entry, wanted=wanted, changes=tuple(changes))


def hive_columns(
    seen: Observation, partition_columns: tuple[EntryColumn, ...] = ()
) -> tuple[EntryColumn, ...]:
    """The table's columns as Hive is shown them, without those that the entry has as partition columns."""
    elsewhere = {column.name.lower() for column in partition_columns}
    return tuple(
        EntryColumn(name=column.path.lower(), type=hive_type(column.type), comment=_shortened(column.comment))
        for column in top_level(seen.schema)
        if column.path.lower() not in elsewhere
    )


def stored_schema(seen: Observation) -> str | None:
    """The schema as Spark stores it; None for one that cannot be told from the observation."""
    try:
        return spark_schema(seen.schema) if seen.schema else None
    except UnknownTypeError:
        return None


def hadoop_location(location: str) -> str:
    """A canonical location as Spark writes it into an entry: Hadoop's schemes, nothing percent-encoded."""
    path = local_path(location)
    if path is not None:
        return f"file:{path}"
    return f"s3a://{location.removeprefix('s3://')}" if location.startswith("s3://") else location


def _location(entry: Entry, case: _Case) -> tuple[Entry, str | None]:
    agrees = bool(entry.location) and from_hadoop(entry.location or "") == case.location
    if agrees and _PATH in entry.serde_parameters:
        return entry, None
    at = entry.location if agrees and entry.location else hadoop_location(case.location)
    words = (
        "The metastore has no path for the table, which is where Spark and Trino look."
        if agrees
        else f"The metastore says that the table is at {entry.location}; it is at {case.location}."
    )
    return replace(entry, location=at, serde_parameters={**entry.serde_parameters, _PATH: at}), words


def _provider(entry: Entry, case: _Case) -> tuple[Entry, str | None]:
    if (entry.provider or "").lower() == case.provider:
        return entry, None
    parameters = {**entry.parameters, PROVIDER: case.provider}
    label = spec_of(case.seen.format).label
    words = f"The metastore says that this is a {entry.provider or 'Hive'} table; its log says {label}."
    return replace(entry, provider=case.provider, parameters=parameters), words


def _storage(entry: Entry, case: _Case) -> tuple[Entry, str | None]:
    wanted = replace(
        entry,
        input_format=INPUT_FORMAT,
        output_format=OUTPUT_FORMAT,
        serde=SERDE,
        serde_parameters={"serialization.format": "1", **entry.serde_parameters},
    )
    return wanted, None if wanted == entry else "Hive would not refuse to read or to write the table's files."


def _columns(entry: Entry, case: _Case) -> tuple[Entry, str | None]:
    if case.strict and [(column.name, column.type) for column in entry.columns] == [_PLACEHOLDER]:
        return entry, None  # with real columns a later CREATE OR REPLACE TABLE of the user's would fail there
    wanted = hive_columns(case.seen, entry.partition_columns)
    if not wanted or _comparable(entry.columns) == _comparable(wanted):
        return entry, None
    return replace(entry, columns=wanted), _columns_sentence(entry.columns, wanted)


def _schema(entry: Entry, case: _Case) -> tuple[Entry, str | None]:
    """Spark's stored schema, and the partition columns in it where the entry has such columns for Hive, too."""
    schema = stored_schema(case.seen)
    if schema is None:
        return entry, None
    by = case.seen.partition_columns if entry.partition_columns else ()
    parts = {PARTITION_COLUMNS: str(len(by))} if by else {}
    parts |= {f"{PARTITION_COLUMN}{index}": name for index, name in enumerate(by)}
    stored = long_value(entry.parameters, SCHEMA)
    present = {key: value for key, value in entry.parameters.items() if _is_partitioning(key)}
    if stored is not None and same_schema(stored, schema) and present == parts:
        return entry, None
    kept = {key: value for key, value in entry.parameters.items() if not _is_partitioning(key)}
    words = "The metastore's copy of the schema, which Spark shows to JDBC clients, is not the table's."
    return replace(entry, parameters=with_long_value(kept, SCHEMA, schema) | parts), words


def _comment(entry: Entry, case: _Case) -> tuple[Entry, str | None]:
    said = case.seen.description
    if said is None or entry.parameters.get(_COMMENT) == said:
        return entry, None
    changed = replace(entry, parameters={**entry.parameters, _COMMENT: said})
    return changed, "The table's comment in the metastore is not the one in its log."


def _identity(entry: Entry, case: _Case) -> tuple[Entry, str | None]:
    says = entry.parameters.get(INSTALLATION)
    if foreign_owner(entry, case.installation) is not None:
        return entry, None
    if entry.parameters.get(TABLE_ID) != case.table_id:
        changed = replace(entry, parameters={**entry.parameters, TABLE_ID: case.table_id})
        return changed, "The metastore does not say which managed table this is."
    nameless = is_system_entry(entry) and case.installation is not None and says is None
    return entry, "The metastore does not say of which installation this is." if nameless else None


def _statistics(entry: Entry, case: _Case) -> tuple[Entry, str | None]:
    recorded, seen = recorded_in(entry.parameters), case.seen
    if recorded is None:
        return entry, None
    why = misleads(recorded, total_bytes=seen.bytes, rows=seen.rows, allowed_share=case.stale_share)
    return replace(entry, parameters=without_statistics(entry.parameters)), why


_STEPS: Final[Mapping[Aspect, Callable[[Entry, _Case], tuple[Entry, str | None]]]] = {
    Aspect.LOCATION: _location,
    Aspect.PROVIDER: _provider,
    Aspect.STORAGE: _storage,
    Aspect.COLUMNS: _columns,
    Aspect.SCHEMA: _schema,
    Aspect.COMMENT: _comment,
    Aspect.IDENTITY: _identity,
    Aspect.STATISTICS: _statistics,
}


def _is_partitioning(key: str) -> bool:
    return key == PARTITION_COLUMNS or key.startswith(PARTITION_COLUMN)


def _comparable(columns: tuple[EntryColumn, ...]) -> tuple[tuple[str, str, str], ...]:
    return tuple((column.name.lower(), column.type.lower(), column.comment or "") for column in columns)


def _columns_sentence(before: tuple[EntryColumn, ...], after: tuple[EntryColumn, ...]) -> str:
    old, new = {column.name.lower(): column for column in before}, {column.name: column for column in after}
    missing = [name for name in new if name not in old]
    extra = [name for name in old if name not in new]
    other = [
        f"{name} is {old[name].type} there and {new[name].type} in the table"
        for name in new
        if name in old and old[name].type.lower() != new[name].type.lower()
    ]
    parts = [
        f"lack {_few(missing)}" if missing else "",
        f"have {_few(extra)}, which the table has not" if extra else "",
        f"differ in type: {_few(other)}" if other else "",
    ]
    said = "; they ".join(part for part in parts if part)
    return f"The metastore's columns {said or 'differ from the table in order or comments'}."


def _few(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _shortened(comment: str | None) -> str | None:
    if comment is None or len(comment) <= _LONGEST_COMMENT:
        return comment or None
    return comment[: _LONGEST_COMMENT - 1] + "…"
