"""Teradata's LOCKING ... FOR ... before a statement, which is read without it. Pure."""

import re
from typing import Final

from lakewarden.jobs.sql.compile.reading import tokens_of_any

__all__ = ["without_locks"]

_NOTE: Final = "LOCKING is left out: each table is read at one version, and written without locks."
_BEGINNINGS: Final = frozenset({"LOCKING", "LOCK"})
_NAMED: Final = 8
"""So many words are before FOR at most: LOCKING TABLE a.b.c FOR."""
_BEHIND_FOR: Final = frozenset(
    {
        "ACCESS", "CHECKSUM", "COMMITTED", "EXCL", "EXCLUSIVE", "LOAD", "MODE", "NOWAIT", "OVERRIDE", "READ", "SHARE",
        "WRITE",
    }
)  # fmt: skip


def without_locks(text: str) -> tuple[str, tuple[str, ...]]:
    """A statement with blanks in the place of its locks, and what is to be told of that."""
    tokens = tokens_of_any(text)
    words = [token.text.upper() for token in tokens]
    end = 0
    while words[end : end + 1] and words[end] in _BEGINNINGS:
        place = next((n for n in range(end, len(words)) if words[n] in ("FOR", "IN")), len(words))
        if place - end > _NAMED:
            break
        end = next((n for n in range(place + 1, len(words)) if words[n] not in _BEHIND_FOR), len(words))
    if end in (0, len(words)):
        return text, ()
    begin, statement = tokens[0].start, tokens[end].start
    return text[:begin] + re.sub(r"[^\n]", " ", text[begin:statement]) + text[statement:], (_NOTE,)
