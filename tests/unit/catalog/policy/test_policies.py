"""Policies: levels, floors, promises, and the words users write."""

import pytest

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.catalog.model.rows import Mode, PolicySettings, Source
from lakewarden.catalog.policy.effective import (
    DEFAULTS,
    POLICY_KEYS,
    check_promise,
    effective,
    format_value,
    parse_value,
    property_requests,
    with_values,
)

DAY = 86_400


def test_a_table_overrides_its_namespace_which_overrides_everything_which_overrides_the_default() -> None:
    merged = effective(
        source=Source.CONVERT,
        table=PolicySettings(vacuum_retention_seconds=3 * DAY),
        scopes=(
            ("*", PolicySettings(vacuum_retention_seconds=10 * DAY, log_retention_seconds=11 * DAY)),
            ("db.*", PolicySettings(vacuum_retention_seconds=20 * DAY, compaction_enabled=False)),
        ),
    )
    assert merged.settings.vacuum_retention_seconds == 3 * DAY
    assert merged.settings.compaction_enabled is False
    assert merged.settings.log_retention_seconds == 11 * DAY
    assert merged.settings.statistics_enabled is True
    assert {
        key: merged.origins[key] for key in ("vacuum.retention", "compaction.enabled", "log.retention")
    } == {
        "vacuum.retention": "table",
        "compaction.enabled": "db.*",
        "log.retention": "*",
    }
    assert merged.origins["statistics.enabled"] == "default"


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        (Source.SELF, Mode.MANAGE),
        (Source.CONVERT, Mode.MANAGE),
        (Source.REGISTER, Mode.OBSERVE),
        (Source.DISCOVER, Mode.OBSERVE),
    ],
)
def test_tables_we_made_are_managed_and_tables_we_were_shown_are_observed(source: Source, mode: Mode) -> None:
    assert effective(source=source, table=PolicySettings()).mode is mode


def test_what_vacuum_keeps_is_never_shorter_than_the_promise() -> None:
    merged = effective(
        source=Source.CONVERT,
        table=PolicySettings(rollback_promise_seconds=30 * DAY, vacuum_retention_seconds=7 * DAY),
    )
    assert merged.vacuum_retention_seconds == 30 * DAY
    assert merged.log_retention_seconds == 30 * DAY


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("vacuum.retention", "30 days", 30 * DAY),
        ("vacuum.retention", "12h", 12 * 3600),
        ("compaction.target", "128 MiB", 128 * 1024 * 1024),
        ("statistics.stale_share", "10%", 0.1),
        ("statistics.stale_share", "0.25", 0.25),
        ("vacuum.enabled", "off", False),
        ("mode", "Manage", Mode.MANAGE),
        ("quiet_hours", "08:00-18:00", "08:00-18:00"),
        ("compaction.min_small_files", "50", 50),
    ],
)
def test_values_are_read_as_people_write_them(key: str, text: str, value: object) -> None:
    assert parse_value(key, text) == value


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("vacuum.retention", "-3 days"),
        ("vacuum.retention", "soon"),
        ("compaction.target", "0 B"),
        ("statistics.stale_share", "140%"),
        ("compaction.min_small_files", "-1"),
        ("mode", "sometimes"),
        ("quiet_hours", "25:00-26:00"),
        ("vacuum.retentoin", "3 days"),
    ],
)
def test_nonsense_is_refused_with_a_hint(key: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_value(key, text)
    assert caught.value.hint


@pytest.mark.parametrize("key", POLICY_KEYS, ids=lambda key: key.key)
def test_what_is_formatted_can_be_read_back(key: object) -> None:
    value = getattr(DEFAULTS, key.field)  # type: ignore[attr-defined]  # parametrized with PolicyKey
    if value is not None:
        assert parse_value(key.key, format_value(key.key, value)) == value  # type: ignore[attr-defined]  # as above


def test_only_an_admin_goes_below_a_floor() -> None:
    low = {"vacuum.retention": 60}
    with pytest.raises(NotAllowedError, match="below the floor of 1 day"):
        with_values(PolicySettings(), low, admin=False)
    assert with_values(PolicySettings(), low, admin=True).vacuum_retention_seconds == 60


def test_none_goes_back_to_the_level_above() -> None:
    settings = with_values(PolicySettings(vacuum_enabled=False), {"vacuum.enabled": None}, admin=False)
    assert settings.vacuum_enabled is None


def test_a_retention_shorter_than_the_promise_is_refused_when_somebody_sets_it() -> None:
    merged = effective(source=Source.CONVERT, table=PolicySettings(vacuum_retention_seconds=2 * DAY))
    with pytest.raises(UsageError, match="shorter than rollback.promise"):
        check_promise(merged, asked=frozenset({"vacuum.retention"}))
    check_promise(merged, asked=frozenset({"compaction.enabled"}))
    assert merged.vacuum_retention_seconds == 7 * DAY


def test_table_properties_are_requests_and_unreadable_ones_are_named() -> None:
    values, problems = property_requests(
        {"lakewarden.vacuum.retention": "9 days", "lakewarden.mode": "perhaps", "delta.appendOnly": "true"}
    )
    assert values == {"vacuum.retention": 9 * DAY}
    assert len(problems) == 1
    assert "perhaps" in problems[0]
