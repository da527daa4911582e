"""What a table's head would lose that nobody has called bad: the commits that a consent is asked for. Pure.

Not among them: what a later overwrite had removed from head before (but a change of columns outlives it, up
to a CREATE OR REPLACE); a RESTORE, which makes no rows of its own (what it had brought back is listed commit
by commit); properties, which are listed beside the commits, and maintenance; a commit that neither added nor
removed a file, of rows or of deletes; what somebody agreed to lose as unknown;
and a change of columns after the very version that the table was asked to go back to, if it was there then.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.lineage.graph.graph import VersionGraph
from lakewarden.catalog.lineage.versions import Effect, Touch, Version
from lakewarden.catalog.units import count_of
from lakewarden.jobs.rollback.plan.model import Lost
from lakewarden.jobs.rollback.plan.restore_points import Line, shaping
from lakewarden.jobs.rollback.plan.taint import Taint

__all__ = ["Losses", "counted", "rows_of"]

_CHANGE_OF_COLUMNS: Final = "change of columns"
"""What is lost of a version of which nobody misses the rows."""


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
        rows = {node for node in self.line.lost if not self.taint.counts.own(node) and self._is_loss(node)}
        columns = {node for node in self.line.lost if self._made_columns(node)}
        held = self.graph.live(self.line.head) if rows else set[int]()
        shape = shaping(self.graph, self.line.head, self.history) if columns else set[int]()
        for node in self.line.lost:
            version = self.graph.versions[node]
            # Of what may be tainted, that which nobody has decided on yet is asked about as such.
            doubtful = self.taint.wide.own(node)
            decided = not doubtful or self.keeps_unknown(version)
            if node in rows and node in held and decided:
                yield self._lost(version, unknown=doubtful)
            elif node in columns and node in shape and (decided or self._is_never_asked(node)):
                yield self._lost_columns(version)

    def _is_loss(self, node: int) -> bool:
        """Whether a version changed rows."""
        one = self.history.get(self.graph.versions[node])
        effect = self.graph.effects[node] if one is None else one.effect
        return effect not in (Effect.ALIAS, Effect.RESTORE) and not (one is not None and one.idle)

    def _made_columns(self, node: int) -> bool:
        """Whether a version brought other columns. Where they change beside commits, they came with whatever was
        committed next: it says nothing of who changed them, or why, that its rows are bad."""
        one = self.history.get(self.graph.versions[node])
        if one is None or not (one.touch is Touch.SCHEMA or one.changes_columns):
            return False
        named = self.taint.named.get(self.graph.table_of(node))
        is_called_bad = one.effect is Effect.ALIAS and self.taint.counts.own(node)
        return not is_called_bad and not (named is not None and named.keep < node <= named.head)

    def _is_never_asked(self, node: int) -> bool:
        """Whether its rows go without a question: they are bad, or nothing has them any more."""
        return self.taint.counts.own(node) or node not in self.line.unknown

    def _lost(self, version: int, *, unknown: bool) -> Lost:
        one = self.history.get(version)
        if one is None:
            return Lost(version=version, operation="unknown", touch=Touch.CONTENT, unknown=unknown)
        # A stream's batch comes again by itself, once its number has gone back with the table.
        can = one.blind and version in self.fitting and not (one.transactions or one.changes_columns)
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

    def _lost_columns(self, version: int) -> Lost:
        one = self.history[version]
        return Lost(
            version=version,
            operation=_CHANGE_OF_COLUMNS if one.changes_columns else one.operation,
            touch=Touch.SCHEMA,
            run_id=one.run_id,
            user=one.user,
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
