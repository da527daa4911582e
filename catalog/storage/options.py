"""Which storage options apply where: by the longest configured prefix. Pure."""

from dataclasses import dataclass

from lakewarden.catalog.storage.file_store import StorageOptions, is_inside

__all__ = ["StorageMap"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StorageMap:
    """Options by canonical location; each holds for everything at or below its own."""

    prefixes: tuple[tuple[str, StorageOptions], ...] = ()

    def at(self, location: str) -> StorageOptions:
        """The options of a canonical location; none where no prefix covers it."""
        over = [pair for pair in self.prefixes if pair[0] == location or is_inside(location, pair[0])]
        return max(over, key=lambda pair: len(pair[0]))[1] if over else StorageOptions()
