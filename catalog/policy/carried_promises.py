"""What was promised of a table goes with it to another namespace: a shorter promise there takes nothing back, and what
is closed to readers stays closed. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from lakewarden.catalog.model.rows import PolicySettings, TableRow
from lakewarden.catalog.policy.differences import differences, values_set
from lakewarden.catalog.policy.effective import PROMISE_KEYS, EffectivePolicy, promise_broken, with_values
from lakewarden.catalog.policy.keys import format_value, policy_key
from lakewarden.catalog.policy.scopes import govern

__all__ = ["carried", "with_promises"]

_PROMISE: Final = "rollback.promise"
_CLOSED: Final = "access.closed"
_RETENTIONS: Final = tuple(sorted(PROMISE_KEYS - {_PROMISE}))


def with_promises(row: TableRow, before: EffectivePolicy, scopes: Mapping[str, TableRow]) -> TableRow:
    """The row under its new scopes, with the promise and the retentions of `before` where theirs would be shorter, and
    closed where it was."""
    promise = _seconds(before.settings, _PROMISE)
    kept = _at_least(row, _PROMISE, promise, scopes)
    is_longer = kept is not row
    for key in _RETENTIONS:
        # A scope may say of a retention what nobody may say beside the promise that came along.
        broken = is_longer and promise_broken(govern(kept, scopes).policy, asked=frozenset({key}))
        least = max(_seconds(before.settings, key), promise if broken else 0)
        kept = _at_least(kept, key, least, scopes)
    if before.settings.access_closed and not govern(kept, scopes).policy.settings.access_closed:
        return replace(kept, policy=with_values(kept.policy, {_CLOSED: True}, admin=True))
    return kept


def carried(before: PolicySettings, after: PolicySettings) -> str | None:
    """What a table's own policy has by now that it did not have, in words."""
    new = {one.key: one.wanted for one in differences("", before, values_set(after))}
    said = [
        f"{key} = {format_value(key, new[key])}"
        for key in (_PROMISE, *_RETENTIONS, _CLOSED)
        if new.get(key) is not None
    ]
    return " and ".join(said) or None


def _at_least(row: TableRow, key: str, seconds: int, scopes: Mapping[str, TableRow]) -> TableRow:
    if _seconds(govern(row, scopes).policy.settings, key) >= seconds:
        return row
    return replace(row, policy=with_values(row.policy, {key: seconds}, admin=True))


def _seconds(settings: PolicySettings, key: str) -> int:
    return int(getattr(settings, policy_key(key).field) or 0)
