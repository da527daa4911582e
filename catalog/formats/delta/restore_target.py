"""The target of a RESTORE whose commit does not name it: the version with the same files. Read from the log alone."""

from lakewarden.catalog.formats.delta.actions import AddFile, Metadata, RemoveFile
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.proof.files import Key, file_key, live_files
from lakewarden.catalog.formats.delta.replay import metadata_of, version_actions
from lakewarden.catalog.formats.delta.segment import LogListing, segment_of

__all__ = ["restored_version"]


def restored_version(log: DeltaLog, listing: LogListing, version: int) -> int | None:
    """The newest version before `version` that has the same files and deletion vectors, and the same metadata if any of
    those has; None where the log has none. Raises `BrokenLogError` if `version` itself cannot be rebuilt.

    Files are written once, so versions with the same ones hold the same rows. Reads the log from its first version that
    can be rebuilt; memory grows with the table's files.
    """
    segment = segment_of(listing, location=log.location, upto=version)
    first = segment.first_version
    if first >= version:
        return None
    wanted = {file_key(add) for add in live_files(log, listing, segment)}
    sought = metadata_of(log, listing, segment)
    base = segment_of(listing, location=log.location, upto=first)
    differs = wanted.symmetric_difference({file_key(add) for add in live_files(log, listing, base)})
    metadata = metadata_of(log, listing, base)
    found = alike = None
    for one in range(first, version):
        if one > first:
            metadata = _applied(log, listing, one, wanted, differs) or metadata
        if not differs:
            found, alike = one, one if metadata == sought else alike
    return found if alike is None else alike


def _applied(
    log: DeltaLog, listing: LogListing, version: int, wanted: set[Key], differs: set[Key]
) -> Metadata | None:
    """Take a commit into `differs`, the files that only one of both versions has. Returns the metadata it set."""
    metadata = None
    for action in version_actions(log, listing, listing.commits[version]):
        if isinstance(action, Metadata):
            metadata = action
        elif isinstance(action, AddFile | RemoveFile):
            key = file_key(action)
            if isinstance(action, AddFile) is (key in wanted):
                differs.discard(key)
            else:
                differs.add(key)
    return metadata
