"""Making the metastore entry agree with the table."""

from datetime import datetime
from typing import Final, Literal

from pydantic.dataclasses import dataclass

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Action
from lakewarden.jobs.actions.answers import Answer, Due, NotDue, WhyNot
from lakewarden.jobs.actions.common_rules import (
    SHORTEST_REST,
    findings_of,
    head_of,
    nothing,
    recent,
    share_of,
)
from lakewarden.jobs.actions.costs import Estimate
from lakewarden.jobs.actions.spec import Ordered, Spec, Switch, retry
from lakewarden.jobs.actions.world import TableView, World

__all__ = ["SYNC", "SyncMetastore"]

METASTORE_CHECKS: Final = ("schema_matches_metastore", "metastore_entry")


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncMetastore:
    """Make the metastore entry agree with the table."""

    kind: Literal["sync"] = "sync"
    requires: Head
    """With that of this version."""
    name: str
    """The entry's."""
    stale_share: float = 0.1
    """The policy's: statistics in the entry that are off by more are taken away."""


def _due(view: TableView, world: World, now: datetime) -> Answer:
    """The metastore entry differs from the table."""
    if not world.has_metastore:
        return NotDue(action=Action.SYNC, why=WhyNot.NO_METASTORE, because="no metastore is configured")
    found = findings_of(view, METASTORE_CHECKS)
    if not found:
        return nothing(Action.SYNC, "the metastore agrees")
    waits = recent(view, Action.SYNC, SHORTEST_REST, now)
    share = share_of(view.governed.policy.settings.statistics_stale_share)
    action = SyncMetastore(requires=head_of(view), name=view.name, stale_share=share)
    return waits or Due(action=action, because=found)


def _ordered(ordered: Ordered) -> SyncMetastore:
    seen = ordered.seen
    return SyncMetastore(requires=seen.at, name=ordered.governed.row.name)


SYNC: Final = Spec(
    action=Action.SYNC,
    value=SyncMetastore,
    urgency=4,  # readers see wrong columns
    rule=_due,
    estimate=lambda action, health: Estimate(benefit=1.0),
    requires=lambda action: action.requires,
    recover=retry,
    order=_ordered,
    needs_features=False,
    on_any_head=True,  # the entry follows the head; whether it is the same table is asked
    switch=Switch(key="metastore.sync", value=lambda settings: settings.metastore_sync),
    foresees=lambda action, of: list(of.drifts()),
)
