"""Files by the texts that engines name them with."""

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.storage.file_store import from_hadoop, is_inside

__all__ = ["lies_in"]


def lies_in(named: str, location: str) -> bool:
    """Whether a file, by Hadoop's text for its path, lies below a canonical location; what is no place lies nowhere."""
    try:
        return is_inside(from_hadoop(named), location)
    except UsageError:
        return False
