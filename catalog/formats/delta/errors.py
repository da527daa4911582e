"""Why a log cannot be used: one exception inside this package, one value outside."""

from lakewarden.catalog.errors import UnavailableError, UnreadableError
from lakewarden.catalog.formats.port import LogProblem

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


class BrokenLogError(UnreadableError):
    """The log fails the documented check named `check`; `str(error)` is the sentence."""

    hint = "`lakewarden tables validate` names the check; docs/reference/checks.md says what can be done."

    def __init__(self, check: str, message: str) -> None:
        super().__init__(message)
        self.check = check

    @property
    def problem(self) -> LogProblem:
        """The same as a value."""
        return LogProblem(check=self.check, message=str(self))


class VanishedError(UnavailableError):
    """A file that was just listed is gone: somebody cleaned the log or removed the table. Listing again tells."""

    hint = "Retry; if it goes on, look who deletes files of this log."
