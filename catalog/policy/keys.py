"""The policy keys: one table says everything about each, and how its values are written and read. Pure.

`POLICY_KEYS` feeds the documentation, the CLI, the SQL and the stored columns. Values are parsed from the words users
write: `30 days`, `128 MiB`, `10%`, `yes`.
"""

import re
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final

from lakewarden.catalog.bounds import LARGEST_BYTES, LONGEST_SECONDS, MOST, as_whole
from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.rows import Mode, PolicySettings
from lakewarden.catalog.units import (
    DAY,
    HOUR,
    MIB,
    did_you_mean,
    format_bytes,
    format_seconds,
    parse_bytes,
    parse_seconds,
    parse_share,
)

__all__ = [
    "DEFAULTS",
    "POLICY_BY_KEY",
    "POLICY_KEYS",
    "PolicyKey",
    "PolicyKind",
    "Value",
    "bounded",
    "check_bounds",
    "format_value",
    "parse_value",
    "policy_key",
]

Value = Mode | int | float | bool | str


class PolicyKind(StrEnum):
    """How a policy value is written and stored."""

    MODE = "mode"
    DURATION = "duration"
    SIZE = "size"
    COUNT = "count"
    SHARE = "share"
    SWITCH = "switch"
    HOURS = "hours"


_MOST: Final = {PolicyKind.DURATION: LONGEST_SECONDS, PolicyKind.SIZE: LARGEST_BYTES, PolicyKind.COUNT: MOST}


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyKey:
    """One policy key: the name users write, the field it is stored in, its default and floor, and what it is for."""

    key: str
    field: str
    kind: PolicyKind
    default: Value | None
    doc: str
    floor: int | None = None

    @property
    def most(self) -> int | None:
        """The highest value anybody may set; None where the kind itself has an end."""
        return _MOST.get(self.kind)


POLICY_KEYS: tuple[PolicyKey, ...] = (
    PolicyKey(
        key="mode",
        field="mode",
        kind=PolicyKind.MODE,
        default=None,
        doc="`manage` lets the daemon act, `observe` only looks. Default: manage if lakewarden converted "
        "or made the table, observe if it was registered or found.",
    ),
    PolicyKey(
        key="rollback.promise",
        field="rollback_promise_seconds",
        kind=PolicyKind.DURATION,
        default=7 * DAY,
        doc="Any commit younger than this can be undone: its parent version stays restorable.",
    ),
    PolicyKey(
        key="rollback.trust_plans",
        field="rollback_trust_plans",
        kind=PolicyKind.SWITCH,
        default=False,
        doc="Let rollbacks move the table by what only the executed plan of a session showed that it read "
        "(confidence `plan`); without it such commits count as unknown.",
    ),
    PolicyKey(
        key="vacuum.enabled",
        field="vacuum_enabled",
        kind=PolicyKind.SWITCH,
        default=True,
        doc="Remove files no protected version can reach.",
    ),
    PolicyKey(
        key="vacuum.retention",
        field="vacuum_retention_seconds",
        kind=PolicyKind.DURATION,
        default=7 * DAY,
        floor=24 * HOUR,
        doc="Keep removed files at least this long; never shorter than the promise.",
    ),
    PolicyKey(
        key="vacuum.full_every",
        field="vacuum_full_every_seconds",
        kind=PolicyKind.DURATION,
        default=30 * DAY,
        floor=HOUR,
        doc="How often a full listing looks for files that no log entry names.",
    ),
    PolicyKey(
        key="vacuum.max_share",
        field="vacuum_max_share",
        kind=PolicyKind.SHARE,
        default=0.5,
        doc="Size breaker: a vacuum that would delete more than this share of the table's files or bytes "
        "waits for consent.",
    ),
    PolicyKey(
        key="compaction.enabled",
        field="compaction_enabled",
        kind=PolicyKind.SWITCH,
        default=True,
        doc="Rewrite small files into larger ones.",
    ),
    PolicyKey(
        key="compaction.target",
        field="compaction_target_bytes",
        kind=PolicyKind.SIZE,
        default=128 * MIB,
        floor=MIB,
        doc="Size to aim for; files below half of it count as small.",
    ),
    PolicyKey(
        key="compaction.min_small_files",
        field="compaction_min_small_files",
        kind=PolicyKind.COUNT,
        default=20,
        floor=2,
        doc="Leave a table alone below this many small files. Fewer than 4 that would only become another "
        "small file are left alone in any case.",
    ),
    PolicyKey(
        key="compaction.quiet",
        field="compaction_quiet_seconds",
        kind=PolicyKind.DURATION,
        default=15 * 60,
        doc="Compact only when nobody has written for this long, so that users' writers do not conflict.",
    ),
    PolicyKey(
        key="compaction.beside_writers",
        field="compaction_beside_writers",
        kind=PolicyKind.SWITCH,
        default=False,
        doc="Let a compaction commit after users' commits made while it ran, unless Delta finds that these "
        "touched its files. For tables under constant writes; otherwise a compaction gives way to any commit.",
    ),
    PolicyKey(
        key="compaction.deleted_share",
        field="compaction_deleted_share",
        kind=PolicyKind.SHARE,
        default=0.1,
        doc="Rewrite files without their deleted rows once this share of the table's rows is deleted, by deletion "
        "vectors or by delete files; or once there are as many of these as `compaction.min_small_files`, and scans "
        "save within a month what rewriting costs.",
    ),
    PolicyKey(
        key="statistics.enabled",
        field="statistics_enabled",
        kind=PolicyKind.SWITCH,
        default=True,
        doc="Fill missing file statistics and refresh table and column statistics in the metastore; of Iceberg tables, "
        "those that they keep themselves.",
    ),
    PolicyKey(
        key="statistics.stale_share",
        field="statistics_stale_share",
        kind=PolicyKind.SHARE,
        default=0.1,
        doc="Refresh once this share of the rows or bytes changed since the last refresh.",
    ),
    PolicyKey(
        key="log.enabled",
        field="log_enabled",
        kind=PolicyKind.SWITCH,
        default=True,
        doc="Write checkpoints where writers make none and clean the log behind the promise; of Iceberg tables, care "
        "for manifests, metadata files and branches that lakewarden left.",
    ),
    PolicyKey(
        key="log.checkpoint_commits",
        field="log_checkpoint_commits",
        kind=PolicyKind.COUNT,
        default=50,
        floor=2,
        doc="Write a checkpoint when this many commits came after the last one; join the small manifests of an Iceberg "
        "table once there are this many.",
    ),
    PolicyKey(
        key="log.retention",
        field="log_retention_seconds",
        kind=PolicyKind.DURATION,
        default=30 * DAY,
        floor=24 * HOUR,
        doc="Keep log entries, and metadata files of Iceberg tables, at least this long; never shorter than the "
        "promise.",
    ),
    PolicyKey(
        key="metastore.sync",
        field="metastore_sync",
        kind=PolicyKind.SWITCH,
        default=True,
        doc="Keep the metastore entry's location, provider, columns and comments equal to the table.",
    ),
    PolicyKey(
        key="quiet_hours",
        field="quiet_hours",
        kind=PolicyKind.HOURS,
        default="",
        doc="UTC hours without maintenance, such as `08:00-18:00`; empty means none. What runs when they begin stops "
        "before its next step.",
    ),
    PolicyKey(
        key="access.closed",
        field="access_closed",
        kind=PolicyKind.SWITCH,
        default=False,
        doc="Of the gateway's readers only the table's owner may query it, by name or through views.",
    ),
)
POLICY_BY_KEY = {key.key: key for key in POLICY_KEYS}
DEFAULTS = PolicySettings(**{key.field: key.default for key in POLICY_KEYS if key.default is not None})  # type: ignore[arg-type]  # the table above pairs each field with its own type

_SHOWN: Final = 60
"""So much of what somebody wrote is shown to them."""
_HOURS = re.compile(r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$")


def parse_value(key: str, text: str) -> Value:
    """Parse what a user wrote for a key. Raises `UsageError` for an unknown key, nonsense,
    and what is beyond bounds."""
    spec = policy_key(key)
    parser = {
        PolicyKind.MODE: _parse_mode,
        PolicyKind.DURATION: _parse_duration,
        PolicyKind.SIZE: parse_bytes,
        PolicyKind.COUNT: _parse_count,
        PolicyKind.SHARE: parse_share,
        PolicyKind.SWITCH: _parse_switch,
        PolicyKind.HOURS: _parse_hours,
    }[spec.kind]
    value = parser(text.strip())
    if value is None:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        what = "span of hours" if spec.kind is PolicyKind.HOURS else spec.kind
        raise UsageError(f"'{shown}' is not a valid {what} for {key}.", hint=_EXAMPLES[spec.kind])
    check_bounds(key, value)
    return value


def check_bounds(key: str, value: Value | None) -> None:
    """Raise `UsageError` for a value that nobody may set."""
    most = policy_key(key).most
    if most is not None and isinstance(value, int) and value > most:
        raise UsageError(
            f"{key} cannot be more than {format_value(key, most)}.", hint="Choose a value within the bounds."
        )


def bounded(spec: PolicyKey, value: Value) -> Value:
    """A stored value as it counts: one that nobody could set today counts as the nearest that somebody may."""
    if isinstance(value, bool):
        return value
    if spec.kind is PolicyKind.SHARE and isinstance(value, int | float):
        return value if 0 <= value <= 1 else float(value > 1)
    if spec.most is not None and isinstance(value, int):
        return min(max(value, 0), spec.most)
    return value


def format_value(key: str, value: Value | None) -> str:
    """A value in the words `parse_value` reads back."""
    if value is None:
        return ""
    kind = policy_key(key).kind
    if isinstance(value, bool):
        return "yes" if value else "no"
    if kind is PolicyKind.DURATION and isinstance(value, int):
        return format_seconds(value)
    if kind is PolicyKind.SIZE and isinstance(value, int):
        return format_bytes(value)
    if kind is PolicyKind.SHARE and isinstance(value, float | int):
        return f"{value * 100:g}%"
    return str(value)


_EXAMPLES = {
    PolicyKind.MODE: "Use `observe` or `manage`.", PolicyKind.DURATION: "Write it like `30 days` or `12 hours`.",
    PolicyKind.SIZE: "Write it like `128 MiB`.", PolicyKind.COUNT: "Write a whole number above zero.",
    PolicyKind.SHARE: "Write it like `10%` or `0.1`.", PolicyKind.SWITCH: "Use `yes` or `no`.",
    PolicyKind.HOURS: "Write it like `08:00-18:00` (UTC), or leave it empty.",
}  # fmt: skip


def policy_key(key: str) -> PolicyKey:
    """The entry of the table for a key; UsageError for an unknown one."""
    if key not in POLICY_BY_KEY:
        hint = did_you_mean(key.lower(), POLICY_BY_KEY, otherwise=f"Keys are: {', '.join(POLICY_BY_KEY)}.")
        raise UsageError(f"There is no policy key '{key}'.", hint=hint)
    return POLICY_BY_KEY[key]


def _parse_mode(text: str) -> Mode | None:
    return Mode(text.lower()) if text.lower() in set(Mode) else None


def _parse_duration(text: str) -> int | None:
    seconds = parse_seconds(text)
    # One more than allowed stands for all that is too much: what is infinite to a float cannot be rounded.
    return None if seconds is None else round(min(seconds, LONGEST_SECONDS + 1))


def _parse_count(text: str) -> int | None:
    return as_whole(text) or None


def _parse_switch(text: str) -> bool | None:
    return {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}.get(
        text.lower()
    )


def _parse_hours(text: str) -> str | None:
    return text if text == "" or _HOURS.match(text) else None


assert {key.field for key in POLICY_KEYS} == {field.name for field in fields(PolicySettings)}
