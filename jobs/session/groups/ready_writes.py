"""The governed writes of a statement over several tables: all of them prepared before the first one runs.

Whatever the statement reads, it reads as it was when it began, also a table that one of its own steps has changed by
the time another reads it. Each write happens on the version that it was prepared on, once, or not at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.lineage_record import group_app
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.engines.spark.session import COMMIT_ATTEMPTS
from lakewarden.jobs.session.compiled_changes import (
    compile_change,
    mean_what_is_written,
    require_own_words,
    wrong_rows_explained,
)
from lakewarden.jobs.session.pins import Pinned, pin
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.upserts.operation_ids import APP, NUMBER
from lakewarden.jobs.session.write_plans.write_shapes import shape_of
from lakewarden.jobs.session.write_recorder import WriteRecorder
from lakewarden.jobs.session.writes import Written
from lakewarden.jobs.sql.compile.reading import Draft
from lakewarden.jobs.sql.compile.values import Chosen, SqlStep
from lakewarden.jobs.upsert.once import fence_of

__all__ = ["ReadyWrite", "WriteMark", "ready_writes"]


@dataclass(frozen=True, kw_only=True)
class ReadyWrite:
    """A write that is ready to run."""

    name: str
    location: str
    read_at: int | None
    """The version at which other steps read its target, None where none does."""
    commit: Callable[["WriteMark"], Written | None]
    """Runs it under a mark; None if it counted as made already and nothing was done."""
    before: Callable[[str], Written]
    """The result of the write if it was done before under this operation id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteMark:
    """By what the log of its table tells a group's write: the group's id, a transaction's number under an application
    id, and the digest of the text that an operation id stands for, None where there is none."""

    group_id: str
    app: str
    number: int = 1
    digest: str | None = None

    @classmethod
    def of(cls, group_id: str) -> "WriteMark":
        """The mark of a statement without an operation id: each group is an application of its own."""
        return cls(group_id=group_id, app=group_app(group_id))

    @property
    def apps(self) -> tuple[str, ...]:
        """The application ids whose numbers go back with the table where the write is taken back."""
        return () if self.digest is None else (self.app,)

    @property
    def fence(self) -> int:
        """The number by which a table says that the write was not made, and never will be."""
        return self.number if self.digest is None else fence_of(self.number)


def ready_writes(recorder: WriteRecorder, draft: Draft) -> tuple[ReadyWrite, ...]:
    """The writes in the order of the statement. Raises `UsageError`, or Spark's own errors; nothing is changed.
    Whether the tables may be written is asked later: somebody may still be at them who is waited for."""
    root: Any = recorder.plans.spark._jsparkSession
    snapshots: dict[str, Any] = {}
    session = recorder.plans.cloned(root)
    done = compile_change(session, draft, agreeing=True)  # what fails after others were written costs more
    _refuse_views_of_the_moment(recorder.plans, session, draft)
    found: list[ReadyWrite] = []
    for step in done.steps:
        own = recorder.plans.cloned(root)
        mean_what_is_written(own, done.dialect)
        found.append(_ready_write(recorder, draft, step, own, snapshots, done.chosen))
    _refuse_one_place_twice(found)
    return tuple(replace(one, read_at=_version_of(snapshots.get(one.location))) for one in found)


def _version_of(snapshot: Any | None) -> int | None:
    return None if snapshot is None else int(snapshot.version())


def _ready_write(
    recorder: WriteRecorder,
    draft: Draft,
    step: SqlStep,
    session: Any,
    snapshots: dict[str, Any],
    chosen: Chosen,
) -> ReadyWrite:
    plans = recorder.plans
    shape = shape_of(plans, session, plans.analysed(session, plans.composed(session, step.sql)))
    if shape is None or shape.target is None or shape.query is None:
        require_own_words(draft)
        raise UsageError(f"{step.target} is not a Delta table.", hint="Convert it (CONVERT TO DELTA).")
    if shape.staged is not None:
        raise UsageError(
            f"{step.target} is an Iceberg table, which no statement changes together with others.",
            hint="Write one statement for each table.",
        )
    target = shape.target
    pinned = pin(plans, session, shape.query, target=target, cached=False, snapshots=snapshots)
    _require_one_moment(step, pinned)
    plan = shape.rebuilt(pinned.plan)

    def commit(mark: WriteMark) -> Written | None:
        session.conf().set(APP, mark.app)
        session.conf().set(NUMBER, str(mark.number))
        session.conf().set(COMMIT_ATTEMPTS, "0")
        with wrong_rows_explained(draft):
            frame, written = recorder.run(
                session,
                lambda: plans.run(session, plan),
                operation=shape.operation,
                reads=pinned.reads,
                reads_self=pinned.reads_self,
                target=target,
                locate=shape.locate,
                run_id=mark.group_id,
                statement=mark.digest,
                known=shape.known,
                chosen=chosen,
            )
        is_done = frame is None or frame.collect()  # Delta has no result where it did nothing
        return written if is_done else None

    return ReadyWrite(
        name=str(step.target),
        location=target,
        read_at=None,
        commit=commit,
        before=lambda operation: recorder.unwritten(shape.operation, target, operation),
    )


def _require_one_moment(step: SqlStep, pinned: Pinned) -> None:
    """Raise `UsageError` for what each of the writes would compute or read anew, and find something else."""
    loose = next((read for read in pinned.reads if read.version is None), None)
    if loose is not None:
        raise UsageError(
            f"{step.target} is changed by {loose.location or 'rows'} ({loose.format}), "
            "which has no versions: each table of the statement would read it anew.",
            hint="Write it to a Delta table first, or write one statement for each table.",
        )
    if not pinned.plan.deterministic():
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
