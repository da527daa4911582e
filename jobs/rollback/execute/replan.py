"""What has to be added to a rollback because somebody wrote while it was executed: late taint, moved heads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakewarden.catalog.errors import NotAllowedError, PreconditionError
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.jobs.rollback.execute.same_tables import Looked, look_at_tables
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.journal.stored_plan import StoredPlan, decode_plan, frozen_request
from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS, Consent, Consents
from lakewarden.jobs.rollback.plan.model import Step, TablePlan
from lakewarden.jobs.rollback.planning_service import Gathered, Gatherer
from lakewarden.jobs.rollback.report.refusal import refuse_blocked

__all__ = ["BroughtBackError", "Extender", "PlannedAgain", "plan_again", "refuse_others"]


class BroughtBackError(PreconditionError):
    """A table that the rollback was to leave as it is holds again what is taken out of those derived from it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedAgain:
    """What a rollback has still to do."""

    found: Gathered
    stored: StoredPlan
    """The plan that it carries out, with those consents that cover something still."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Extender:
    """Plans again with what is there now, about the same bad versions and within the same consents."""

    gatherer: Gatherer

    def __call__(self, rollback: Rollback) -> Sequence[TableStep]:
        """The tables that are still, or newly, tainted; none when the rollback has reached its end.

        Raises `ConsentError` if it takes a consent that nobody gave, `NotAllowedError` if a table of somebody
        else's has come in, and what `plan_again` does.
        """
        again = plan_again(self.gatherer, rollback)
        refuse_blocked(again.found.plan, resuming=rollback.rollback_id)
        refuse_others(again.found, rollback.head.actor, admin=again.stored.admin)
        return again.found.steps()


def plan_again(gatherer: Gatherer, rollback: Rollback, consents: Consents = NO_CONSENTS) -> PlannedAgain:
    """The plan for what is there now, about the same versions of the same tables; `consents` are further ones. What was
    agreed to of a table that was made anew since covers nothing of the new one.

    Raises `PreconditionError` if a table that it begins at was made anew, and `BroughtBackError` if one of them, which
    the plan left as it was, would go back now.
    """
    planned = decode_plan(rollback.head.payload or "")
    while True:
        looked = look_at_tables(gatherer.store, gatherer.readers, rollback, planned)
        _refuse_made_anew(rollback, planned, looked)
        stored = _without_others(planned, looked)
        found = gatherer.gather(frozen_request(stored.plan, consents))
        # What was looked at is what the plan is made of, or it is looked at once more.
        if all(found.format_ids.get(key, one) == one for key, one in looked.format_ids.items()):
            format_ids = tuple(sorted({**dict(stored.format_ids), **found.format_ids}.items()))
            stored = replace(stored, format_ids=format_ids)
            return PlannedAgain(found=_left_alone(rollback, stored, found), stored=stored)


def refuse_others(found: Gathered, actor: str | None, *, admin: bool) -> None:
    """Raise `NotAllowedError` if the plan changes a table of which `actor` is neither owner nor an admin."""
    for table in found.plan.tables:
        row = found.rows.get(table.table_id)
        if table.acts and not admin and (row is None or row.owner is None or row.owner != actor):
            owner = "" if row is None or row.owner is None else f" (owner: {row.owner})"
            raise NotAllowedError(
                f"{actor} may not roll back {table.name}{owner}.",
                hint="Every table of the plan must be yours; ask an admin.",
            )


def _refuse_made_anew(rollback: Rollback, planned: StoredPlan, looked: Looked) -> None:
    for table in planned.plan.tables:
        if table.trigger is None and table.table_id in looked.others:
            raise PreconditionError(
                f"{table.name} is not the table that this rollback was planned on: "
                "it was made anew, or its log was put back, and no version of it was touched.",
                hint=f"`lakewarden rollback undo {rollback.rollback_id}` takes back what was done to the other "
                "tables; what the new one has itself takes a new plan.",
            )


def _without_others(planned: StoredPlan, looked: Looked) -> StoredPlan:
    """The plan without what was agreed to of tables that others have taken the place of."""
    request = planned.plan.request
    named = frozenset(one for one in request.consents.named if one.table_id not in looked.others)
    kept = replace(request, consents=replace(request.consents, named=named))
    return replace(planned, plan=replace(planned.plan, request=kept))


def _left_alone(rollback: Rollback, stored: StoredPlan, found: Gathered) -> Gathered:
    """The plan with the tables as they are that the first one began at and left as they were: they were clean, or
    somebody agreed to leave them."""
    stays = {one.table_id: one for one in stored.plan.tables if one.trigger is None and one.step is Step.NONE}

    def left(table: TablePlan) -> TablePlan:
        before = stays.get(table.table_id)
        goes_back = table.step is not Step.NONE or table.stays_tainted
        if before is None or not goes_back:
            return table
        if not before.stays_tainted:
            raise BroughtBackError(
                f"{table.name} holds again what this rollback takes out of the tables derived from it: "
                "somebody brought it back since; it was not touched.",
                hint=f"`lakewarden rollback undo {rollback.rollback_id}` takes back what was done to the others; "
                f"or RESTORE {table.name} to a version without it, then `rollback resume`.",
            )
        asked = tuple(one for one in table.blocked_by if Consent.KEEP_UNKNOWN in one.consents)
        return replace(
            table, step=Step.NONE, to_version=table.from_version, stays_tainted=True, blocked_by=asked
        )

    plan = replace(found.plan, tables=tuple(left(table) for table in found.plan.tables))
    return replace(found, plan=plan)
