"""Do a table's retention properties carry its policy? Pure."""

import re
from collections.abc import Iterator
from typing import Final

from lakewarden.catalog.formats.base import Observation
from lakewarden.catalog.model import Finding, Mode
from lakewarden.catalog.units import DAY, format_seconds, parse_seconds
from lakewarden.catalog.validation.subject import Subject

__all__ = ["interval_seconds", "retention_findings"]

CHECK: Final = "retention_properties"
FILES: Final = "delta.deletedFileRetentionDuration"
LOG: Final = "delta.logRetentionDuration"
CLEANUP: Final = "delta.enableExpiredLogCleanup"
_DEFAULTS: Final = {FILES: 7 * DAY, LOG: 30 * DAY}
_PAIR = re.compile(r"(-?\d+(?:\.\d+)?)\s+([a-z]+)")


def interval_seconds(text: str) -> float | None:
    """Seconds in a duration as table properties have it: `interval 30 days`, `interval 1 week 12 hours`, `7 days`.

    None for anything else; months and years too, which have no fixed length and which Delta refuses here.
    """
    plain = text.strip().lower().removeprefix("interval").replace("'", "").strip()
    parts = [parse_seconds(f"{number} {unit}") for number, unit in _PAIR.findall(plain)]
    if not parts or _PAIR.sub("", plain).strip():
        return None
    return None if any(part is None for part in parts) else sum(part for part in parts if part is not None)


def retention_findings(subject: Subject, seen: Observation) -> tuple[Finding, ...]:
    """At most one finding with everything that is wrong. An observed table may keep what it likes."""
    if subject.policy.mode is not Mode.MANAGE:
        return ()
    said = " ".join(finding.message for finding in _problems(subject, seen))
    return (subject.finding(CHECK, said),) if said else ()


def _problems(subject: Subject, seen: Observation) -> Iterator[Finding]:
    policy = subject.policy
    for name, wanted in ((FILES, policy.vacuum_retention_seconds), (LOG, policy.log_retention_seconds)):
        value = seen.properties.get(name)
        found = _DEFAULTS[name] if value is None else interval_seconds(value)
        if found is None:
            yield subject.say(CHECK, "unreadable", property=name, value=value)
        elif found < wanted:
            shown = (
                f"unset ({format_seconds(_DEFAULTS[name])})"
                if value is None
                else value.removeprefix("interval ")
            )
            yield subject.say(CHECK, "shorter", property=name, value=shown, wanted=format_seconds(wanted))
        elif name == FILES and value is not None and found > wanted and _asked_for(subject):
            shown = value.removeprefix("interval ")
            yield subject.say(CHECK, "longer", property=name, value=shown, wanted=format_seconds(wanted))
    if policy.settings.rollback_promise_seconds and seen.properties.get(CLEANUP, "true").lower() != "false":
        yield subject.say(CHECK, "cleanup")


def _asked_for(subject: Subject) -> bool:
    """Whether somebody set this retention: a default never lowers what the table's own users wrote."""
    return subject.policy.origins.get("vacuum.retention", "default") != "default"
