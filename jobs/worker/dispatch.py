"""Which executor does which action: the one place where the union of actions meets the code that does them."""

from typing import assert_never

from lakewarden.jobs.actions.values import (
    AnyAction,
    Compact,
    Convert,
    LogCare,
    Purge,
    RefreshStatistics,
    RollBack,
    SetProperties,
    SyncMetastore,
    Vacuum,
)
from lakewarden.jobs.executors.compact import compact
from lakewarden.jobs.executors.convert import convert
from lakewarden.jobs.executors.give_back import give_properties_back
from lakewarden.jobs.executors.log_care import log_care
from lakewarden.jobs.executors.properties import set_properties
from lakewarden.jobs.executors.purge import purge
from lakewarden.jobs.executors.statistics import refresh_statistics
from lakewarden.jobs.executors.sync import sync_metastore
from lakewarden.jobs.executors.vacuum import vacuum
from lakewarden.jobs.rollback.execute.run import roll_back
from lakewarden.jobs.runs.port import JobContext, Report

__all__ = ["execute"]


def execute(ctx: JobContext, action: AnyAction) -> Report:
    """Execute an action. Raises what its executor raises."""
    match action:
        case Convert():
            return convert(ctx, action)
        case Vacuum():
            return vacuum(ctx, action)
        case Compact():
            return compact(ctx, action)
        case RefreshStatistics():
            return refresh_statistics(ctx, action)
        case LogCare():
            return log_care(ctx, action)
        case SetProperties():
            return give_properties_back(ctx) if action.gives_back else set_properties(ctx, action)
        case SyncMetastore():
            return sync_metastore(ctx, action)
        case Purge():
            return purge(ctx, action)
        case RollBack():
            return roll_back(ctx, action)
        case _:
            assert_never(action)
