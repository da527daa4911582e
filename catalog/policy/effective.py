"""Policies: documented defaults < namespace < table, with floors that only an admin lowers. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.catalog.model.rows import Mode, PolicySettings, Source
from lakewarden.catalog.policy.keys import (
    DEFAULTS,
    POLICY_BY_KEY,
    POLICY_KEYS,
    Value,
    bounded,
    check_bounds,
    format_value,
    parse_value,
    policy_key,
)
from lakewarden.catalog.units import format_seconds

__all__ = [
    "DEFAULTS",
    "POLICY_KEYS",
    "PROMISE_KEYS",
    "DownstreamPromise",
    "EffectivePolicy",
    "Value",
    "check_promise",
    "default_mode",
    "effective",
    "format_value",
    "parse_value",
    "promise_broken",
    "property_requests",
    "with_values",
]

_PROMISE: Final = "rollback.promise"
_RETENTIONS: Final = ("vacuum.retention", "log.retention")
PROMISE_KEYS: Final = frozenset({_PROMISE, *_RETENTIONS})
"""Keys that, set at one level, may break a promise at another."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DownstreamPromise:
    """What a derived table promises longer than its source does, in seconds, and the derived table's name."""

    seconds: int
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectivePolicy:
    """The merged settings (every field set)."""

    settings: PolicySettings
    origins: Mapping[str, str]
    """Per key, the level the value comes from: default, a scope, or table."""
    downstream: DownstreamPromise | None = None
    """Set where lineage obliges the table to keep more than it promises itself."""
    beyond: tuple[str, ...] = ()
    """The keys whose stored value is beyond the bounds: the nearest value within them counts."""

    @property
    def mode(self) -> Mode:
        return self.settings.mode or Mode.OBSERVE

    @property
    def vacuum_retention_seconds(self) -> int:
        """What vacuum must keep: the policy, and never less than the promise, its own or one downstream."""
        return max(_int(self.settings.vacuum_retention_seconds), self._promised_seconds)

    @property
    def log_retention_seconds(self) -> int:
        """What log cleanup must keep: the policy, and never less than the promise, its own or one downstream."""
        return max(_int(self.settings.log_retention_seconds), self._promised_seconds)

    @property
    def held_by(self) -> str | None:
        """The derived table that makes vacuum keep more than the table's own policy would, in words."""
        own = replace(self, downstream=None).vacuum_retention_seconds
        if self.downstream is None or self.downstream.seconds <= own:
            return None
        return (
            f"{self.downstream.name} is derived from it and promises "
            f"{format_seconds(self.downstream.seconds)}"
        )

    @property
    def _promised_seconds(self) -> int:
        own = _int(self.settings.rollback_promise_seconds)
        return own if self.downstream is None else max(own, self.downstream.seconds)


def default_mode(source: Source) -> Mode:
    """Tables that lakewarden made are managed, tables it was shown or found are only observed until someone asks."""
    return Mode.MANAGE if source in (Source.SELF, Source.CONVERT) else Mode.OBSERVE


def effective(
    *, source: Source, table: PolicySettings, scopes: tuple[tuple[str, PolicySettings], ...] = ()
) -> EffectivePolicy:
    """Merge defaults < scopes (widest first, each with its name) < table."""
    levels = (("default", replace(DEFAULTS, mode=default_mode(source))), *scopes, ("table", table))
    values: dict[str, Value | None] = {}
    origins: dict[str, str] = {}
    beyond: dict[str, bool] = {}
    for key in POLICY_KEYS:
        for level, settings in levels:
            value = getattr(settings, key.field)
            if value is not None:
                counts = bounded(key, value)
                values[key.field], origins[key.key], beyond[key.key] = counts, level, counts != value
    settings = PolicySettings(**values)  # type: ignore[arg-type]  # copied field by field
    return EffectivePolicy(
        settings=settings,
        origins=origins,
        beyond=tuple(key for key, is_beyond in beyond.items() if is_beyond),
    )


def with_values(
    settings: PolicySettings, values: Mapping[str, Value | None], *, admin: bool
) -> PolicySettings:
    """Set keys at one level (None unsets). Raises `NotAllowedError` below a floor unless `admin`,
    `UsageError` beyond bounds.

    Whether the merged result keeps the promise is checked by `check_promise` on the effective policy.
    """
    changed: dict[str, Value | None] = {}
    for key, value in values.items():
        spec = policy_key(key)
        check_bounds(key, value)
        if spec.floor is not None and isinstance(value, int) and value < spec.floor and not admin:
            raise NotAllowedError(
                f"{key} = {format_value(key, value)} is below the floor of {format_value(key, spec.floor)}.",
                hint="Ask an admin, or choose a higher value.",
            )
        changed[spec.field] = value
    return replace(settings, **changed)  # type: ignore[arg-type]  # parse_value made each value for its own field


def check_promise(policy: EffectivePolicy, *, asked: frozenset[str]) -> None:
    """Refuse a retention that someone just set shorter than the promise in force. Raises `UsageError`."""
    broken = promise_broken(policy, asked=asked)
    if broken is not None:
        raise broken


def promise_broken(policy: EffectivePolicy, *, asked: frozenset[str]) -> UsageError | None:
    """Why a retention is shorter than the promise in force where one of the two was `asked` for; None if it is not."""
    promise = _int(policy.settings.rollback_promise_seconds)
    for key in _RETENTIONS:
        value = _int(getattr(policy.settings, policy_key(key).field))
        if value < promise and (key in asked or _PROMISE in asked) and policy.origins[key] != "default":
            return UsageError(
                f"{key} = {format_value(key, value)} is shorter than {_PROMISE} "
                f"= {format_value(_PROMISE, promise)}.",
                hint="Lower rollback.promise first, or keep the retention at least as long.",
            )
    return None


def property_requests(properties: Mapping[str, str]) -> tuple[Mapping[str, Value], tuple[str, ...]]:
    """Policy requests in table properties (`lakewarden.vacuum.retention`): parsed values, and what cannot be read."""
    values: dict[str, Value] = {}
    problems: list[str] = []
    for name, text in properties.items():
        key = name.removeprefix("lakewarden.")
        if key == name or key not in POLICY_BY_KEY:
            continue
        try:
            values[key] = parse_value(key, text)
        except UsageError as error:
            problems.append(str(error))
    return values, tuple(problems)


def _int(value: int | None) -> int:
    return value or 0
