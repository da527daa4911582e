"""Why metadata cannot be used: one exception inside this package, one value outside."""

from collections.abc import Callable

from lakewarden.catalog.formats.broken_tables import BrokenTableError
from lakewarden.catalog.formats.port import LogProblem

__all__ = [
    "EXISTS",
    "HISTORY",
    "MISSING",
    "OBSERVED_ONLY",
    "PROTOCOL",
    "UNREADABLE",
    "BrokenMetadataError",
    "LeftByEntryError",
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


class LeftByEntryError(BrokenMetadataError):
    """The entry of a catalog that kept a table's head is gone, or is another table's.

    Which entry has the table's folder now takes a dear question: it is asked by whoever wants the problem, not by
    every probe.
    """

    def __init__(self, message: str, others: Callable[[], tuple[str, ...]]) -> None:
        super().__init__(EXISTS, message)
        self._others = others

    @property
    def problem(self) -> LogProblem:
        """The same as a value, with the other entry that names a file in the table's folder. Raises
        `UnavailableError`."""
        others = self._others()
        now = f" Its folder is that of {others[0]} now." if len(others) == 1 else ""
        return LogProblem(check=self.check, message=f"{self}{now}")


def missing(path: str, *, named_by: str) -> BrokenMetadataError:
    """A file that another one names is not there."""
    return BrokenMetadataError(MISSING, f"{path} is missing, which {named_by} names.")


def not_understood(path: str) -> BrokenMetadataError:
    """A file is not what its place says."""
    return BrokenMetadataError(UNREADABLE, f"{path} cannot be understood.")
