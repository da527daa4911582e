"""What has to be added to a rollback because somebody wrote while it was executed: late taint, moved heads."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.journal.stored_plan import decode_plan, frozen_request
from lakewarden.jobs.rollback.planning_service import Gathered, Gatherer
from lakewarden.jobs.rollback.report.refusal import refuse_blocked

__all__ = ["Extender", "refuse_others"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Extender:
    """Plans again with what is there now, about the same bad versions and within the same consents."""

    gatherer: Gatherer

    def __call__(self, rollback: Rollback) -> Sequence[TableStep]:
        """The tables that are still, or newly, tainted; none when the rollback has reached its end.

        Raises `ConsentError` if it takes a consent that nobody gave, `NotAllowedError` if a table of somebody
        else's has come in.
        """
        stored = decode_plan(rollback.head.payload or "")
        found = self.gatherer.gather(frozen_request(stored.plan))
        refuse_blocked(found.plan, resuming=rollback.rollback_id)
        refuse_others(found, rollback.head.actor, admin=stored.admin)
        return found.steps()


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
