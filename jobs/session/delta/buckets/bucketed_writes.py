"""Governed writes of bucketed tables: new rows go into their buckets, updates are done bucket by bucket where that is
known to come out the same."""

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame

from lakewarden.catalog.model.bucket_layout import BucketLayout, key_types, layout_in
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.jobs.engines.delta.sessions.bucket_files import as_set, naming
from lakewarden.jobs.session.delta.buckets.bucketed_changes import (
    BucketedChange,
    bucketed_change,
    settings_of,
)
from lakewarden.jobs.session.delta.buckets.rows_changes import RowsChange, rows_change
from lakewarden.jobs.session.delta.buckets.writing import distributed
from lakewarden.jobs.session.delta.delta_reads import delta_index
from lakewarden.jobs.session.delta.kept_rows import options_of_write
from lakewarden.jobs.session.delta.merges.merge_work import LeftToDeltaError
from lakewarden.jobs.session.formats.shapes import Execution, Shape
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["BucketedWrites"]

_WHOLE: Final = ("AppendData", "OverwriteByExpression")
_IN_PART: Final = ("replace", "partitionoverwritemode")
"""Options by which an overwrite keeps some rows."""
_CREATED: Final = ("CreateTableAsSelect", "ReplaceTableAsSelect")
_DOES_NOT: Final = "Its buckets are of no use to this statement: the table {because}. Delta's {name} does it."
_DOES: Final = "{count} buckets are joined one by one, without an exchange of the table's rows."
_MERGE: Final = "MergeIntoCommand"
_STATEMENTS: Final = {_MERGE: "MERGE", "UpdateCommand": "UPDATE", "DeleteCommand": "DELETE"}
"""Commands of Delta's that change rows of a table, and what they are called."""
_TURNED_OUT: Final = "has rows in other buckets than its files say"
_MATCHES: Final = ", or rows with several matches"


class BucketedWrites:
    """What the statements of one Spark application do with buckets."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans

    def spread(self, session: Any, shape: Shape, query: JavaPlan) -> JavaPlan:
        """The query of a write with its rows spread over the buckets of the table that it is written to; as it is where
        there are none. `session` is a clone for this write alone, which then names its files."""
        layout, types = self._layout(shape)
        if layout is None:
            return query
        found = distributed(self._plans, query, layout, types)
        if found is None:
            return query
        for key, value in naming(session, layout).items():
            session.sessionState().conf().setConfString(key, value)
        return found

    def run(self, session: Any, plan: JavaPlan, done: Execution) -> DataFrame:
        """Run an analysed write in a session, bucket by bucket if it can be."""
        frame = self.tried(session, plan, done)
        return self._plans.run(session, plan) if frame is None else frame

    def tried(
        self,
        session: Any,
        plan: JavaPlan,
        done: Execution,
        *,
        is_kept: bool = False,
        source_read: int | None = None,
    ) -> DataFrame | None:
        """Run an analysed write bucket by bucket; None, and nothing was changed, if Delta's own command is to do it.
        See `bucketed_change` for what is said of a source that is kept."""
        layout = self._changed(plan)
        if layout is not None:
            name = _STATEMENTS[kind(plan)]
            try:
                with as_set(session, _settings(session, layout)):
                    change = self._change(session, plan, layout, is_kept=is_kept, source_read=source_read)
                    frame = change.run()
                if frame is not None:
                    if isinstance(change, BucketedChange):
                        done.reads += change.reads
                        done.counts, done.is_skipped = change.told, change.told is None
                    return frame
                because = _TURNED_OUT + (_MATCHES if kind(plan) == _MERGE else "")
                done.note = _DOES_NOT.format(because=because, name=name)
            except LeftToDeltaError as error:
                done.note = _DOES_NOT.format(because=error, name=name)
        return None

    def told(self, session: Any, plan: JavaPlan) -> str | None:
        """How an analysed MERGE would be done; None where the table has no buckets."""
        layout = self._changed(plan) if kind(plan) == _MERGE else None
        if layout is None:
            return None
        try:
            with as_set(session, _settings(session, layout)):
                bucketed_change(self._plans, session, plan, layout).require_in_place()
        except LeftToDeltaError as error:
            return _DOES_NOT.format(because=error, name=_STATEMENTS[kind(plan)])
        return _DOES.format(count=layout.count)

    def _change(
        self,
        session: Any,
        plan: JavaPlan,
        layout: BucketLayout,
        *,
        is_kept: bool,
        source_read: int | None,
    ) -> BucketedChange | RowsChange:
        if kind(plan) == _MERGE:
            return bucketed_change(
                self._plans, session, plan, layout, is_kept=is_kept, source_read=source_read
            )
        return rows_change(self._plans, session, plan, layout)

    def changes(self, plan: JavaPlan) -> bool:
        """Whether an analysed statement changes rows of a table with buckets on record."""
        return self._changed(plan) is not None

    def _changed(self, plan: JavaPlan) -> BucketLayout | None:
        """The layout of the table whose rows a statement changes."""
        if kind(plan) not in _STATEMENTS:
            return None
        leaf, *others = self._plans.leaves(plan.target())
        is_one = kind(leaf) == "LogicalRelation" and not others
        index = delta_index(self._plans, leaf.relation()) if is_one else None
        return None if index is None else self._recorded(index)

    def has_layout(self, session: Any, name: str) -> bool:
        """Whether a table or view that SQL calls so is a Delta table with buckets on record."""
        leaf, *others = self._plans.leaves(session.table(name).queryExecution().analyzed())
        is_one = kind(leaf) == "LogicalRelation" and not others
        index = delta_index(self._plans, leaf.relation()) if is_one else None
        return index is not None and self._recorded(index) is not None

    def _recorded(self, index: Any) -> BucketLayout | None:
        """The layout of the Delta table whose files an index has."""
        return layout_in(self._plans.texts(index.metadata().configuration()))

    def _layout(self, shape: Shape) -> tuple[BucketLayout | None, Mapping[str, str] | None]:
        """The layout on record of the table that is written to, and the types of its bucket columns; those are None for
        a table that is made of the query. No layout where Delta would write other rows as well: parts of a table that
        is overwritten in part."""
        plan, plans = shape.plan, self._plans
        if kind(plan) in _CREATED:
            return layout_in(plans.texts(plan.tableSpec().properties())), None
        if kind(plan) not in _WHOLE or shape.operation is Operation.PARTIAL_OVERWRITE:
            return None, None
        if any(key.lower().startswith(_IN_PART) for key, _ in options_of_write(plans, plan)):
            return None, None
        metadata = plan.table().table().deltaLog().unsafeVolatileSnapshot().metadata()
        layout = layout_in(plans.texts(metadata.configuration()))
        if layout is None:
            return None, None
        types = key_types(str(metadata.schemaString()), layout)
        return (None, None) if types is None else (layout, types)


def _settings(session: Any, layout: BucketLayout) -> Mapping[str, str]:
    return {**settings_of(layout), **naming(session, layout)}
