"""A plan as the journal keeps it: everything that applying, extending and undoing it need. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Annotated, assert_never

from pydantic import BeforeValidator, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import DELTA, RollbackState, RollbackStep, TableFormat
from lakewarden.jobs.rollback.journal.steps import NO_VERSION, TableStep
from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS, Consent, Consents, word_of
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step, TablePlan
from lakewarden.jobs.rollback.plan.request import (
    BadVersions,
    RollbackRequest,
    Seed,
    ToVersion,
    ToVersionAsPlanned,
)
from lakewarden.jobs.rollback.report.details import Details

__all__ = [
    "OnMoved",
    "StoredPlan",
    "consents_asked",
    "decode_plan",
    "encode_plan",
    "frozen_request",
    "quoted_plan",
    "steps_of",
    "with_consents_asked",
]


class OnMoved(StrEnum):
    """What happens when somebody writes in the middle: take the commit into the plan, or take everything back."""

    EXTEND = "extend"
    COMPENSATE = "compensate"


def _as_now(plan: object) -> object:
    """What an older lakewarden wrote, in the form of today. Consents were a list of kinds without versions: their
    extent is unknown, so they cover nothing, and going on with the plan needs new consents."""
    match plan:
        case {"request": {"consents": [*_], **request}, **rest}:
            return {**rest, "request": {**request, "consents": {}}}
        case _:
            return plan


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPlan:
    """A plan as the journal keeps it."""

    plan: Annotated[RollbackPlan, BeforeValidator(_as_now)]
    format_ids: tuple[tuple[str, str], ...] = ()
    """By `table_id` the UUIDs of the heads it was made on."""
    formats: tuple[tuple[str, TableFormat], ...] = ()
    """Of tables that are not Delta."""
    admin: bool = False
    """Whoever applies it may change tables that are not their own."""
    on_moved: OnMoved = OnMoved.EXTEND
    details: Details = Details()
    """For whoever looks at it."""
    statement: str | None = None
    """There is no plan, but this text, which changes several tables."""
    asked: tuple[tuple[str, ...], ...] = ()
    """The ways to agree to what stopped the rollback (`ConsentError.ways`)."""


_ADAPTER = TypeAdapter(StoredPlan)


def encode_plan(stored: StoredPlan) -> str:
    """Compact JSON."""
    return _ADAPTER.dump_json(stored).decode()


def decode_plan(payload: str) -> StoredPlan:
    """What `encode_plan` wrote, also that of older versions. Raises `UnreadableError` for anything else."""
    try:
        return _ADAPTER.validate_json(payload)
    except ValidationError as error:
        raise UnreadableError(
            "The stored plan was made by another version of lakewarden.",
            hint="One that is not applied yet: plan again. One that is: "
            "finish it with the version that began it.",
        ) from error


def quoted_plan(plan: RollbackPlan, on_moved: OnMoved) -> RollbackPlan:
    """The plan under the hash that it is quoted by: that covers what happens where heads move, as well."""
    if on_moved is OnMoved.EXTEND:
        return plan
    return replace(plan, hash=sha256(f"{plan.hash} {on_moved}".encode()).hexdigest()[: len(plan.hash)])


def consents_asked(rollback: Rollback) -> tuple[tuple[str, ...], ...]:
    """The ways to agree to what a rollback was stopped for; empty for one that was stopped for anything else, or whose
    plan another version of lakewarden made."""
    if rollback.head.state is not RollbackState.CONFLICT or rollback.head.undo:
        return ()
    again = [row for row in rollback.of_kind(RollbackStep.REAPPLY) if row.state is RollbackState.CONFLICT]
    if again:  # what cannot be added again stays lost
        told = (word_of(Consent.COLLATERAL, row.name or row.table_id, [row.to_version]) for row in again)
        return (tuple(told),)
    try:
        return decode_plan(rollback.head.payload or "").asked
    except UnreadableError:
        return ()


def with_consents_asked(rollback: Rollback, ways: tuple[tuple[str, ...], ...]) -> Rollback:
    """The rollback with what it is stopped for; as it is where its plan cannot be read."""
    try:
        stored = decode_plan(rollback.head.payload or "")
    except UnreadableError:
        return rollback
    if stored.asked == ways:
        return rollback
    return replace(rollback, head=replace(rollback.head, payload=encode_plan(replace(stored, asked=ways))))


def frozen_request(plan: RollbackPlan, consents: Consents = NO_CONSENTS) -> RollbackRequest:
    """The same request about exactly the versions that the plan called tainted on the requested tables, and with a
    table's named version if the plan goes back to it.

    What was written after the plan was made is nobody's seed: to lose it takes a consent of its own.
    `consents` are further ones.
    """
    roots = (table for table in plan.tables if table.trigger is None)
    seeds = tuple(seed for table in roots for seed in _as_planned(table, plan.request))
    agreed = plan.request.consents.with_more(consents)
    return replace(plan.request, seeds=seeds, consents=agreed)


def _as_planned(table: TablePlan, request: RollbackRequest) -> Iterator[Seed]:
    named = [
        one.version for one in request.seeds if isinstance(one, ToVersion) and one.table_id == table.table_id
    ]
    if named and table.step in (Step.RESTORE, Step.REMOVE_FILES):
        version, head = min(named), table.from_version
        leaves = None if table.step is Step.RESTORE else table.undoable
        yield ToVersionAsPlanned(
            table_id=table.table_id, version=version, head=head, bad=table.tainted, leaves=leaves
        )
    elif table.tainted:
        yield BadVersions(table_id=table.table_id, versions=table.tainted)


def steps_of(
    plan: RollbackPlan,
    format_ids: Mapping[str, str],
    formats: Mapping[str, TableFormat],
    heads: Mapping[str, str] = MappingProxyType({}),
) -> tuple[TableStep, ...]:
    """What executing a plan does to tables, roots first; the steps on one table in their order. UUIDs, formats and
    heads are by `table_id`; a table without a format is Delta."""
    return tuple(
        replace(step, head=heads.get(table.table_id))
        for table in plan.tables
        if table.acts
        for step in _steps_on(table, format_ids.get(table.table_id), formats.get(table.table_id, DELTA))
    )


def _steps_on(table: TablePlan, format_id: str | None, format_: TableFormat) -> Iterator[TableStep]:
    step = TableStep(
        table_id=table.table_id,
        name=table.name,
        location=table.location or "",
        from_version=table.from_version,
        to_version=NO_VERSION if table.to_version is None else table.to_version,
        wave=table.wave,
        format=format_,
        format_id=format_id,
        tainted=table.tainted,
    )
    match table.step:
        case Step.NONE:
            return
        case Step.RESTORE:
            yield step
            for one in table.collateral:
                if one.reapplied:
                    kind = RollbackStep.REAPPLY
                    yield replace(
                        step, kind=kind, to_version=one.version, versions=(one.version,), tainted=()
                    )
        case Step.REMOVE_FILES:
            before = table.undone_after
            if before is None:  # planned by a build that knew only versions that count up from 0
                before = min(table.undoable) - 1
            yield replace(step, kind=RollbackStep.REMOVE_FILES, to_version=before, versions=table.undoable)
        case Step.DROP:
            yield replace(step, kind=RollbackStep.DROP)
        case Step.QUARANTINE:
            yield replace(step, kind=RollbackStep.QUARANTINE)
        case _:
            assert_never(table.step)
