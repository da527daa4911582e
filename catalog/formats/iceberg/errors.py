"""Why metadata cannot be used: one exception inside this package, one value outside."""

from lakewarden.catalog.formats.broken_tables import BrokenTableError

__all__ = [
    "EXISTS",
    "HISTORY",
    "MISSING",
    "OBSERVED_ONLY",
    "PROTOCOL",
    "UNREADABLE",
    "BrokenMetadataError",
    "missing",
    "not_understood",
]

EXISTS = "exists"
MISSING = "log_contiguous"
UNREADABLE = "log_readable"
PROTOCOL = "protocol_supported"
HISTORY = "history_complete"
OBSERVED_ONLY = "features_actionable"


class BrokenMetadataError(BrokenTableError):
    """The metadata, or what it names."""


def missing(path: str, *, named_by: str) -> BrokenMetadataError:
    """A file that another one names is not there."""
    return BrokenMetadataError(MISSING, f"{path} is missing, which {named_by} names.")


def not_understood(path: str) -> BrokenMetadataError:
    """A file is not what its place says."""
    return BrokenMetadataError(UNREADABLE, f"{path} cannot be understood.")
