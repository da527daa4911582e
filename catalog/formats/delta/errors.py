"""Why a log cannot be used: one exception inside this package, one value outside."""

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.formats.broken_tables import BrokenTableError

__all__ = [
    "CHECKSUM",
    "EXISTS",
    "HISTORY",
    "LAST_CHECKPOINT",
    "LOG_CONTIGUOUS",
    "LOG_READABLE",
    "PROTOCOL",
    "BrokenLogError",
    "VanishedError",
]

EXISTS = "exists"
LOG_CONTIGUOUS = "log_contiguous"
LOG_READABLE = "log_readable"
PROTOCOL = "protocol_supported"
HISTORY = "history_complete"
CHECKSUM = "checksum_agrees"
LAST_CHECKPOINT = "last_checkpoint"


class BrokenLogError(BrokenTableError):
    """The log."""


class VanishedError(UnavailableError):
    """A file that was just listed is gone: somebody cleaned the log or removed the table. Listing again tells."""

    hint = "Retry; if it goes on, look who deletes files of this log."
