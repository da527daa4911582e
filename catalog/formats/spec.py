"""What a table format says of itself, once: its name, its reader, how its tables are known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.stream_sources import StreamSource
from lakewarden.catalog.formats.stream_ways import StreamWays
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.policy.retention_properties import NO_PROPERTIES, RetentionProperties
from lakewarden.catalog.storage.credentials import StorageOptions

__all__ = ["CatalogHead", "FormatSpec", "HeadOf", "Sign", "StorageOf"]

StorageOf = Callable[[str], StorageOptions]
"""Credentials and endpoints for a location."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogHead:
    """What a catalog says of a table."""

    entry: str
    file: str | None
    """The file that it calls head, None where its entry is gone."""
    catalog: str | None = None
    """The name of a declared catalog; None: the Hive metastore."""
    format_id: str | None = field(default=None, compare=False)
    """The UUID of the table that is managed by this entry, as far as it is on record."""
    others: Callable[[], tuple[str, ...]] = field(default=tuple, compare=False, repr=False)
    """Asks for the other entries that name a file in the table's folder, as far as its catalog tells. Raises
    `UnavailableError`."""

    @property
    def keeper(self) -> str:
        """The catalog, in a sentence."""
        return "the metastore" if self.catalog is None else f"the catalog {self.catalog}"


HeadOf = Callable[[str], CatalogHead | None]
"""Asks the catalog that keeps the head of the table at a location; None where the table's folder tells it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    """A folder that a format keeps beside its tables' data."""

    folder: str
    endings: tuple[str, ...] = ()
    """If there are any: the folder says something only with a file in it whose name ends like this."""

    def is_seen(self, folder: str, below: list[str]) -> bool:
        """Whether a path through `folder`, and what follows it in the path, shows the sign."""
        if folder != self.folder:
            return False
        return not self.endings or (len(below) == 1 and below[0].endswith(self.endings))


@dataclass(frozen=True, kw_only=True, slots=True)
class FormatSpec:
    """One table format."""

    name: str
    label: str
    """Its name for people."""
    reader: Callable[[StorageOf], TableReader]
    catalogued: Callable[[StorageOf, HeadOf], TableReader] | None = None
    """Makes a reader that can ask catalogs for heads; None where all tables tell them."""
    sign: Sign
    """The folder by which its tables are known. It holds metadata and nothing else."""
    kept: tuple[str, ...] = ()
    """Beginnings of the paths of what the format keeps in a table's folder besides."""
    mirrored_by: tuple[str, ...] = ()
    """Properties that list the other formats (`iceberg,hudi`) whose metadata a table's own engine keeps beside it, for
    the same rows."""
    upkeep: tuple[Action, ...] = (Action.LOG_CARE,)
    """How its own metadata is cared for: the actions that not every format has."""
    retention: RetentionProperties = NO_PROPERTIES
    """The properties by which its tables keep what a policy promises."""
    forgetting: frozenset[str] = frozenset()
    """Other table properties that say how long something is kept, and are not ours to set: in small letters."""
    moving: frozenset[str] = frozenset()
    """Table properties by which an engine puts a table to another version, or an entry of a catalog to other
    metadata: in small letters."""
    versions_kept: Callable[[Mapping[str, str]], float | None] = lambda properties: 0.0
    """The seconds for which a table's versions stay by properties that are its owner's, and not ours to set; None where
    one of them makes no sense."""
    keeps_statistics: bool = False
    """Whether its tables keep statistics of their columns themselves; else the metastore's entry does."""
    located: Callable[[StorageOf, str], str] | None = None
    """Where the table lies whose head is the metadata file that a catalog names; None where catalogs name none."""
    told_by_folder: Callable[[StorageOf, str], bool] = lambda storage, location: True
    """Whether the folder of a table tells its head itself, whatever catalogs say. Raises `UnavailableError`."""
    commits_tell_properties: bool = True
    """Whether a commit says that properties changed with it; else they change beside commits, and its engine's restore
    leaves those alone that outlive it."""
    has_branches: bool = False
    """Whether versions may lie beside one another, and head be set to any of them without a commit: then numbers tell
    which of two was made first and nothing else, and what is not in head's line may expire before what is older."""
    stream_source: StreamSource | None = None
    """What streams' offsets in its tables mean; None where no stream reads them."""
    stream_ways: StreamWays | None = None
    """How streams that read its tables go on after a rollback; None likewise."""
    provider: str | None = None
    """What Spark calls it in a Hive metastore's entry. Without one, entries of its tables are its own engine's:
    neither checked nor written."""
