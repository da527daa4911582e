"""What a listing says of one file or folder."""

from dataclasses import dataclass
from datetime import datetime

__all__ = ["FileEntry"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileEntry:
    """One entry of a listing."""

    path: str
    """Relative to the store's root."""
    size_bytes: int
    """0 for directories."""
    modified_at: datetime
    is_dir: bool = False
