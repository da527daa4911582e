"""What an executor tells of a run that went well. Pure."""

from dataclasses import dataclass

__all__ = ["Report"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """How an executor ended when nothing went wrong."""

    message: str
    skipped: bool = False
    """There was nothing to do; `message` says why."""
    committed_version: int | None = None
    files: int | None = None
    bytes: int | None = None
    details: str | None = None
    """Compact JSON for `jobs show` (counts, per-partition results)."""
