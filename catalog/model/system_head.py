"""The head of a system table, as a database remembers it."""

from dataclasses import dataclass

__all__ = ["SystemHead"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemHead:
    """A version of a system table, and what tells its commit from any other one of that version."""

    version: int
    digest: str
