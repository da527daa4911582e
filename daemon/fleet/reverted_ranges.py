"""The daemon's cache of versions reverted by rollbacks, plain RESTOREs and heads moved back by hand: ranges of
versions, and readers.

Made of what the journal, the lineage and the health on record say; nothing here is truth.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import chain

from lakewarden.catalog.lineage.left_versions import left_by
from lakewarden.catalog.lineage.restores import RestoreCommit, restored_away, still_undone
from lakewarden.catalog.lineage.rewritten_logs import ended_log
from lakewarden.catalog.model.rollbacks import Rollback, Undone, tainted_versions
from lakewarden.catalog.model.rows import HealthRow, TableRow
from lakewarden.jobs.rollback.journal.left_tainted import left_tainted

__all__ = ["RevertedRanges"]


class RevertedRanges:
    """Ranges of versions by `table_id` and by location, and the tables that may hold something of them."""

    def __init__(self) -> None:
        self.ranges: Mapping[str, tuple[Undone, ...]] = {}
        self._restores: set[RestoreCommit] = set()
        self._by_rollbacks: Mapping[str, tuple[Undone, ...]] = {}
        self._left_by: Mapping[str, tuple[Undone, ...]] = {}
        self._left: dict[str, tuple[Undone, ...]] = {}
        self._readers: set[str] = set()
        self._doubted: set[str] = set()
        self._stale = False

    def plain_restores(self) -> Iterable[RestoreCommit]:
        """RESTOREs on record that no rollback of ours made, those of tables that are gone included."""
        return (replace(one, log=self._logs_before(one)) for one in self._restores if not one.ours)

    def left_behind(self) -> Mapping[str, tuple[Undone, ...]]:
        """By `table_id`, what heads that were moved back by hand left behind and no RESTORE brought back."""
        return {table_id: left for table_id in self._left if (left := self._still_left(table_id))}

    def may_hold(self, table_id: str) -> bool:
        """Whether any version on record read a table of which something was taken back."""
        return table_id in self._readers

    def doubted(self) -> frozenset[str]:
        """Tables to be looked at although they did not move: what they had read was taken back, or brought back."""
        return frozenset(self._doubted)

    def looked_at(self, table_ids: Iterable[str]) -> None:
        """Fold in that these tables have been looked at."""
        self._doubted.difference_update(table_ids)

    def take_restores(self, restores: Iterable[RestoreCommit]) -> None:
        """All RESTOREs on record."""
        self._restores, self._stale = set(restores), True

    def add_restores(self, restores: Iterable[RestoreCommit]) -> None:
        """Further RESTOREs."""
        before = len(self._restores)
        self._restores.update(restores)
        self._stale = self._stale or len(self._restores) > before

    def take_rollbacks(self, rollbacks: Collection[Rollback]) -> None:
        """All rollbacks on record."""
        self._by_rollbacks, self._left_by, self._stale = (
            tainted_versions(rollbacks),
            left_tainted(rollbacks),
            True,
        )

    def take_left(self, healths: Iterable[HealthRow]) -> None:
        """Fold in the versions that these tables' heads left behind."""
        for one in healths:
            left = tuple(left_by(one))
            if left != self._left.get(one.table_id, ()):
                self._left[one.table_id], self._stale = left, True

    def derived(self, source: str, target: str) -> None:
        """Fold in that a table was read."""
        if source in self.ranges:
            self._readers.add(target)

    def reconcile(self, rows: Mapping[str, TableRow], derivations: Collection[tuple[str, str]]) -> None:
        """Work out the ranges after something was taken in; `derivations` are pairs (source, target).
        Costs nothing else."""
        if not self._stale:
            return
        self._stale = False
        before, self.ranges = self.ranges, self._worked_out(rows)
        changed = {key for key in {*before, *self.ranges} if before.get(key) != self.ranges.get(key)}
        self._doubted.update(target for source, target in derivations if source in changed)
        self._readers = {target for source, target in derivations if source in self.ranges}

    def _worked_out(self, rows: Mapping[str, TableRow]) -> Mapping[str, tuple[Undone, ...]]:
        logs: dict[str, dict[str | None, list[RestoreCommit]]] = defaultdict(lambda: defaultdict(list))
        for one in self._restores:
            logs[one.table_id][one.format_id].append(one)
        found: dict[str, list[Undone]] = {
            key: [
                left
                for one in ranges
                for left in still_undone(one, chain.from_iterable(logs[one.table_id].values()))
            ]
            for key, ranges in self._by_rollbacks.items()
        }
        for key, ranges in self._left_by.items():
            found.setdefault(key, []).extend(ranges)
        for table_id, by_uuid in logs.items():
            row = rows.get(table_id)
            if row is None:
                continue
            away = [one for restores in by_uuid.values() for one in restored_away(restores, row.name)]
            for key in filter(None, (table_id, row.location)):
                found.setdefault(key, []).extend(away)
        for table_id, left in self.left_behind().items():
            row = rows.get(table_id)
            location = None if row is None else row.location
            for key in filter(None, (table_id, location)):
                found.setdefault(key, []).extend(left)
        return {
            key: tuple(sorted(ranges, key=lambda one: (one.first, one.last, one.by)))
            for key, ranges in found.items()
            if ranges
        }

    def _logs_before(self, one: RestoreCommit) -> int:
        logs = (ended_log(one.table_id, "", left) for left in self._left.get(one.table_id, ()))
        return sum(
            log is not None and log.format_id == one.format_id and log.first <= one.version for log in logs
        )

    def _still_left(self, table_id: str) -> tuple[Undone, ...]:
        restores = [one for one in self._restores if one.table_id == table_id]
        return tuple(rest for one in self._left[table_id] for rest in still_undone(one, restores))
