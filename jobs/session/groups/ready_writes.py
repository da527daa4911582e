"""The governed writes of a statement over several tables: all of them prepared before the first one runs.

Whatever the statement reads, it reads as it was when it began, also a table that one of its own steps has changed by
the time another reads it. Each write happens on the version that it was prepared on, once, or not at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.session.compiled_changes import (
    compile_change,
    mean_what_is_written,
    require_own_words,
    wrong_rows_explained,
)
from lakewarden.jobs.session.formats.table_commits import HeldOperation, TableCommit, WriteMark
from lakewarden.jobs.session.plans import JavaPlan, Plans
from lakewarden.jobs.session.read_plans.pins import Pinned, pin
from lakewarden.jobs.session.session_formats import with_found_names
from lakewarden.jobs.session.write_plans.known_shapes import shape_of
from lakewarden.jobs.session.write_recorder import WriteRecorder
from lakewarden.jobs.session.writes import Judge, Written
from lakewarden.jobs.sql.compile.reading import Draft
from lakewarden.jobs.sql.compile.values import Chosen, SqlStep

__all__ = ["ReadyWrite", "ready_writes"]


@dataclass(frozen=True, kw_only=True)
class ReadyWrite:
    """A write that is ready to run."""

    name: str
    location: str
    format: TableFormat
    read_at: int | None
    """The version at which other steps read its target, or on which it was prepared; None where neither is so."""
    look: Callable[[str, str], HeldOperation]
    """What the table holds of a statement with this text under an operation id."""
    commit: Callable[[WriteMark], Written | None]
    """Runs it under a mark; None if it counted as made already and nothing was done."""
    before: Callable[[str], Written]
    """The result of the write if it was done before under this operation id."""


def ready_writes(recorder: WriteRecorder, draft: Draft, judge: Judge | None = None) -> tuple[ReadyWrite, ...]:
    """The writes in the order of the statement. Raises `UsageError`, the `judge`'s `NotAllowedError`, or Spark's own
    errors; nothing is changed. Whether the tables may be written is asked later: somebody may still be at them who is
    waited for."""
    root: Any = recorder.plans.spark._jsparkSession
    snapshots: dict[str, Any] = {}
    session = recorder.plans.cloned(root)
    done = compile_change(session, draft, agreeing=True)  # what fails after others were written costs more
    _refuse_views_of_the_moment(recorder.plans, session, draft)
    found: list[tuple[ReadyWrite, TableCommit]] = []
    for step in done.steps:
        own = recorder.plans.cloned(root)
        mean_what_is_written(own, done.dialect)
        found.append(_ready_write(recorder, draft, step, own, snapshots, done.chosen, judge))
    _refuse_one_place_twice([one for one, _ in found])
    return tuple(replace(one, read_at=commit.read_at(snapshots)) for one, commit in found)


def _ready_write(
    recorder: WriteRecorder,
    draft: Draft,
    step: SqlStep,
    session: Any,
    snapshots: dict[str, Any],
    chosen: Chosen,
    judge: Judge | None,
) -> tuple[ReadyWrite, TableCommit]:
    plans = recorder.plans
    said = with_found_names(plans, session, plans.composed(session, step.sql))
    if judge is not None:
        judge.require_said(said)
    shape = shape_of(plans, session, plans.analysed(session, said), is_merge=True)
    if shape is None or shape.change is None or shape.target is None or shape.query is None:
        require_own_words(draft)
        raise UsageError(
            f"{step.target} is no Delta or Iceberg table that could be changed together with others.",
            hint="Convert it (CONVERT TO DELTA).",
        )
    if judge is not None:
        judge.require_run(shape.plan)
        judge.require_written(said, shape.target, shape.query, shape.format)
    target, by = shape.target, shape.change.commit(recorder.readers, str(step.target))
    pinned = pin(
        plans, session, shape.query, target=target, cached=False, snapshots=snapshots, own=shape.heads
    )
    # Its source alone: what Spark makes of the merge of another format than Delta's numbers rows by itself.
    _require_one_moment(step, pinned, plans.analysed(session, said.sourceTable()))
    plan = shape.rebuilt(pinned.plan)

    def commit(mark: WriteMark) -> Written | None:
        by.name(session, mark)
        with wrong_rows_explained(draft):
            frame, written = recorder.run(
                session,
                lambda: by.run(session, plan),
                operation=shape.operation,
                reads=pinned.reads,
                reads_self=pinned.reads_self,
                target=target,
                locate=shape.locate,
                run_id=mark.group_id,
                statement=mark.digest,
                known=shape.known,
                chosen=chosen,
                committer=shape.by.carrier(recorder.readers),
            )
        return written if frame is None or by.is_made(frame) else None

    ready = ReadyWrite(
        name=str(step.target),
        location=target,
        format=by.format,
        read_at=None,
        look=by.look,
        commit=commit,
        before=lambda operation: recorder.unwritten(shape.operation, target, operation),
    )
    return ready, by


def _require_one_moment(step: SqlStep, pinned: Pinned, source: JavaPlan) -> None:
    """Raise `UsageError` for what each of the writes would compute or read anew, and find something else."""
    loose = next((read for read in pinned.reads if read.version is None), None)
    if loose is not None:
        raise UsageError(
            f"{step.target} is changed by {loose.location or 'rows'} ({loose.format}), "
            "which has no versions: each table of the statement would read it anew.",
            hint="Write it to a table with versions first, or write one statement for each table.",
        )
    if not source.deterministic():
        raise UsageError(
            f"{step.target} is changed by what is random, and each table of the statement "
            "would see another chance.",
            hint="Write the random values to a table first.",
        )


def _refuse_views_of_the_moment(plans: Plans, session: Any, draft: Draft) -> None:
    """Before anything is analysed as a MERGE, in which Delta puts the time itself."""
    for table in draft.tables:
        read = session.table(".".join(quoted(part) for part in table.parts))
        if plans.asks_for_the_time(read.queryExecution().analyzed()):
            raise UsageError(
                f"{table} asks for the time, and each table of the statement is changed at another moment.",
                hint="Write what it says to a table first, or write one statement for each table.",
            )


def _refuse_one_place_twice(found: Sequence[ReadyWrite]) -> None:
    seen: dict[str, str] = {}
    for one in found:
        if one.location in seen:
            raise UsageError(
                f"{seen[one.location]} and {one.name} are one table.",
                hint="Write one statement after the other.",
            )
        seen[one.location] = one.name
