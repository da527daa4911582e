"""Which executor does which action: the one place where the actions meet the code that does them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from lakewarden.catalog.model.rows import Action
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.executors.compact import compact
from lakewarden.jobs.executors.convert import convert
from lakewarden.jobs.executors.log_care import log_care
from lakewarden.jobs.executors.metadata_care import metadata_care
from lakewarden.jobs.executors.properties import set_properties
from lakewarden.jobs.executors.purge import purge
from lakewarden.jobs.executors.statistics import refresh_statistics
from lakewarden.jobs.executors.sync import sync_metastore
from lakewarden.jobs.executors.vacuum import vacuum
from lakewarden.jobs.rollback.execute.run import roll_back
from lakewarden.jobs.runs.port import JobContext, Report

__all__ = ["EXECUTORS", "execute"]

EXECUTORS: Final[Mapping[Action, Callable[[JobContext, Any], Report]]] = {
    Action.CONVERT: convert,
    Action.VACUUM: vacuum,
    Action.COMPACT: compact,
    Action.STATISTICS: refresh_statistics,
    Action.LOG_CARE: log_care,
    Action.METADATA_CARE: metadata_care,
    Action.PROPERTIES: set_properties,
    Action.SYNC: sync_metastore,
    Action.PURGE: purge,
    Action.ROLLBACK: roll_back,
}


def execute(ctx: JobContext, action: AnyAction) -> Report:
    """Execute an action. Raises what its executor raises."""
    return EXECUTORS[Action(action.kind)](ctx, action)
