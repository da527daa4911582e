"""Convert a table from the control plane: row first, then a run on a worker, then the row settles."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from lakewarden.catalog.access import Actor
from lakewarden.catalog.model import Action, Outcome, PolicySettings, TableState
from lakewarden.catalog.policies import with_values
from lakewarden.catalog.registry.convert import begin_conversion, conversion_failed, converted
from lakewarden.catalog.registry.desk import Registered
from lakewarden.catalog.registry.govern import governed
from lakewarden.catalog.state.base import RunRequest
from lakewarden.catalog.system.base import HEALTH
from lakewarden.daemon.follow import raise_for, run_and_wait
from lakewarden.daemon.wiring import Services
from lakewarden.jobs.actions import encode
from lakewarden.jobs.rules import conversion_action

__all__ = ["ConvertRequest", "convert_table"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvertRequest:
    """What CLI, SQL and Python ask for alike. `where` is db.t, a path or a URI; `retain_seconds` the retention."""

    where: str
    name: str | None = None
    owner: str | None = None
    partitioned_by: tuple[tuple[str, str], ...] = ()
    statistics: bool = True
    retain_seconds: int | None = None

    def policy(self, *, admin: bool) -> PolicySettings:
        """The table-level policy it asks for. Raises `NotAllowedError` below the floor."""
        values = {} if self.retain_seconds is None else {"vacuum.retention": self.retain_seconds}
        return with_values(PolicySettings(), values, admin=admin)


def convert_table(
    services: Services, request: ConvertRequest, *, actor: Actor, tell: Callable[[str], None]
) -> Registered:
    """Convert and wait. A conversion that fails for good leaves no row; one that is interrupted is finished later."""
    begun = begin_conversion(
        services.desk,
        request.where,
        actor=actor,
        name=request.name,
        owner=request.owner,
        policy=request.policy(admin=actor.admin),
        partitioned_by=request.partitioned_by,
        statistics=request.statistics,
    )
    row = begun.row
    if row.state is not TableState.CONVERTING:
        tell(f"{row.name} is managed already.")
        return Registered(row=row, health=services.store.rows(HEALTH).get(row.table_id), created=False)
    view = governed(services.desk, row.table_id)
    result = run_and_wait(
        services,
        RunRequest(
            run_id=uuid.uuid4().hex,
            table_id=row.table_id,
            name=row.name,
            location=row.location or "",
            action=Action.CONVERT,
            payload=encode(conversion_action(view)),
            because=f"{actor.name} asked to convert it",
            rank=float("inf"),
        ),
        tell=tell,
    )
    if result.outcome is not Outcome.SUCCEEDED and not result.retry:
        conversion_failed(services.desk, row.table_id, result.message or result.outcome)
    raise_for(result)
    return converted(services.desk, row.table_id)
