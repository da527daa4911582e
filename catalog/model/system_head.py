"""The head of a system table, as a database remembers it."""

from dataclasses import dataclass
from typing import Final

__all__ = ["DIGITS", "SystemHead"]

DIGITS: Final = 15
"""Hexadecimal digits of a commit's digest that are kept: they fit into a number of 64 bits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemHead:
    """A version of a system table, and what tells its commit from any other one of that version."""

    version: int
    digest: str
