"""Actions: one unit of work on one table, with its reason and the version it was decided on. Pure values.

A closed union: adding a case makes mypy list every place that has to know it. `encode` and `decode` are the queue's
payload format (JSON, tagged by `kind`), so a plan, a dry run and a worker read the same value. `requires` is the version
that an action was decided on, `decided_on` what tells it from one of the same number (catalog/formats/heads.py; None: not known).
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

__all__ = [
    "AnyAction",
    "Compact",
    "Convert",
    "LogCare",
    "Purge",
    "RefreshStatistics",
    "RollBack",
    "SetProperties",
    "SyncMetastore",
    "Vacuum",
    "decode",
    "encode",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Convert:
    """Turn a Parquet directory or metastore table into a Delta table in place.

    `name` is `db.t` when the metastore knows it, else None with only `location`. `partitioned_by` are (column, type)
    pairs. `properties` are set after the conversion, together, as `SetProperties` sets them.
    """

    kind: Literal["convert"] = "convert"
    name: str | None
    location: str
    partitioned_by: tuple[tuple[str, str], ...] = ()
    statistics: bool = True
    properties: tuple[tuple[str, str], ...] = ()
    lowers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Vacuum:
    """Delete files no protected version can reach. `full` lists the directory, else only the log is asked.

    `retention_seconds` is the effective retention (policy, promise, floors). `max_share` is the size breaker,
    `consented` that an owner or admin agreed to go beyond it. `excluded` are locations of other managed tables
    (canonical URIs) that must never be entered. `held_by` says whose promise made the retention longer, if not its own.
    """

    kind: Literal["vacuum"] = "vacuum"
    requires: int
    decided_on: str | None = None
    retention_seconds: int
    full: bool = False
    max_share: float = 0.5
    consented: bool = False
    dry_run: bool = False
    excluded: tuple[str, ...] = ()
    held_by: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Compact:
    """Rewrite small files of cold partitions to about `target_bytes`; purge deletion vectors where `purge`.

    A partition is cold when nobody wrote to it for `quiet_seconds`. `requires` or a later head will do: files and partitions
    are chosen on the head that the run finds. `beside_writers`: it may commit behind commits that came while it ran.
    """

    kind: Literal["compact"] = "compact"
    requires: int
    decided_on: str | None = None
    target_bytes: int
    min_small_files: int
    quiet_seconds: int
    beside_writers: bool = False
    purge: bool = False
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshStatistics:
    """Fill missing per-file statistics and refresh table and column statistics in the metastore entry `name`."""

    kind: Literal["statistics"] = "statistics"
    requires: int
    decided_on: str | None = None
    name: str | None
    fill_files: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class LogCare:
    """Write a checkpoint at `requires` and, if `clean_before_version` is set, remove log entries older than it that
    no commit younger than `retention_seconds` (policy and promise) needs to be undone."""

    kind: Literal["log_care"] = "log_care"
    requires: int
    decided_on: str | None = None
    retention_seconds: int
    checkpoint: bool = True
    clean_before_version: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SetProperties:
    """Set table properties in one commit on exactly version `requires`.

    A retention that the table has longer stands, unless its name is among `lowers`: then somebody asked for less.
    `gives_back`: none of that, but what stood there before us is given back to a table that leaves, on whatever is head.
    """

    kind: Literal["properties"] = "properties"
    requires: int = 0
    decided_on: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    lowers: tuple[str, ...] = ()
    gives_back: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncMetastore:
    """Make the metastore entry `name` agree with version `requires` of the table.

    Statistics in the entry that are off by more than `stale_share` (the policy's) are taken away.
    """

    kind: Literal["sync"] = "sync"
    requires: int
    decided_on: str | None = None
    name: str
    stale_share: float = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Purge:
    """Delete a dropped table's files after its grace period; `files` and `bytes` are what the dry run counted, `unknown`
    is the token of the files that its log does not name and that may go along."""

    kind: Literal["purge"] = "purge"
    requires: int
    decided_on: str | None = None
    unknown: str | None = None
    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RollBack:
    """Go on with the rollback `rollback_id`, forwards or back: its journal in `lakewarden.rollbacks` says what is next."""

    kind: Literal["rollback"] = "rollback"
    rollback_id: str


AnyAction = (
    Convert
    | Vacuum
    | Compact
    | RefreshStatistics
    | LogCare
    | SetProperties
    | SyncMetastore
    | Purge
    | RollBack
)
_ADAPTER: TypeAdapter[AnyAction] = TypeAdapter(Annotated[AnyAction, Field(discriminator="kind")])


def encode(action: AnyAction) -> str:
    """The action as the queue stores it: compact JSON."""
    return _ADAPTER.dump_json(action).decode()


def decode(payload: str) -> AnyAction:
    """The action that `encode` wrote. Raises pydantic.ValidationError for anything else."""
    return _ADAPTER.validate_json(payload)
