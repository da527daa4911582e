"""What a table format says of itself, once: its name, its reader, how its tables are known."""

from collections.abc import Callable
from dataclasses import dataclass

from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.policy.retention_properties import NO_PROPERTIES, RetentionProperties
from lakewarden.catalog.storage.credentials import StorageOptions

__all__ = ["FormatSpec", "Sign", "StorageOf"]

StorageOf = Callable[[str], StorageOptions]
"""Credentials and endpoints for a location."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    """A folder that a format keeps beside its tables' data. `endings`: it says something only with a file in it
    whose name ends like this."""

    folder: str
    endings: tuple[str, ...] = ()

    def is_seen(self, folder: str, below: list[str]) -> bool:
        """Whether a path through `folder`, and what follows it in the path, shows the sign."""
        if folder != self.folder:
            return False
        return not self.endings or (len(below) == 1 and below[0].endswith(self.endings))


@dataclass(frozen=True, kw_only=True, slots=True)
class FormatSpec:
    """One table format. `label` is its name for people; `sign` the folder by which its tables are known, which holds
    its metadata and nothing else; `kept` begins the paths of what it keeps in a table's folder besides.
    `retention` are the properties by which its tables keep what a policy promises. `provider` is what Spark calls it in
    a Hive metastore's entry; without one, entries of its tables are its own engine's: neither checked nor written."""

    name: str
    label: str
    reader: Callable[[StorageOf], TableReader]
    sign: Sign
    kept: tuple[str, ...] = ()
    retention: RetentionProperties = NO_PROPERTIES
    provider: str | None = None
