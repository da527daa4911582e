"""Credentials and endpoints for a storage, as a value that is handed to whatever opens files there. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["NO_OPTIONS", "StorageOptions"]


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Credentials and endpoints for one storage, as delta-rs names them. Never printed."""

    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "StorageOptions":
        return cls(tuple(sorted(options.items())))

    def as_dict(self) -> dict[str, str]:
        """The form the libraries take."""
        return dict(self.pairs)

    def __repr__(self) -> str:
        return f"StorageOptions({', '.join(key for key, _ in self.pairs)})"


NO_OPTIONS: Final = StorageOptions()
"""For places that need none, such as a local disk."""
