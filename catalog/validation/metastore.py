"""Does the metastore say about a table what its log says? Pure; the differences are those the sync would remove."""

from dataclasses import dataclass

from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.registry import provider_of
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.metastore.sync_plan import Aspect, plan_sync
from lakewarden.catalog.model.rows import Finding, Mode, Severity
from lakewarden.catalog.validation.context import Subject

__all__ = ["METASTORE_CHECKS", "Answer", "KnownEntry", "Silent", "Unknown", "metastore_findings"]

METASTORE_CHECKS = ("schema_matches_metastore", "metastore_entry", "metastore_name")

_OURS = (Aspect.IDENTITY, Aspect.STORAGE)
"""What the metastore lacks until lakewarden writes it: nothing to say about a table that is only observed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownEntry:
    """The metastore's entry of the table's name."""

    entry: Entry
    strict: bool
    """`Metastore.strict_columns`."""
    at_another: bool = False
    """`points_at_another`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown:
    """There is no entry of this name, or no metastore to ask."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Silent:
    """The metastore does not answer: what was found before still stands."""


Answer = KnownEntry | Unknown | Silent


def metastore_findings(subject: Subject, seen: Observation, answer: Answer) -> tuple[Finding, ...]:
    """At most one finding per check, each with the sentences of all differences."""
    if isinstance(answer, Silent):
        return tuple(one for one in subject.standing_all() if one.check in METASTORE_CHECKS)
    if isinstance(answer, Unknown) or not subject.policy.settings.metastore_sync:
        return ()
    if provider_of(seen.format) is None:
        return ()
    plan = plan_sync(
        seen,
        answer.entry,
        table_id=subject.row.table_id,
        location=subject.row.location or seen.location,
        strict=answer.strict,
        stale_share=subject.policy.settings.statistics_stale_share or 0.0,
        installation=subject.installation,
        at_another=answer.at_another,
    )
    if plan.obstacle is not None:
        return (subject.finding("metastore_name", plan.obstacle.message),)
    observed_only = subject.policy.mode is not Mode.MANAGE
    said: dict[str, list[str]] = {}
    for change in plan.changes:
        if not (observed_only and change.aspect in _OURS):
            said.setdefault(change.aspect.check, []).append(change.message)
    severity = Severity.INFO if observed_only else None
    return tuple(
        subject.finding(check, " ".join(messages), severity=severity) for check, messages in said.items()
    )
