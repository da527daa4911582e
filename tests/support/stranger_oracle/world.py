"""What a world of tables is: its commits, in order, and what each had read. Nothing of it is told by the product."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

__all__ = ["Commit", "Kind", "Read", "World"]


class Kind(StrEnum):
    """What a commit does to the rows that were there before it."""

    APPEND = auto()
    CHANGE = auto()  # merge, update, delete, partial overwrite: made from what was there
    OVERWRITE = auto()  # overwrite and replace: what was there is gone
    UPKEEP = auto()  # OPTIMIZE: the same rows, in other files
    PROPERTY = auto()
    COLUMNS = auto()  # the same rows, other columns
    RESTORE = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """A version of a table that was read; with `after`, only the changes after it."""

    table: str
    version: int
    after: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """One version of a table. `told`: a record says all that was read; otherwise `reads` has what is known of it.

    `own`: the writer read the table itself. `back_to`: where a RESTORE went.
    """

    kind: Kind
    told: bool = True
    reads: tuple[Read, ...] = ()
    own: bool = False
    paths: frozenset[str] = frozenset()  # the files it added
    live: frozenset[str] = frozenset()  # the files that the table has at this version
    moved: bool = True  # whether it added or removed a file
    back_to: int = 0
    anew: bool = False  # CREATE OR REPLACE: its columns are its own
    run: str = ""

    @property
    def makes_rows(self) -> bool:
        """Whether it is a content commit: operations decide, not how many rows came of them."""
        return self.kind in (Kind.APPEND, Kind.CHANGE, Kind.OVERWRITE)


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """All tables with their commits, version by version; who depends on whom by its owner's word."""

    tables: Mapping[str, tuple[Commit, ...]]
    depends: Mapping[str, Mapping[str, str]]  # table -> upstream -> on_rollback
    clean: frozenset[tuple[str, int]] = frozenset()  # marks
    bad: frozenset[tuple[str, int]] = frozenset()
