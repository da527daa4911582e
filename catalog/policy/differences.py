"""The changes from one policy to another. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakewarden.catalog.model.rows import PolicySettings
from lakewarden.catalog.policy.keys import POLICY_KEYS, Value, format_value

__all__ = ["Difference", "Wanted", "changed_meanwhile", "differences", "values_set"]

Wanted = Mapping[str, Mapping[str, Value]]
"""By the name of a table or scope, the keys that are set there; no keys: nothing is set there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A key of a table or scope with what it is and what it is to be; None is not set."""

    name: str
    key: str
    now: Value | None
    wanted: Value | None


def values_set(settings: PolicySettings) -> Mapping[str, Value]:
    """The keys that are set at one level."""
    values = {key.key: getattr(settings, key.field) for key in POLICY_KEYS}
    return {key: value for key, value in values.items() if value is not None}


def differences(name: str, settings: PolicySettings, wanted: Mapping[str, Value]) -> tuple[Difference, ...]:
    """What differs, in the order of the keys. What is not among those that are `wanted` is to be set no more."""
    now = values_set(settings)
    return tuple(
        Difference(name=name, key=key.key, now=now.get(key.key), wanted=wanted.get(key.key))
        for key in POLICY_KEYS
        if now.get(key.key) != wanted.get(key.key)
    )


def changed_meanwhile(name: str, seen: PolicySettings, now: PolicySettings) -> str | None:
    """What somebody else changed after it was `seen`, as a sentence."""
    changed = differences(name, seen, values_set(now))
    if not changed:
        return None
    said = ", ".join(
        f"{one.key} is now {'not set' if one.wanted is None else format_value(one.key, one.wanted)}"
        for one in changed
    )
    return f"Somebody else changed the policy of {name} meanwhile: {said}."
