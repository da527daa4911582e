"""Why a table cannot be used: one exception for readers of any format, one value outside of them."""

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.port import LogProblem

__all__ = ["BrokenTableError"]


class BrokenTableError(UnreadableError):
    """What tells of the table fails the documented check named `check`; `str(error)` is the sentence."""

    hint = "`lakewarden tables validate` names the check; docs/reference/checks.md says what can be done."

    def __init__(self, check: str, message: str) -> None:
        super().__init__(message)
        self.check = check

    @property
    def problem(self) -> LogProblem:
        """The same as a value."""
        return LogProblem(check=self.check, message=str(self))
