"""How the metastore's entries differ from the tables, and the same differences as the sync would remove them."""

from collections.abc import Iterator
from dataclasses import dataclass

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import LogProblem
from lakewarden.catalog.metastore.entry_obstacles import points_at_another
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.metastore.sync_plan import SyncPlan, plan_sync
from lakewarden.catalog.model.rows import RowKind, Source, TableRow, TableState
from lakewarden.catalog.policy.scopes import govern, scopes_by_name
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services

__all__ = ["MetastoreDrift", "drifts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MetastoreDrift:
    """One difference of one table."""

    table_id: str
    name: str
    aspect: str
    """`entry` where the metastore does not know the table at all, `obstacle` where the entry is not ours to
    change."""
    message: str


def drifts(services: Services, where: str | None) -> Iterator[MetastoreDrift]:
    """Differences of one table, or of all that are managed under a metastore name. Reads logs and entries only.

    Raises `PreconditionError` where no metastore is configured, `UnavailableError` while it does not answer.
    """
    rows = [services.registry.resolve(where)] if where else _tables(services)
    metastore = services.metastore
    if metastore is None:
        raise PreconditionError("No metastore is configured.", hint="Set metastore.uri in lakewarden.toml.")
    for row in rows:
        yield from _of(services, metastore, row, told=where is not None)


def _tables(services: Services) -> Iterator[TableRow]:
    for row in sorted(services.store.rows(TABLES).all(), key=lambda one: one.row):
        if row.kind is RowKind.TABLE and row.state is TableState.ACTIVE and row.source is not Source.SELF:
            yield row


def _of(services: Services, metastore: Metastore, row: TableRow, *, told: bool) -> Iterator[MetastoreDrift]:
    entry = metastore.get(*row.name.split(".", 1))
    if entry is None:
        if told:
            yield _drift(row, "entry", f"The metastore has no table {row.name}.")
        return
    plan = _plan(services, metastore, row)
    if plan is None:
        return
    if plan.obstacle is not None:
        yield _drift(row, "obstacle", plan.obstacle.message)
    for change in plan.changes:
        yield _drift(row, change.aspect.value, change.message)


def _plan(services: Services, metastore: Metastore, row: TableRow) -> SyncPlan | None:
    location = row.location or ""
    seen = services.registry.reader_at(location, row.name).observe(location)
    entry = metastore.get(*row.name.split(".", 1))
    if isinstance(seen, LogProblem) or entry is None:
        return None
    scopes = scopes_by_name(services.store.rows(TABLES).find(kind=RowKind.SCOPE))
    share = govern(row, scopes).policy.settings.statistics_stale_share
    installation = services.store.installation()
    return plan_sync(
        seen,
        entry,
        table_id=row.table_id,
        location=location,
        strict=metastore.strict_columns(),
        stale_share=share or 0.0,
        installation=installation,
        at_another=points_at_another(
            entry,
            table_id=row.table_id,
            location=location,
            installation=installation,
            is_table=services.registry.is_table,
        ),
    )


def _drift(row: TableRow, aspect: str, message: str) -> MetastoreDrift:
    return MetastoreDrift(table_id=row.table_id, name=row.name, aspect=aspect, message=message)
