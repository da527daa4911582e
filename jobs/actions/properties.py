"""Making a table's properties carry its policy, and giving back what stood there before to a table that leaves."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from pydantic.dataclasses import dataclass

from lakewarden.catalog.formats.port import Commit, Head
from lakewarden.catalog.formats.registry import retention_of
from lakewarden.catalog.model.rows import Action, Outcome, RunRow, TableRow
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.policy.original_properties import is_leaving, leaving_since
from lakewarden.catalog.policy.retention_properties import RetentionProperties
from lakewarden.catalog.state.port import Run
from lakewarden.jobs.actions.answers import Answer, Due
from lakewarden.jobs.actions.common_rules import (
    RETENTION_CHECK,
    SHORTEST_REST,
    findings_of,
    head_of,
    not_swept,
    nothing,
    recent,
    writers,
)
from lakewarden.jobs.actions.costs import Estimate
from lakewarden.jobs.actions.spec import (
    Foreseeable,
    Ordered,
    Settlement,
    Spec,
    Verdict,
    last_commit,
    retry,
    state_of,
)
from lakewarden.jobs.actions.world import TableView, World

__all__ = ["PROPERTIES", "SetProperties", "gives_back_action", "properties_action"]

PROPERTIES_GAP: Final = 5
"""Setting properties takes milliseconds: a fifth of the quiet time that a compaction needs is enough."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SetProperties:
    """Set table properties in one commit."""

    kind: Literal["properties"] = "properties"
    requires: Head = Head(0)
    """On exactly that."""
    properties: tuple[tuple[str, str], ...] = ()
    lowers: tuple[str, ...] = ()
    """The names of retentions that somebody asked to be less: any other that the table has longer stands."""
    gives_back: bool = False
    """Instead of all that, a table that leaves gets its original properties back, on any head."""
    since: str | None = None
    """After which drop."""


def properties_action(
    policy: EffectivePolicy, retention: RetentionProperties, requires: Head
) -> SetProperties:
    """The commit that makes the properties of a table, of a format with these, carry a policy's retention."""
    return SetProperties(
        requires=requires,
        properties=retention.wanted(policy),
        lowers=retention.lowered(policy),
    )


def gives_back_action(row: TableRow) -> SetProperties:
    """What gives a table that leaves its original properties back."""
    return SetProperties(gives_back=True, since=leaving_since(row))


def _due(view: TableView, world: World, now: datetime) -> Answer:
    """Retention properties that do not carry the policy are set, all together, in a quiet gap."""
    if is_leaving(view.governed.row):
        because = "it was dropped: its properties go back to what they were before"
        return Due(action=gives_back_action(view.governed.row), because=because)
    if not retention_of(view.governed.row.format):
        return nothing(Action.PROPERTIES, "its format has no properties for a retention")
    found = findings_of(view, (RETENTION_CHECK,))
    waits = not_swept(view, Action.PROPERTIES)
    if waits is not None:
        return waits
    if not found:
        return nothing(Action.PROPERTIES, "the retention properties carry the policy")
    policy = view.governed.policy
    gap = timedelta(seconds=(policy.settings.compaction_quiet_seconds or 0) / PROPERTIES_GAP)
    asks = "a fifth of compaction.quiet is waited for:"
    waits = recent(view, Action.PROPERTIES, SHORTEST_REST, now) or writers(
        view, Action.PROPERTIES, gap, now, asks=asks
    )
    if waits is not None:
        return waits
    retention = retention_of(view.governed.row.format)
    action = properties_action(policy, retention, head_of(view))
    return Due(action=action, because=found)


def _ordered(ordered: Ordered) -> SetProperties:
    seen = ordered.seen
    retention = retention_of(seen.format)
    return properties_action(ordered.governed.policy, retention, seen.at)


def _recover(run: Run, ours: Sequence[Commit]) -> Verdict:
    gives_back = run.request.requires_version is None  # which may take two commits
    return retry(run, ours) if gives_back else last_commit(run, ours)


def _allowed_in(row: TableRow, action: SetProperties, now: datetime) -> str | None:
    return None if is_leaving(row) == action.gives_back else state_of(row)


def _foresees(action: SetProperties, of: Foreseeable) -> list[tuple[str, str]]:
    seen = of.seen()
    still = retention_of(seen.format).still_to_set(seen.properties, action.properties, lowers=action.lowers)
    return [(key, f"{seen.properties.get(key, 'unset')} becomes {value}") for key, value in still]


def _settles(run: RunRow, tried_again: bool) -> Settlement | None:
    """What gives back has no version that it was decided on."""
    done = run.outcome in (Outcome.SUCCEEDED, Outcome.SKIPPED) and not tried_again
    return Settlement.GIVEN_BACK if done and run.requires_version is None else None


PROPERTIES: Final = Spec(
    action=Action.PROPERTIES,
    value=SetProperties,
    urgency=5,  # until they carry the policy, anybody's vacuum may break the promise
    rule=_due,
    estimate=lambda action, health: Estimate(benefit=1.0),
    requires=lambda action: None if action.gives_back else action.requires,
    recover=_recover,
    order=_ordered,
    of_all_formats=True,
    of_system_tables=False,
    of_leaving_tables=True,
    allowed_in=_allowed_in,
    foresees=_foresees,
    settles=_settles,
    is_for=lambda row, action: leaving_since(row) == action.since,
)
