"""Credentials and endpoints for a storage, as a value that is handed to whatever opens files there. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["NO_OPTIONS", "StorageOptions"]


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Credentials and endpoints for one storage, as delta-rs names them. Never printed."""

    pairs: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    """Options whose values lie in files, with absolute paths. `secret_files.current` has all options, with what the
    files say now."""

    @classmethod
    def of(cls, options: Mapping[str, str], files: Mapping[str, str] | None = None) -> "StorageOptions":
        return cls(tuple(sorted(options.items())), tuple(sorted((files or {}).items())))

    @property
    def names(self) -> tuple[str, ...]:
        """The options that are set."""
        return tuple(sorted(name for name, _ in (*self.pairs, *self.files)))

    def __repr__(self) -> str:
        return f"StorageOptions({', '.join(self.names)})"


NO_OPTIONS: Final = StorageOptions()
"""For places that need none, such as a local disk."""
