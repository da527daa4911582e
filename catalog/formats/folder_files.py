"""Which files of a folder are a table's. Pure."""

from dataclasses import dataclass

__all__ = ["OwnFiles"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnFiles:
    """The files in a table's folder that are the table's by its log (relative paths)."""

    data: frozenset[str]
    log: tuple[str, ...]
    """Those of the log itself, head's last: in this order a deletion takes them away."""
