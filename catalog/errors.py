"""The one error tree. Every error is one sentence for a person, with a hint and an exit code.

LakewardenError
├── UsageError              exit 2  the command or statement itself makes no sense
├── RefusedError            exit 5  it cannot be a managed table, or it is not allowed
│   └── NotAllowedError     exit 5  the caller may not do this
│       └── ClosedTableError exit 5 the caller may not read this table
├── PreconditionError       exit 4  the world is not as the caller expected, or consent is missing
│   │                               (a table that was dropped: `tables undrop` takes it back)
│   ├── ConflictError       exit 4  somebody else committed first; looking again may help
│   │   └── RevokedError    exit 4  what allowed it is no longer so: a hold, a pause, a longer retention
│   └── ConsentError        exit 4  possible, but an owner or admin has to agree
├── NotFoundError           exit 1  no such managed table, run or version
├── FencedError             exit 1  another daemon leads; this one has to step down
│   └── OutdatedError       exit 1  a newer lakewarden has upgraded the system tables
├── UnfinishedError         exit 3  it goes on; only waiting for it was given up
├── UnrecordedError         exit 3  it was done, and `lakewarden.audit` does not say so
├── CancelledError          exit 1  who asked for it has cancelled it, and it was taken back or never done
├── UnavailableError        exit 1  a component does not answer; retrying later may help
│   ├── AccessDeniedError   exit 1  that component is a storage, which answers that the key may not
│   ├── MetastoreAwayError  exit 1  that component is the Hive metastore
│   └── CatalogAwayError    exit 1  that component is a catalog that the settings declare
│       └── EntryAwayError  exit 1  it answers, but not of this one table or namespace
├── UnreadableError         exit 1  bytes that should describe a table do not
└── ExecutionError          exit 1  an action failed on the engine
"""

from enum import IntEnum
from typing import ClassVar

__all__ = [
    "AccessDeniedError",
    "CancelledError",
    "CatalogAwayError",
    "ClosedTableError",
    "ConflictError",
    "ConsentError",
    "EntryAwayError",
    "ExecutionError",
    "ExitCode",
    "FencedError",
    "LakewardenError",
    "MetastoreAwayError",
    "NotAllowedError",
    "NotFoundError",
    "OutdatedError",
    "PreconditionError",
    "RefusedError",
    "RevokedError",
    "UnavailableError",
    "UnfinishedError",
    "UnreadableError",
    "UnrecordedError",
    "UsageError",
]


class ExitCode(IntEnum):
    """What a process returns: a contract, documented in docs/reference/cli.md."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PARTLY = 3
    PRECONDITION = 4
    REFUSED = 5


class LakewardenError(Exception):
    """The root: a sentence (`str(error)`), what the operator can do, whether a retry makes sense."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    retry: ClassVar[bool] = False
    hint: str = ""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        if hint is not None:
            self.hint = hint

    @property
    def in_full(self) -> str:
        """The sentence and the hint, for where one line has to say both."""
        return f"{self} {self.hint}".rstrip()


class UsageError(LakewardenError):
    """The command, statement or setting itself makes no sense."""

    exit_code = ExitCode.USAGE


class RefusedError(LakewardenError):
    """The thing asked for cannot be done to this table, now or later."""

    exit_code = ExitCode.REFUSED


class NotAllowedError(RefusedError):
    """The caller's role does not cover this, or a rule for everybody forbids it."""


class ClosedTableError(NotAllowedError):
    """A table that the caller may not read; `table` is its name."""

    def __init__(self, message: str, *, table: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.table = table


class PreconditionError(LakewardenError):
    """The world differs from what the caller expected. What was done before that came out, the message says."""

    exit_code = ExitCode.PRECONDITION


class ConflictError(PreconditionError):
    """Somebody else committed first; looking again may help."""

    retry = True
    hint = "Look again and repeat the command if it still makes sense."


class RevokedError(ConflictError):
    """The conditions of the decision no longer hold; what was not done yet is left undone."""

    retry = False
    hint = "Nothing has to be done: what is still wanted is planned anew."


class ConsentError(PreconditionError):
    """Possible, but someone has to agree first. `ways` are the ways to agree to all of it, each what is written after
    `--consent` (`collateral=db.t@7`); empty where the hint says all there is."""

    def __init__(
        self, message: str, *, hint: str | None = None, ways: tuple[tuple[str, ...], ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.ways = ways


class NotFoundError(LakewardenError):
    """No such managed table, run or version."""

    unknown: str | None = None
    """The name of a table that nobody knows, where it is that."""

    def __init__(self, message: str, *, hint: str | None = None, unknown: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.unknown = unknown


class FencedError(LakewardenError):
    """A newer leader has committed; this daemon has to step down."""

    hint = "Another daemon leads now. This one stops writing; nothing has to be done."


class OutdatedError(FencedError):
    """The system tables have a newer schema than this lakewarden knows; a daemon steps down."""

    hint = "Install the newer lakewarden that upgraded the system tables."


class UnfinishedError(LakewardenError):
    """Waiting for something was given up, as the caller wished; it is neither done nor undone."""

    exit_code = ExitCode.PARTLY


class UnrecordedError(LakewardenError):
    """The call was carried out, and its entry of `lakewarden.audit` could be neither written nor kept for later."""

    exit_code = ExitCode.PARTLY
    hint = (
        "Do not repeat it. Note who did it and when, and make room or mend the storage of the system tables."
    )


class CancelledError(LakewardenError):
    """The work was cancelled by the person who had ordered it. Nothing of it was done, or it was taken back."""


class UnavailableError(LakewardenError):
    """A component does not answer."""

    retry = True


class AccessDeniedError(UnavailableError):
    """A storage denies access: the key or the ticket is unknown, expired, or not allowed to. It says nothing of what is
    there."""

    hint = "Check the key or the Kerberos ticket, and what it allows. Keys in files are read again."


class MetastoreAwayError(UnavailableError):
    """The Hive metastore does not answer at all: whoever asks it meets the same outage."""


class CatalogAwayError(UnavailableError):
    """A catalog of tables does not answer: whoever asks it meets the same outage."""


class EntryAwayError(CatalogAwayError):
    """A catalog of tables answers, but not of one table or namespace. It says nothing of the others."""


class UnreadableError(LakewardenError):
    """The log or a file that should describe a table cannot be understood."""


class ExecutionError(LakewardenError):
    """An action failed on the engine."""
