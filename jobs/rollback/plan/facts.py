"""What a rollback plan has to know of each table beside the version graph. Pure values.

Some facts can only be gathered once a first plan has named the target: whether all of its files are there, the
properties that a rewind would change, and the appends that still have all their files. So a plan is made twice: once to
learn what to look at (`TablePlan.to_version`, `TablePlan.appends`), once with the answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakewarden.catalog.model.rows import Dependency

__all__ = ["PropertyChange", "TableFacts", "Unreachable", "VersionObstacle"]


class VersionObstacle(StrEnum):
    """Why a version cannot be restored."""

    UNREADABLE = "unreadable"
    EXPIRED = "expired"
    MISSING_FILES = "missing_files"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unreachable:
    """A version that cannot be restored, and the sentence that says why."""

    why: VersionObstacle
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PropertyChange:
    """A table property that the rewind would change; None where it is not set."""

    key: str
    head: str | None
    target: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableFacts:
    """One managed table."""

    table_id: str
    name: str
    location: str
    format_id: str | None = None
    """The UUID that its head has."""
    head: str | None = None
    """The state of head, which tells it from an equal version of another table (catalog/formats/heads.py)."""
    dependencies: tuple[Dependency, ...] = ()
    append_only: bool = False
    system: bool = False
    """The table is one of lakewarden's own."""
    hold: str | None = None
    """The reason, None if there is none."""
    paused: str | None = None
    """Likewise."""
    gone: bool = False
    """The table is dropped and has no log."""
    aside: bool = False
    """A rollback quarantined it, nobody works on it."""
    unreadable: str | None = None
    """Why its log cannot be used, None if it can."""
    may_read: frozenset[str] = frozenset()
    """The tables that its unreadable commits may have read; empty if its log can be read."""
    stays_out: str | None = None
    """Why nothing can be committed to it from here."""
    unreachable: Mapping[int, Unreachable] = field(default_factory=dict)
    """By version."""
    intact: frozenset[int] = frozenset()
    """Commits that added files, all of which head still has, and all of their rows."""
    thinned: frozenset[int] = frozenset()
    """Commits that added files, all of which head still has, but perhaps not all of their rows."""
    fitting: frozenset[int] = frozenset()
    """The intact appends whose files fit the columns of the target version."""
    properties: tuple[PropertyChange, ...] = ()
    consumers: tuple[str, ...] = ()
    """Readers outside management."""
