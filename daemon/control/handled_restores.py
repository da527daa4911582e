"""Which RESTOREs, and which moves of a head by hand, were handled: `lakewarden.audit` has an entry for each. Pure.

A RESTORE is a commit, so that it is one of its kind in its log; where an older log was put back and written on, the
same number may be that of another one. A move is told by the versions that it left behind alone, and the
same ones are left again where head came back to them meanwhile. So that they are no longer left is an entry, too, and
what comes after it is another move. Where head came back to some of them only, the rest is handled as it was: each part
gets an entry of its own before that.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from lakewarden.catalog.lineage.restores import RestoreCommit
from lakewarden.catalog.model.rollbacks import Undone

__all__ = ["ENTRY", "HandledRestores"]

ENTRY: Final = "restored-"
"""How the ids of these entries begin."""
_LEFT: Final = "-left-"
_BACK: Final = "-back"
_LOG: Final = "-log-"
_NUMBER: Final = re.compile(r"-again-\d+$")


@dataclass(slots=True)
class HandledRestores:
    """The entries that are there."""

    _ids: set[str] = field(default_factory=set)
    _moves: set[str] = field(default_factory=set)
    """What the ids of moves have in common, however often a move was made."""
    _returns: Counter[str] = field(default_factory=Counter)
    """By that, how often head came back."""

    def add(self, ids: Iterable[str]) -> None:
        """Learn of entries."""
        for one in ids:
            if one in self._ids:
                continue
            self._ids.add(one)
            if _LEFT in one:
                move = _NUMBER.sub("", one.removesuffix(_BACK))
                self._moves.add(move)
                self._returns[move] += one.endswith(_BACK)

    def has(self, one: RestoreCommit | Undone) -> bool:
        """Whether it was handled."""
        return self.entry(one) in self._ids

    def entry(self, one: RestoreCommit | Undone) -> str:
        """The id of the entry that says so."""
        if isinstance(one, RestoreCommit):
            again = f"{_LOG}{one.log}" if one.log else ""
            return f"{ENTRY}{one.table_id}-{one.version}-{one.format_id}{again}"
        return self._numbered(_move(one))

    def parts(self, left: Iterable[Undone]) -> Mapping[str, tuple[Undone, ...]]:
        """By `table_id`, what is left still of moves that were handled and are no longer left as a whole: without an
        entry of its own as yet."""
        told = tuple(left)
        now, found = set(map(_move, told)), dict[str, tuple[Undone, ...]]()
        split = [move for move in self._moves - now if self._numbered(move) in self._ids]
        for one in told:
            if not self.has(one) and any(_is_part(one, move) for move in split):
                found[one.table_id] = (*found.get(one.table_id, ()), one)
        return found

    def returned(self, left: Iterable[Undone]) -> Mapping[str, tuple[str, ...]]:
        """By `table_id`, the ids of the entries that are still to be written of moves that were handled, and whose
        versions are not left behind any more, or not all of them; `left` are those that are."""
        now, found = set(map(_move, left)), dict[str, tuple[str, ...]]()
        for move in sorted(self._moves - now):
            last = self._numbered(move)
            if last in self._ids:
                table_id = move.rpartition(_LEFT)[0].removeprefix(ENTRY)
                found[table_id] = (*found.get(table_id, ()), f"{last}{_BACK}")
        return found

    def _numbered(self, move: str) -> str:
        number = self._returns[move]
        return f"{move}-again-{number}" if number else move


def _move(one: Undone) -> str:
    return f"{ENTRY}{one.table_id}{_LEFT}{one.first}-{one.last}-{one.format_id}"


def _is_part(one: Undone, move: str) -> bool:
    """Whether versions are some of those that a move left behind."""
    known, _, told = move.rpartition(_LEFT)
    first, last, format_id = told.split("-", 2)
    same = known == f"{ENTRY}{one.table_id}" and format_id == str(one.format_id)
    return same and int(first) <= one.first and one.last <= int(last)
