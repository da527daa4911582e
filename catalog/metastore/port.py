"""The Metastore port: entries as values, changed by compare-and-set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

__all__ = [
    "DDL_TIME",
    "METADATA_FILE",
    "OUR_ENTRIES",
    "TAKEN",
    "TAKEN_FILE",
    "Entry",
    "EntryColumn",
    "Metastore",
    "Notification",
    "head_file",
    "keeps_head",
]

DDL_TIME: Final = "transient_lastDdlTime"
"""The parameter (epoch seconds) that the metastore renews whenever Spark or Hive alters an entry: what `replace` is
compared by."""

METADATA_FILE: Final = "metadata_location"
"""The parameter by which Iceberg's entries name the metadata file that is head's: a commit sets it. Iceberg's views
have it, too."""

_ICEBERG: Final = "iceberg"

_KIND: Final = "table_type"
"""The parameter by which Iceberg tells its tables from its views (`ICEBERG-VIEW`) and from what is none of its own."""

TAKEN_FILE: Final = "lakewarden.taken_from"
"""The parameter of an entry that was taken away: the metadata file that it named."""

OUR_ENTRIES: Final = "__lakewarden_"
"""What the names of entries begin with that are ours for a while, and nobody's tables."""

TAKEN: Final = ".taken"
"""What stands behind the name of that file in `METADATA_FILE` since: no commit that was made on it comes through."""


def head_file(parameters: Mapping[str, str]) -> str | None:
    """The metadata file that an entry with these parameters names; of one that was taken away, the one that it named,
    unless a commit that waited for it got through all the same. None where it is no Iceberg table's, as Iceberg itself
    tells: by its kind, in any case."""
    if parameters.get(_KIND, "").lower() != _ICEBERG:
        return None
    named, taken = parameters.get(METADATA_FILE), parameters.get(TAKEN_FILE)
    return taken if taken is not None and named == f"{taken}{TAKEN}" else named


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryColumn:
    """One column as the metastore has it: name (it keeps them in lower case), Hive type name and comment."""

    name: str
    type: str
    comment: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One metastore table."""

    database: str
    table: str
    location: str | None
    """Where the data is: for data source tables the serde property `path` where present."""
    provider: str | None
    """`spark.sql.sources.provider`; None for a plain Hive table."""
    table_type: str
    columns: tuple[EntryColumn, ...] = ()
    partition_columns: tuple[EntryColumn, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    input_format: str | None = None
    output_format: str | None = None
    serde: str | None = None
    owner: str | None = None


def keeps_head(entry: Entry) -> bool:
    """Whether the entry itself names its table's head. One with a provider of another format is that format's, whose
    writers keep such metadata beside their log for readers."""
    return (entry.provider or _ICEBERG).lower() == _ICEBERG and head_file(entry.parameters) is not None


class Notification(NamedTuple):
    """That something changed in a metastore."""

    number: int
    kind: str
    """`CREATE_TABLE`, `ALTER_TABLE`, `DROP_TABLE`, `ADD_PARTITION` and the like."""
    database: str
    table: str
    """Empty for what is about no table. Where a table was renamed, the new name: the old one is not told."""


class Metastore(Protocol):
    """A Hive metastore. Thread-safe. Every method raises `UnavailableError` while it does not answer."""

    def databases(self) -> tuple[str, ...]:
        """Names of all databases."""

    def tables(self, database: str) -> tuple[str, ...]:
        """Names of all tables and views of a database; empty when there is no such database."""

    def get(self, database: str, table: str) -> Entry | None:
        """One entry, None if there is none."""

    def metadata_files(self, database: str, tables: Sequence[str]) -> Mapping[str, str]:
        """Table -> the metadata file that its entry names (`head_file`), of those tables that are there and name
        one. One question for all of them."""

    def locations(self, database: str) -> Mapping[str, str]:
        """Table -> where its files are, as the metastore spells it, of all that have files."""

    def partitions(self, database: str, table: str) -> Mapping[str, str]:
        """Partition name (`year=2013/month=1`) -> location; empty when the entry has none."""

    def create_database(self, database: str, location: str | None = None) -> None:
        """Create a database if absent."""

    def create(self, entry: Entry) -> None:
        """Create a table entry. Raises `ConflictError` when there is one, `NotFoundError` without its database."""

    def replace(self, entry: Entry, *, expected: Entry) -> None:
        """Change the entry from `expected` (as `get` gave it) to `entry`; name, table type, owner and partition
        columns stay. Raises `ConflictError` if it is no longer `expected`, `RefusedError` if the metastore does not
        take the new one."""

    def compares(self, database: str, table: str) -> bool | None:
        """Whether the server itself compares before a `replace`, so that no change in between is overwritten: tried on
        this entry by a change that changes nothing. None: there is no such entry."""

    def drop(self, database: str, table: str) -> None:
        """Remove the entry, never the data; quietly when there is none."""

    def take_away(self, database: str, table: str, *, name: str, file: str) -> None:
        """Call an entry `name`, so that no commit to its table succeeds any more, if it still names this metadata
        file: compared and set by the server. `metadata_files` tells the file still. Raises `ConflictError` if it names
        another one, `RefusedError` where the server does not compare, or would move the table's folder."""

    def put_back(self, database: str, name: str, *, table: str, file: str) -> None:
        """Call an entry that was taken away as before. Raises `ConflictError` if it is not there, or `table` is."""

    def strict_columns(self) -> bool:
        """Whether the server refuses to change a column to an incompatible type
        (`hive.metastore.disallow.incompatible.col.type.changes`). `replace` gets around that; Spark does not."""

    def refuses_lock(self, database: str, table: str) -> str | None:
        """Why the server gives no lock on an entry, as Iceberg's commits take one; None where it gives one. A shared
        lock is taken, which keeps nobody out, and given back."""

    def notifications(self, *, after: int, limit: int) -> tuple[Notification, ...]:
        """The oldest of those with a larger number; empty where the server keeps none."""

    def newest_notification(self) -> int | None:
        """The number of the newest one, None where the server does not record each change together with the change
        itself (`hive.metastore.transactional.event.listeners`), or does not tell us."""
