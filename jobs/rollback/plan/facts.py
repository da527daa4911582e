"""What a rollback plan has to know of each table beside the version graph. Pure values.

Some facts can only be gathered once a first plan has named the target: whether its files are all there, which
properties a rewind would change, which appends still have all their files. So a plan is made twice: once to learn what
to look at (`TablePlan.to_version`, `TablePlan.appends`), once with the answers.
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
    """One managed table. `format_id`: the UUID that its head has. `hold` and `paused` carry the reason, None means
    neither; `gone`: dropped, there is no log.

    `system`: it is one of lakewarden's own. `aside`: a rollback quarantined it, nobody works on it. `unreadable` says
    why its log cannot be used, None if it can; `may_read` are then the tables that commits which nobody can read may
    have read. `unreachable` by version. `stays_out` is the sentence that says why nothing can be committed to it
    from here. `intact` are
    commits that added files, all of which head still has; `fitting` those of them whose files fit the columns of the
    version that the table goes back to. `consumers` are readers outside management.
    """

    table_id: str
    name: str
    location: str
    format_id: str | None = None
    dependencies: tuple[Dependency, ...] = ()
    append_only: bool = False
    system: bool = False
    hold: str | None = None
    paused: str | None = None
    gone: bool = False
    aside: bool = False
    unreadable: str | None = None
    may_read: frozenset[str] = frozenset()
    stays_out: str | None = None
    unreachable: Mapping[int, Unreachable] = field(default_factory=dict)
    intact: frozenset[int] = frozenset()
    fitting: frozenset[int] = frozenset()
    properties: tuple[PropertyChange, ...] = ()
    consumers: tuple[str, ...] = ()
