"""What `_last_checkpoint` says: where readers may start. Those that trust it refuse a table without what it names."""

import json

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.delta.errors import LAST_CHECKPOINT, VanishedError
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.log_names import HINT
from lakewarden.catalog.formats.delta.segment import LogListing
from lakewarden.catalog.formats.port import LogProblem

__all__ = ["hinted_version", "lost_checkpoint"]


def hinted_version(content: bytes) -> int | None:
    """The version that a hint names; None for one that makes no sense, which readers pass over."""
    try:
        return int(json.loads(content)["version"])
    except (ValueError, KeyError, TypeError):
        return None


def lost_checkpoint(log: DeltaLog, listing: LogListing) -> LogProblem | None:
    """The problem of a hint that names a checkpoint when neither that one nor a later one exists."""
    if listing.hint is None:
        return None
    try:
        named = hinted_version(log.text(listing.hint, listing))
    except (UnreadableError, VanishedError):
        return None  # no hint, to every reader
    newest = max((one.version for one in listing.checkpoints), default=-1)
    if named is None or named <= newest:
        return None
    return LogProblem(
        check=LAST_CHECKPOINT,
        message=f"{HINT} names a checkpoint of version {named}, and there is none of it or of a later one: "
        "readers that trust it, such as delta-rs, cannot open the table.",
    )
