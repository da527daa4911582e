"""Do a table's retention properties carry its policy? Pure."""

from collections.abc import Iterator
from typing import Final

from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.registry import retention_of
from lakewarden.catalog.model.rows import Finding, Mode
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
    policy, retention = subject.policy, retention_of(seen.format)
    may_lower = retention.lowered(policy)
    for one, wanted, _ in retention.durations(policy):
        name, value = one.name, seen.properties.get(one.name)
        found = one.seconds(seen.properties)
        if found is None:
            continue  # `_unreadable` says so
        shown = f"unset ({format_seconds(one.unset)})" if value is None else value.removeprefix("interval ")
        if found < wanted:
            yield subject.say(CHECK, "shorter", property=name, value=shown, wanted=format_seconds(wanted))
        elif value is not None and found > wanted and name in may_lower:
            yield subject.say(CHECK, "longer", property=name, value=shown, wanted=format_seconds(wanted))
    cleanup = retention.cleanup
    if cleanup is None or not policy.settings.rollback_promise_seconds:
        return
    if seen.properties.get(cleanup, "true").lower() != "false":
        yield subject.say(CHECK, "cleanup", property=cleanup)


def _unreadable(subject: Subject, seen: Observation) -> Iterator[Finding]:
    for name in retention_of(seen.format).unreadable(seen.properties):
        yield subject.say(READABLE, "unreadable", property=name, value=seen.properties[name])
