"""The properties by which a table keeps what a policy promises: read, and merged with what the policy asks for. Pure.

Which these are is said by the table's format (`FormatSpec.retention`); a format may have none.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.bounds import LONGEST_SECONDS, as_whole
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.units import format_seconds, parse_seconds

__all__ = ["NO_PROPERTIES", "Duration", "RetentionProperties", "interval_seconds"]

_OURS: Final = "lakewarden."
"""Properties that begin like this are requests to us, in tables of any format."""


def interval_seconds(text: str) -> float | None:
    """Seconds in a duration as table properties have it: `interval 30 days`, `interval 1 week 12 hours`, `7 days`.

    None for anything else; months and years too, which have no fixed length and which Delta refuses here.
    What is beyond bounds counts as the longest there is.
    """
    words = text.strip().lower().removeprefix("interval").replace("'", "").split()
    if not words or len(words) % 2:
        return None
    pairs = zip(words[::2], words[1::2], strict=True)
    parts = [parse_seconds(f"{number} {unit}") for number, unit in pairs]
    if any(part is None for part in parts):
        return None
    return min(sum(part for part in parts if part is not None), LONGEST_SECONDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Duration:
    """A property with a duration, and the format's default in seconds."""

    name: str
    unset: int
    in_milliseconds: bool = False
    """Whether its value is a plain number of these, and no interval."""
    unset_binds: bool = True
    """Whether the default holds for us as well, where the property is not set."""

    def seconds(self, properties: Mapping[str, str]) -> float | None:
        """What a table keeps; None if the property is set to something that is not a duration."""
        value = properties.get(self.name)
        return float(self.unset) if value is None else self.read(value)

    def read(self, value: str) -> float | None:
        """Seconds in a value; None if it is not a duration."""
        if not self.in_milliseconds:
            return interval_seconds(value)
        number = as_whole(value.strip())
        return None if number is None else min(number / 1000, LONGEST_SECONDS)

    def written(self, seconds: int) -> str:
        """The value that means so many seconds."""
        return str(seconds * 1000) if self.in_milliseconds else f"interval {format_seconds(seconds)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RetentionProperties:
    """The properties of one format: how long removed files stay, how long the log does, and the one that, set to
    `false`, keeps others from cleaning the log. None: the format has no such property."""

    files: Duration | None = None
    log: Duration | None = None
    cleanup: str | None = None
    owners: tuple[str, ...] = ()
    """Properties by which an owner says how long versions stay, and which are not ours to set."""

    def __bool__(self) -> bool:
        return any((self.files, self.log, self.cleanup))

    def durations(self, policy: EffectivePolicy) -> Iterator[tuple[Duration, int, str]]:
        """Each duration, the seconds that a policy asks for, and the policy's key for it."""
        if self.files is not None:
            yield self.files, policy.vacuum_retention_seconds, "vacuum.retention"
        if self.log is not None:
            yield self.log, policy.log_retention_seconds, "log.retention"

    def wanted(self, policy: EffectivePolicy) -> tuple[tuple[str, str], ...]:
        """The properties that carry a policy's retention, as they would be set where nothing is set yet."""
        durations = ((one.name, one.written(seconds)) for one, seconds, _ in self.durations(policy))
        return (*durations, *(() if self.cleanup is None else ((self.cleanup, "false"),)))

    def lowered(self, policy: EffectivePolicy) -> tuple[str, ...]:
        """The durations that may be lowered to the policy's: those that somebody set, for the table or a scope of it.

        A default lowers nothing that the table's users wrote. What is asked for never goes below a promise: the
        policy's retention holds that already.
        """
        return tuple(
            one.name
            for one, _, key in self.durations(policy)
            if policy.origins.get(key, "default") != "default"
        )

    def unreadable(self, properties: Mapping[str, str]) -> tuple[str, ...]:
        """The table's properties for durations with an unreadable value: nobody knows how long they mean."""
        return tuple(one.name for one in self._durations() if one.seconds(properties) is None)

    def still_to_set(
        self, properties: Mapping[str, str], wanted: Iterable[tuple[str, str]], *, lowers: Collection[str]
    ) -> tuple[tuple[str, str], ...]:
        """Which of the `wanted` properties a table with these `properties` still needs.

        Of two durations the longer stands, except for the names in `lowers`. One that cannot be read stands, too: it
        may mean longer.
        """
        return tuple(
            (name, value)
            for name, value in wanted
            if not self._stands(name, properties.get(name), value, lowers)
        )

    def keeps(self, name: str) -> bool:
        """Whether a table property is ours to keep through a restore: retention, the owner's and ours, log cleanup,
        requests to us."""
        return self.carries(name) or name in self.owners or name.startswith(_OURS)

    def carries(self, name: str) -> bool:
        """Whether this property, in any case of letters, is a retention."""
        ours = (self.cleanup, *(one.name for one in self._durations()))
        return name.lower() in {one.lower() for one in ours if one is not None}

    def _durations(self) -> tuple[Duration, ...]:
        return tuple(one for one in (self.files, self.log) if one is not None)

    def _stands(self, name: str, present: str | None, wanted: str, lowers: Collection[str]) -> bool:
        if present is None or present == wanted:
            return present is not None
        duration = next((one for one in self._durations() if one.name == name), None)
        if duration is None:
            return False
        has, asked = duration.read(present), duration.read(wanted)
        return has is None or asked is None or has == asked or (has > asked and name not in lowers)


NO_PROPERTIES: Final = RetentionProperties()
"""For formats whose tables keep no retention in properties."""
