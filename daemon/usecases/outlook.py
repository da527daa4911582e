"""The plan as it would be made now, without changing anything: for plans, `why`, automatic vacuums."""

from lakewarden.catalog.model.rows import Action
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.one_table import world_of
from lakewarden.daemon.installation.services import Services
from lakewarden.jobs.actions.world import World
from lakewarden.jobs.planning.planner import Plan, PlannedRun, due_for, plan

__all__ = ["due_now", "outlook", "outlook_of", "world_now"]


def world_now(services: Services) -> World:
    """What the planner would see now: rows of the system tables and the queue, as they are stored."""
    cache = FleetCache(services.store, services.clock)
    cache.refresh()
    return cache.world(
        services.queue.unfinished(),
        services.budget,
        has_metastore=services.metastore is not None,
        no_spark=services.no_spark,
    )


def outlook_of(services: Services, table_id: str) -> Plan:
    """The same for one table alone. What other tables are due for is not looked at: `outlook` says who comes first."""
    return plan(_world_of(services, table_id), services.clock.now())


def outlook(services: Services) -> Plan:
    """Everything due with its reason, everything else with the reason why not."""
    return plan(world_now(services), services.clock.now())


def due_now(services: Services, action: Action, table_id: str | None = None) -> tuple[PlannedRun, ...]:
    """The tables that one action is due for, in the plan's order, without its budget; of one table with `table_id`."""
    world = world_now(services) if table_id is None else _world_of(services, table_id)
    return due_for(world, action, services.clock.now())


def _world_of(services: Services, table_id: str) -> World:
    return world_of(
        services.store,
        services.clock,
        table_id,
        unfinished=services.queue.unfinished(),
        budget=services.budget,
        has_metastore=services.metastore is not None,
        no_spark=services.no_spark,
    )
