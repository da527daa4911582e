"""Do a table's retention properties carry its policy? Pure."""

from collections.abc import Iterator
from typing import Final

from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.model.rows import Finding, Mode
from lakewarden.catalog.policy.retention_properties import (
    CLEANUP,
    DURATIONS,
    FILES,
    LOG,
    interval_seconds,
    lowered,
    unreadable,
)
from lakewarden.catalog.units import format_seconds
from lakewarden.catalog.validation.context import Subject

__all__ = ["retention_findings"]

CHECK: Final = "retention_properties"
READABLE: Final = "retention_readable"


def retention_findings(subject: Subject, seen: Observation) -> tuple[Finding, ...]:
    """At most one finding per check, with everything that is wrong. An observed table may keep what it likes."""
    if subject.policy.mode is not Mode.MANAGE:
        return ()
    found = ((CHECK, _problems(subject, seen)), (READABLE, _unreadable(subject, seen)))
    said = ((check, " ".join(one.message for one in problems)) for check, problems in found)
    return tuple(subject.finding(check, message) for check, message in said if message)


def _problems(subject: Subject, seen: Observation) -> Iterator[Finding]:
    policy, may_lower = subject.policy, lowered(subject.policy)
    for name, wanted in ((FILES, policy.vacuum_retention_seconds), (LOG, policy.log_retention_seconds)):
        value = seen.properties.get(name)
        found = DURATIONS[name] if value is None else interval_seconds(value)
        if found is None:
            continue  # `_unreadable` says so
        shown = (
            f"unset ({format_seconds(DURATIONS[name])})" if value is None else value.removeprefix("interval ")
        )
        if found < wanted:
            yield subject.say(CHECK, "shorter", property=name, value=shown, wanted=format_seconds(wanted))
        elif value is not None and found > wanted and name in may_lower:
            yield subject.say(CHECK, "longer", property=name, value=shown, wanted=format_seconds(wanted))
    if policy.settings.rollback_promise_seconds and seen.properties.get(CLEANUP, "true").lower() != "false":
        yield subject.say(CHECK, "cleanup")


def _unreadable(subject: Subject, seen: Observation) -> Iterator[Finding]:
    for name in unreadable(seen.properties):
        yield subject.say(READABLE, "unreadable", property=name, value=seen.properties[name])
