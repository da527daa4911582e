"""The newest versions of a table, as its log tells them."""

from collections.abc import Sequence

from lakewarden.catalog.formats.port import Commit, TableReader

__all__ = ["newest_commits"]


def newest_commits(reader: TableReader, location: str, limit: int) -> Sequence[Commit]:
    """The last commits, oldest first. As many numbers back as commits are wanted are enough where they count up by one;
    all of the log is read where they are not."""
    head = reader.probe(location, seen=None).latest or 0
    after = max(head - limit, -1)
    found = list(reader.commits(location, after=after))
    if len(found) < limit and after >= 0:
        found = list(reader.commits(location, after=-1))
    return found[-limit:]
