"""Names for versions of a table: branches and tags. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

__all__ = ["Reference", "ReferenceKind"]


class ReferenceKind(StrEnum):
    """What a name for a version does: a branch moves with the commits that are made to it, a tag stays."""

    BRANCH = "branch"
    TAG = "tag"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """A branch or a tag."""

    name: str
    kind: ReferenceKind
    version: int | None
    """What it points to; None where that has no number."""
    ends_at: datetime | None = None
    """When it goes by itself; None: it stays."""
