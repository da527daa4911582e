"""Files by the texts that engines name them with."""

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.storage.file_store import from_hadoop
from lakewarden.catalog.storage.place import Moment

__all__ = ["lies_in"]


def lies_in(named: str, location: str, now: Moment) -> bool:
    """Whether a file, by Hadoop's text for its path, may lie below a canonical location, as both are resolved `now`: on
    storages of which two names may mean one (HDFS), only the path counts. What is no place lies nowhere."""
    try:
        return now.place(from_hadoop(named)).is_within(now.place(location))
    except UsageError:
        return False
