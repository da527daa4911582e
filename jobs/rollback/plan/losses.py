"""What a table's head would lose that nobody has called bad: the commits that a consent is asked for. Pure.

Not among them: what a later overwrite had removed from head before (but a change of columns outlives it, up
to a CREATE OR REPLACE); a RESTORE, which makes no rows of its own (what it had brought back is listed commit
by commit); properties, which are listed beside the commits, and maintenance; a commit that neither added nor
removed a file, of rows or of deletes; what somebody agreed to lose as unknown;
and a change of columns after the very version that the table was asked to go back to, if it was there then.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.catalog.lineage.graph.graph import VersionGraph
from lakewarden.catalog.lineage.versions import Effect, Touch, Version
from lakewarden.catalog.units import count_of
from lakewarden.jobs.rollback.plan.model import Lost
from lakewarden.jobs.rollback.plan.restore_points import Line, shaping
from lakewarden.jobs.rollback.plan.taint import Taint

__all__ = ["Losses", "counted", "rows_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Losses:
    """One table's."""

    graph: VersionGraph
    taint: Taint
    line: Line
    history: Mapping[int, Version]
    fitting: frozenset[int]
    """As in `TableFacts`."""
    reapply: bool
    """As in `RollbackRequest`."""
    keeps_unknown: Callable[[int], bool]
    """Whether somebody agreed to treat a version of unknown origin as clean."""

    def listed(self) -> tuple[Lost, ...]:
        """The commits, oldest first."""
        return tuple(self._listed())

    def _listed(self) -> Iterator[Lost]:
        missed = [node for node in self.line.lost if not self.taint.counts.own(node) and self._is_loss(node)]
        held = self.graph.live(self.line.head) if missed else set[int]()
        shape = shaping(self.graph, self.line.head, self.history) if missed else set[int]()
        for node in missed:
            version = self.graph.versions[node]
            # Of what may be tainted, that which nobody has decided on yet is asked about as such.
            doubtful = self.taint.wide.own(node)
            there = node in (shape if self.graph.effects[node] == Effect.ALIAS else held)
            if there and (not doubtful or self.keeps_unknown(version)):
                yield self._lost(version, unknown=doubtful)

    def _is_loss(self, node: int) -> bool:
        one = self.history.get(self.graph.versions[node])
        effect = self.graph.effects[node] if one is None else one.effect
        if one is None or effect != Effect.ALIAS:
            return effect not in (Effect.ALIAS, Effect.RESTORE) and not (one is not None and one.idle)
        named = self.taint.named.get(self.graph.table_of(node))
        return one.touch is Touch.SCHEMA and not (named is not None and named.keep < node <= named.head)

    def _lost(self, version: int, *, unknown: bool) -> Lost:
        one = self.history.get(version)
        if one is None:
            return Lost(version=version, operation="unknown", touch=Touch.CONTENT, unknown=unknown)
        # A stream's batch comes again by itself, once its number has gone back with the table.
        can = one.blind and version in self.fitting and not one.transactions
        return Lost(
            version=version,
            operation=one.operation,
            touch=one.touch,
            rows=one.rows,
            files=one.files,
            run_id=one.run_id,
            user=one.user,
            can_reapply=can,
            reapplied=can and self.reapply,
            unknown=unknown,
        )


def counted(lost: Sequence[Lost]) -> str:
    """`2 clean commits, 1 commit of unknown origin and 1 schema change`."""
    changes = sum(one.touch is Touch.SCHEMA for one in lost)
    unknown = sum(one.unknown for one in lost)
    kinds = [
        (len(lost) - changes - unknown, "clean commit"),
        (unknown, "commit of unknown origin"),
        (changes, "schema change"),
    ]
    *others, last = [_counted(number, noun) for number, noun in kinds if number]
    return f"{', '.join(others)} and {last}" if others else last


def _counted(number: int, noun: str) -> str:
    one, _, rest = noun.partition(" of ")
    return count_of(number, one) + (f" of {rest}" if rest else "")


def rows_of(lost: Sequence[Lost]) -> str:
    """` (30 rows)`; nothing where nobody recorded any."""
    told = [one.rows for one in lost if one.rows is not None]
    return f" ({count_of(sum(told), 'row')})" if told else ""
