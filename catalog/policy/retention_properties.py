"""The Delta properties that carry a retention: read, and merged with what a policy asks for. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from lakewarden.catalog.bounds import LONGEST_SECONDS
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.units import DAY, format_seconds, parse_seconds

__all__ = [
    "CLEANUP",
    "DURATIONS",
    "FILES",
    "LOG",
    "interval_seconds",
    "lowered",
    "retention_properties",
    "still_to_set",
    "unreadable",
]

FILES: Final = "delta.deletedFileRetentionDuration"
LOG: Final = "delta.logRetentionDuration"
CLEANUP: Final = "delta.enableExpiredLogCleanup"

DURATIONS: Final[Mapping[str, int]] = {FILES: 7 * DAY, LOG: 30 * DAY}
"""The properties that hold a duration, and the seconds that Delta takes where they are unset."""

_POLICY_KEY: Final[Mapping[str, str]] = {FILES: "vacuum.retention", LOG: "log.retention"}
_PAIR = re.compile(r"(-?\d+(?:\.\d+)?)\s+([a-z]+)")


def interval_seconds(text: str) -> float | None:
    """Seconds in a duration as table properties have it: `interval 30 days`, `interval 1 week 12 hours`, `7 days`.

    None for anything else; months and years too, which have no fixed length and which Delta refuses here.
    What is beyond bounds counts as the longest there is.
    """
    plain = text.strip().lower().removeprefix("interval").replace("'", "").strip()
    parts = [parse_seconds(f"{number} {unit}") for number, unit in _PAIR.findall(plain)]
    if not parts or _PAIR.sub("", plain).strip():
        return None
    if any(part is None for part in parts):
        return None
    return min(sum(part for part in parts if part is not None), LONGEST_SECONDS)


def unreadable(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Those of the table's durations that are set to something that is none: nobody knows how long they mean."""
    return tuple(
        name for name in DURATIONS if name in properties and interval_seconds(properties[name]) is None
    )


def retention_properties(policy: EffectivePolicy) -> tuple[tuple[str, str], ...]:
    """The properties that carry a policy's retention, as they would be set where nothing is set yet."""
    return (
        (FILES, f"interval {format_seconds(policy.vacuum_retention_seconds)}"),
        (LOG, f"interval {format_seconds(policy.log_retention_seconds)}"),
        (CLEANUP, "false"),
    )


def lowered(policy: EffectivePolicy) -> tuple[str, ...]:
    """The durations that may be lowered to the policy's: those that somebody set, for the table or a scope of it.

    A default lowers nothing that the table's users wrote. What is asked for never goes below a promise: the policy's
    retention holds that already.
    """
    return tuple(name for name, key in _POLICY_KEY.items() if policy.origins.get(key, "default") != "default")


def still_to_set(
    properties: Mapping[str, str], wanted: Iterable[tuple[str, str]], *, lowers: Collection[str]
) -> tuple[tuple[str, str], ...]:
    """Which of the `wanted` properties a table with these `properties` still needs.

    Of two durations the longer stands, except for the names in `lowers`. One that cannot be read stands, too: it may
    mean longer.
    """
    return tuple(
        (name, value) for name, value in wanted if not _stands(name, properties.get(name), value, lowers)
    )


def _stands(name: str, present: str | None, wanted: str, lowers: Collection[str]) -> bool:
    if present is None or present == wanted:
        return present is not None
    if name not in DURATIONS:
        return False
    has, asked = interval_seconds(present), interval_seconds(wanted)
    return has is None or asked is None or has == asked or (has > asked and name not in lowers)
