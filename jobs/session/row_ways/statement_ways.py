"""The ways of the statements of one Spark application, and what they are decided on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import RefusedError, UsageError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.policy.rows_write import OBSERVED, AskedWay, ChosenWay, WrittenAndRead
from lakewarden.jobs.session.iceberg.staged_writes import StagedWrite
from lakewarden.jobs.session.iceberg.written_tables import (
    WrittenTable,
    changed_leaf,
    inside_with,
    is_row_change,
    spelled,
    table_behind,
)
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.reads import delta_index, location_of
from lakewarden.jobs.session.row_ways.asked_ways import (
    asked_first,
    asked_of,
    properties_of_database,
    properties_of_namespace,
)
from lakewarden.jobs.session.row_ways.delta_ways import delta_way, known_of_delta, set_way
from lakewarden.jobs.session.row_ways.iceberg_ways import IcebergWay, iceberg_way, known_of_iceberg
from lakewarden.jobs.session.write_plans.write_shapes import Shape
from lakewarden.jobs.session.writes import Directory

__all__ = ["RowWays", "StatementWay", "changes_nothing"]

_SPARK: Final = "spark_catalog"
_OWN_OPTION: Final = "__required_write_privileges__"
"""Spark's parser says by it what a statement does to the table."""
_UPDATED: Final = "UpdateCommand"
_COMMANDS: Final = ("DeleteCommand", "MergeIntoCommand", _UPDATED)
_CHANGES: Final = (Operation.DELETE, Operation.MERGE, Operation.UPDATE)
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
    staged: StagedWrite | None = None
    """What commits it, where that decides on the way."""
    is_named: bool = False
    """Its name was known for that of an Iceberg table, and it was looked up who asks for a way."""


@dataclass(frozen=True, kw_only=True)
class RowWays:
    """Decides. Holds no state of a statement."""

    plans: Plans
    directory: Directory
    reader: TableReader
    """Reads the logs of Delta tables."""
    clock: Clock

    def of(
        self, session: Any, said: JavaPlan, word: RowsWrite | None, require: Callable[[str], None]
    ) -> StatementWay:
        """The way of a parsed statement, with the `word` that came with it. That of a Delta table is known later.
        `require` is asked, with the place of an Iceberg table, before anything is said of it. Raises `UsageError` and
        `RefusedError` for what is asked for and cannot be."""
        way = StatementWay(plan=said, asked=asked_of(self.plans, session, word))
        leaf = changed_leaf(self.plans, said)
        if leaf is None:
            if word is not None and not is_row_change(said):
                raise changes_nothing()
            return way
        target = self._iceberg(session, leaf)
        if target is None:
            return way
        require(target.location)
        way.is_named = True
        found = self.of_iceberg(target, way.asked, all_change=_changes_all(said))
        if found is not None:
            way.chosen = found.chosen
            if found.mode is not None:
                way.staged = StagedWrite(self.plans, target, mode=found.mode)
                way.plan = way.staged.in_mode(said)
        return way

    def of_iceberg(
        self, target: WrittenTable, asked: AskedWay | None, all_change: bool = False
    ) -> IcebergWay | None:
        """The way of a statement that changes rows of an Iceberg table; None where nobody asks for one."""
        first = self.asked_of_iceberg(target, asked)
        if first is None:
            return None
        known = self._known(
            first,
            target.location,
            lambda since, reads: known_of_iceberg(
                self.plans, target, since=since, reads=reads, all_change=all_change
            ),
        )
        return iceberg_way(target, first, known)

    def asked_of_iceberg(self, target: WrittenTable, asked: AskedWay | None) -> AskedWay | None:
        """What counts of what is asked for, by a statement or of the table."""
        own = dict(target.base.properties())
        return asked_first(asked, own, target.location, lambda: properties_of_namespace(target.relation))

    def settled(self, session: Any, way: StatementWay, shape: Shape) -> Shape:
        """An analysed statement with its way. Where it changes rows of a Delta table, the session, a clone for it
        alone, writes so from now on."""
        plan = shape.plan
        if isinstance(shape.staged, StagedWrite) and not way.is_named and shape.operation in _CHANGES:
            asked = self.asked_of_iceberg(shape.staged.target, way.asked)
            return shape if asked is None else replace(shape, way=asked.left_out(_unnamed()))
        if shape.staged is not None or kind(plan) not in _COMMANDS:
            return replace(shape, way=way.chosen)
        index = {"MergeIntoCommand": "targetFileIndex", "UpdateCommand": "tahoeFileIndex"}.get(kind(plan))
        log = plan.deltaLog() if index is None else getattr(plan, index)().deltaLog()
        location, snapshot = location_of(log.dataPath()), log.unsafeVolatileSnapshot()
        all_change = kind(plan) == _UPDATED and plan.condition().isEmpty()
        entry = plan.catalogTable()
        chosen = self.of_delta(session, snapshot, location, entry, way.asked, all_change=all_change)
        return replace(shape, way=chosen)

    def told(self, session: Any, said: JavaPlan, word: RowsWrite | None) -> tuple[str, ...]:
        """What EXPLAIN GOVERNED says of the way of a parsed statement. `session` is a clone for that alone."""
        asked, leaf = asked_of(self.plans, session, word), changed_leaf(self.plans, said)
        if leaf is None:
            return ()
        target = self._iceberg(session, leaf)
        if target is not None:
            found = self.of_iceberg(target, asked, all_change=_changes_all(said))
            return () if found is None else _lines(found.chosen)
        table = self.plans.table_named(session, spelled(self.plans, leaf))
        if table is None or kind(table) != "LogicalRelation":
            return ()
        index = delta_index(self.plans, table.relation())
        if index is None:
            return ()
        location, snapshot = location_of(index.path()), index.getSnapshot()
        entry, all_change = table.catalogTable(), _changes_all(said)
        chosen = self.of_delta(session, snapshot, location, entry, asked, all_change=all_change)
        return () if chosen is None else _lines(chosen)

    def of_delta(
        self,
        session: Any,
        snapshot: Any,
        location: str,
        entry: Any,
        asked: AskedWay | None,
        all_change: bool = False,
    ) -> ChosenWay | None:
        """The way of a statement that changes rows of a Delta table, which the session writes in from now on; None
        where nobody asks for one. `entry` is an Option, that of Spark's catalog."""
        properties = self.plans.texts(snapshot.metadata().configuration())
        first = asked_first(
            asked, properties, location, lambda: properties_of_database(self.plans, session, entry)
        )
        if first is None:
            return None
        known = self._known(
            first,
            location,
            lambda since, reads: known_of_delta(
                self.plans, self.reader, snapshot, location, since=since, reads=reads, all_change=all_change
            ),
        )
        chosen = delta_way(location, properties, first, known)
        set_way(session, chosen.way)
        return chosen

    def _known(
        self, asked: AskedWay, location: str, found: Callable[[datetime, int | None], WrittenAndRead]
    ) -> WrittenAndRead:
        """What is known of a table; nothing is looked for unless that decides."""
        if asked.way is not RowsWrite.AUTO:
            return _NOTHING
        since = self.clock.now() - OBSERVED
        return found(since, self.directory.reads_since(location, since))

    def _iceberg(self, session: Any, leaf: JavaPlan) -> WrittenTable | None:
        """The Iceberg table that a name means. Names in Spark's own catalog mean none."""
        parts = [str(one) for one in self.plans.sequence(leaf.multipartIdentifier())]
        current = str(self.plans.current_catalog(session).name())
        is_ours = (
            len(parts) > 1
            and parts[0].lower() != _SPARK
            and self.plans.catalog_named(session, parts[0]) is not None
        )
        has_options = bool(dict(leaf.options()).keys() - {_OWN_OPTION})
        if has_options or not (is_ours or current != _SPARK):
            return None
        return table_behind(self.plans, session, spelled(self.plans, leaf))


def _unnamed() -> RefusedError:
    return RefusedError(
        "The statement calls its table by something else than its plain name. Nothing was changed.",
        hint="Write catalog.namespace.table, without IDENTIFIER and without options.",
    )


def changes_nothing() -> UsageError:
    """What is said of a way that is asked of another statement."""
    return UsageError(
        "`write` is for an UPDATE, DELETE or MERGE of one Delta table, or of one Iceberg table of format version 2 or "
        "later, which this statement is not. Nothing was run.",
        hint="Leave it out. An upsert has it, too.",
    )


def _changes_all(said: JavaPlan) -> bool:
    """Whether a parsed statement is an UPDATE without a condition."""
    said = inside_with(said)
    return kind(said) == "UpdateTable" and bool(said.condition().isEmpty())


def _lines(chosen: ChosenWay) -> tuple[str, ...]:
    return (str(chosen),) if chosen.note is None else (str(chosen), chosen.note)
