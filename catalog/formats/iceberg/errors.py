"""Why metadata cannot be used: one exception inside this package, one value outside."""

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.port import LogProblem

__all__ = [
    "EXISTS",
    "HISTORY",
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


class BrokenMetadataError(UnreadableError):
    """The metadata fails the documented check named `check`; `str(error)` is the sentence."""

    hint = "`lakewarden tables validate` names the check; docs/reference/checks.md says what can be done."

    def __init__(self, check: str, message: str) -> None:
        super().__init__(message)
        self.check = check

    @property
    def problem(self) -> LogProblem:
        """The same as a value."""
        return LogProblem(check=self.check, message=str(self))


def missing(path: str, *, named_by: str) -> BrokenMetadataError:
    """A file that another one names is not there."""
    return BrokenMetadataError(MISSING, f"{path} is missing, which {named_by} names.")


def not_understood(path: str) -> BrokenMetadataError:
    """A file is not what its place says."""
    return BrokenMetadataError(UNREADABLE, f"{path} cannot be understood.")
