"""The ways of the statements of one Spark application, and what they are decided on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.policy.rows_write import OBSERVED, AskedWay, ChosenWay, WrittenAndRead
from lakewarden.jobs.session.formats.row_changes import RowsTarget
from lakewarden.jobs.session.formats.said_changes import changed_leaf, changes_all, is_row_change, spelled
from lakewarden.jobs.session.formats.shapes import NamedRows, Shape
from lakewarden.jobs.session.formats.table_commits import Readers, RecordCarrier
from lakewarden.jobs.session.plans import JavaPlan, Plans
from lakewarden.jobs.session.row_ways.asked_ways import asked_first, asked_of
from lakewarden.jobs.session.session_formats import FORMATS, first_known
from lakewarden.jobs.session.writes import Directory

__all__ = ["RowWays", "StatementWay", "changes_nothing"]

_NOTHING: Final = WrittenAndRead(size=None, writes=None, reads=None)


@dataclass(kw_only=True, slots=True)
class StatementWay:
    """A statement before it is analysed: in which way, if somebody asks for one."""

    plan: JavaPlan
    """As it is to be analysed."""
    asked: AskedWay | None
    """By the statement itself."""
    chosen: ChosenWay | None = None
    """None until it is known, and where nobody asks."""
    begun: RecordCarrier | None = None
    """What commits it, where that decides on the way."""
    is_named: bool = False
    """Its table was known by its name, and it was looked up who asks for a way."""


@dataclass(frozen=True, kw_only=True)
class RowWays:
    """Decides. Holds no state of a statement."""

    plans: Plans
    directory: Directory
    readers: Readers
    clock: Clock

    def of(
        self, session: Any, said: JavaPlan, word: RowsWrite | None, require: Callable[[RowsTarget], None]
    ) -> StatementWay:
        """The way of a parsed statement, with the `word` that came with it. That of a Delta table is known later.
        `require` is asked, with its table, before anything is said of it. Raises `UsageError`
        and `RefusedError` for what is asked for and cannot be."""
        way = StatementWay(plan=said, asked=asked_of(self.plans, session, word))
        leaf = changed_leaf(self.plans, said)
        if leaf is None:
            if word is not None and not is_row_change(said):
                raise changes_nothing()
            return way
        target = self._named(session, leaf, said)
        if target is None:
            return way
        require(target)
        way.is_named = True
        way.chosen = self.chosen(target, way.asked)
        if way.chosen is not None:
            way.plan, way.begun = target.begun(way.chosen, said)
        return way

    def asked_of(self, target: RowsTarget, asked: AskedWay | None) -> AskedWay | None:
        """What counts of what is asked for, by a statement or of the table."""
        return asked_first(asked, target.properties, target.location, target.properties_around)

    def chosen(self, target: RowsTarget, asked: AskedWay | None) -> ChosenWay | None:
        """The way of a statement that changes rows of a table; None where nobody asks for one."""
        first_asked = self.asked_of(target, asked)
        return None if first_asked is None else target.way(first_asked, self._known(first_asked, target))

    def settled(self, session: Any, way: StatementWay, shape: Shape) -> Shape:
        """An analysed statement with its way. `session` is a clone for it alone."""
        change = shape.change
        target = None if change is None else change.rows(session, self.readers, is_named=way.is_named)
        return replace(shape, way=way.chosen if target is None else self.chosen(target, way.asked))

    def told(self, session: Any, said: JavaPlan, word: RowsWrite | None) -> tuple[str, ...]:
        """What EXPLAIN GOVERNED says of the way of a parsed statement. `session` is a clone for that alone."""
        asked, leaf = asked_of(self.plans, session, word), changed_leaf(self.plans, said)
        if leaf is None:
            return ()
        target = self._named(session, leaf, said) or self._read(session, leaf, said)
        chosen = None if target is None else self.chosen(target, asked)
        return () if chosen is None else _lines(chosen)

    def _named(self, session: Any, leaf: JavaPlan, said: JavaPlan) -> NamedRows | None:
        all_change = changes_all(said)
        return first_known(
            one.rows_named(self.plans, session, leaf, all_change=all_change) for one in FORMATS
        )

    def _read(self, session: Any, leaf: JavaPlan, said: JavaPlan) -> RowsTarget | None:
        table = self.plans.table_named(session, spelled(self.plans, leaf))
        if table is None:
            return None
        all_change = changes_all(said)
        return first_known(
            one.rows_read(self.plans, session, self.readers, table, all_change=all_change) for one in FORMATS
        )

    def _known(self, asked: AskedWay, target: RowsTarget) -> WrittenAndRead:
        """What is known of a table; nothing is looked for unless that decides."""
        if asked.way is not RowsWrite.AUTO:
            return _NOTHING
        since = self.clock.now() - OBSERVED
        return target.known(
            since=since,
            reads=self.directory.reads_since(target.location, since),
            rows=lambda: self.directory.rows_since(target.location, since),
        )


def changes_nothing() -> UsageError:
    """What is said of a way that is asked of another statement."""
    return UsageError(
        "`write` is for an UPDATE, DELETE or MERGE of one Delta table, or of one Iceberg table of format version 2 or "
        "later, which this statement is not. Nothing was run.",
        hint="Leave it out. An upsert has it, too.",
    )


def _lines(chosen: ChosenWay) -> tuple[str, ...]:
    return (str(chosen),) if chosen.note is None else (str(chosen), chosen.note)
