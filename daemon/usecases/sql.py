"""Governed statements run on the control plane: the same for `lakewarden sql` and for a Spark session."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Final, assert_never

import pyarrow as pa

from lakewarden.catalog.errors import NotFoundError
from lakewarden.catalog.model.rows import Mark
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.registry.governance import require_not_system_table, set_owner, set_policy
from lakewarden.catalog.registry.marks import mark_versions, marks_of, unmark_versions
from lakewarden.catalog.system.query import query
from lakewarden.catalog.system.schema import arrow_type
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.declared import UseCase
from lakewarden.daemon.usecases.rollbacks.request import RollbackWish
from lakewarden.daemon.usecases.rollbacks.request import request_of as request_of_words
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.daemon.usecases.runs.convert import ConvertRequest, convert_table
from lakewarden.daemon.usecases.runs.revocation import PLANNED, take_back_runs
from lakewarden.daemon.usecases.statements.policy import change_policy
from lakewarden.daemon.usecases.statements.show import (
    describe,
    show_lineage,
    show_rollbacks,
    show_runs,
    show_tables,
)
from lakewarden.daemon.usecases.statements.vacuums import switch_vacuum, vacuum_due, vacuum_table
from lakewarden.jobs.rollback.journal.left_tainted import tables_left
from lakewarden.jobs.rollback.report.refusal import refuse_blocked
from lakewarden.jobs.sql.statements import (
    AutoVacuum,
    ChangeRows,
    ConvertTable,
    DescribeTable,
    Explain,
    MarkTable,
    Query,
    RollbackTable,
    SetPolicy,
    SetRows,
    ShowLineage,
    ShowRollbacks,
    ShowRuns,
    ShowTables,
    Statement,
    Unmanaged,
    VacuumDue,
    VacuumTable,
)

__all__ = ["STATEMENTS", "execute"]

_MARKS: Final = pa.schema([*arrow_type(Mark), pa.field("applies", pa.bool_())])
STATEMENTS: Final[Mapping[type, tuple[UseCase, ...]]] = {
    Query: (),
    Unmanaged: (),
    ChangeRows: (),
    Explain: (),
    SetRows: (declared.SET_POLICY, declared.SET_OWNER),
    ConvertTable: (declared.CONVERT,),
    MarkTable: (declared.MARK,),
    RollbackTable: (declared.ROLL_BACK,),
    ShowTables: (),
    DescribeTable: (),
    ShowRuns: (),
    ShowLineage: (),
    ShowRollbacks: (),
    SetPolicy: (declared.SET_POLICY,),
    VacuumTable: (declared.RUN,),
    AutoVacuum: (declared.SET_POLICY, declared.RUN),
    VacuumDue: (declared.RUN,),
}
"""Which use cases a kind of statement stands for."""


def execute(
    services: Services,
    statement: Statement,
    *,
    caller: Caller,
    tell: Callable[[str], None],
    look: Callable[[str], pa.Table] | None = None,
) -> pa.Table | None:
    """Run one statement for somebody; its result, or None if it is not ours to run (a Spark session may). `look` runs
    queries over system tables, for whom they shall not run in this process."""
    look = look or partial(query, services.store)
    match statement:
        case Query(sql=sql):
            return look(sql)
        case SetRows():
            return _set_rows(services, statement, caller, look)
        case ConvertTable():
            return _convert(services, statement, caller, tell)
        case RollbackTable():
            return _roll_back(services, statement, caller, tell)
        case MarkTable():
            return _mark(services, statement, caller)
        case ShowTables() | DescribeTable() | ShowRuns() | ShowLineage() | ShowRollbacks():
            return _look(services, statement)
        case SetPolicy(where=where, values=values):
            return change_policy(services, where, dict(values), caller=caller)
        case VacuumTable():
            return vacuum_table(services, statement, caller=caller, tell=tell)
        case AutoVacuum():
            return switch_vacuum(services, statement, caller=caller, tell=tell)
        case VacuumDue():
            return vacuum_due(services, caller=caller, tell=tell)
        case Unmanaged() | ChangeRows() | Explain():
            return None
        case _:
            assert_never(statement)


def _look(
    services: Services, statement: ShowTables | DescribeTable | ShowRuns | ShowLineage | ShowRollbacks
) -> pa.Table:
    match statement:
        case ShowTables(pattern=pattern):
            return show_tables(services, pattern)
        case DescribeTable(where=where):
            return describe(services, where)
        case ShowRuns(where=where, limit=limit):
            return show_runs(services, where, limit)
        case ShowLineage(where=where):
            return show_lineage(services, where)
        case ShowRollbacks():
            return show_rollbacks(services)


def request_of(statement: ConvertTable) -> ConvertRequest:
    """The conversion that a statement asks for."""
    return ConvertRequest(
        where=statement.where,
        format=statement.format,
        owner=statement.owner,
        partitioned_by=statement.partitioned_by,
        statistics=statement.statistics,
        retain_seconds=statement.retain_seconds,
    )


def _convert(
    services: Services, statement: ConvertTable, caller: Caller, tell: Callable[[str], None]
) -> pa.Table:
    with run(services, caller, declared.CONVERT, statement.where) as actor:
        done = convert_table(services, request_of(statement), actor=actor, tell=tell)
    version = None if done.health is None else done.health.version
    return _row(name=done.row.name, state=done.row.state.value, version=version, location=done.row.location)


def _roll_back(
    services: Services, statement: RollbackTable, caller: Caller, tell: Callable[[str], None]
) -> pa.Table:
    """Plan and apply in one go: what would need a consent is refused, with the flags of the command line."""
    wanted = RollbackWish(
        where=statement.where,
        version=statement.version,
        timestamp=statement.timestamp,
        bad=statement.bad,
        marked=statement.marked,
        cascade=statement.cascade,
        reapply=statement.reapply,
        remove_files=statement.remove_files,
    )
    with run(services, caller, declared.ROLL_BACK, statement.where) as actor:
        rollbacks = rollbacks_of_services(services)
        plan = rollbacks.plan(request_of_words(services.registry, wanted), actor=actor).plan
        refuse_blocked(plan)
        if not plan.waves():
            return _row(rollback=None, state="nothing to undo", tables=0, undo_until=None, left=None)
        done = rollbacks.apply(plan.hash, actor=actor, tell=tell)
    until = None if done.head.undo_until is None else done.head.undo_until.isoformat().replace("+00:00", "Z")
    return _row(
        rollback=done.rollback_id,
        state=done.head.state.value,
        tables=done.tables,
        undo_until=until,
        left=", ".join(one.name for one in tables_left(done)) or None,
    )


def _mark(services: Services, statement: MarkTable, caller: Caller) -> pa.Table:
    """Mark or unmark, and show all marks of the table, as `lakewarden lineage marks` does."""
    registry, where = services.registry, statement.where
    with run(services, caller, declared.MARK, where, on=f"mark {where}") as actor:
        if statement.verdict is None:
            unmark_versions(registry, where, statement.versions, actor=actor)
        else:
            mark_versions(
                registry, where, statement.versions, statement.verdict, note=statement.note, actor=actor
            )
    marks = marks_of(registry, registry.resolve(where))
    rows = [{**asdict(one), "applies": applies} for one, applies in marks]
    return pa.Table.from_pylist(rows, schema=_MARKS)


def _set_rows(
    services: Services, statement: SetRows, caller: Caller, look: Callable[[str], pa.Table]
) -> pa.Table:
    sql = f"SELECT table_id, name FROM lakewarden.tables WHERE {statement.condition}"
    matched = look(sql).to_pylist()
    if not matched:
        raise NotFoundError(
            "No row matches the WHERE.", hint="SELECT name FROM lakewarden.tables shows the names."
        )
    if statement.policy:  # all rows or none: what is refused of one changes nothing of the others
        for row in matched:
            require_not_system_table(services.registry.get(row["table_id"]))
    for row in matched:
        name = row["name"]
        where = name if name.endswith("*") else row["table_id"]
        if statement.policy:
            with run(services, caller, declared.SET_POLICY, where, on=name) as actor:
                changed = set_policy(services.registry, where, dict(statement.policy), actor=actor)
                take_back_runs(services, changed, PLANNED, f"the policy of {name} changed", ordered=False)
        if statement.owner is not None:
            with run(services, caller, declared.SET_OWNER, where, on=name) as actor:
                set_owner(services.registry, where, statement.owner, actor=actor)
    return pa.table({"name": [row["name"] for row in matched]})


def _row(**values: str | int | None) -> pa.Table:
    return pa.table({key: [value] for key, value in values.items()})
