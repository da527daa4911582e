"""Of two retentions the longer stands, unless somebody asked for less: when deciding, and when acting."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.formats.delta.retention import CLEANUP, DELTA_RETENTION, FILES, LOG
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import PolicySettings, Source
from lakewarden.catalog.policy.effective import DownstreamPromise, EffectivePolicy, effective
from lakewarden.catalog.policy.retention_properties import interval_seconds
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.units import DAY
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.actions.properties import SetProperties, properties_action
from lakewarden.jobs.actions.registry import decode, encode
from lakewarden.jobs.executors.convert import convert
from lakewarden.jobs.executors.log_care import log_care
from lakewarden.jobs.executors.properties import set_properties
from support.builders.maintenance import AskedEngine, ValueReader, commit, context, seen
from support.builders.runs import Bench, delta_table, parquet_file

LONG = {FILES: "interval 365 days", LOG: "interval 365 days"}


def policy(table: PolicySettings | None = None, **scopes: PolicySettings) -> EffectivePolicy:
    return effective(source=Source.CONVERT, table=table or PolicySettings(), scopes=tuple(scopes.items()))


def still(properties: dict[str, str], of: EffectivePolicy) -> dict[str, str]:
    return dict(
        DELTA_RETENTION.still_to_set(
            properties, DELTA_RETENTION.wanted(of), lowers=DELTA_RETENTION.lowered(of)
        )
    )


def test_a_default_policy_sets_only_what_is_unset() -> None:
    week = {FILES: "interval 7 days", LOG: "interval 30 days", CLEANUP: "false"}
    assert still({}, policy()) == week
    assert still(LONG, policy()) == {CLEANUP: "false"}
    assert still({FILES: LONG[FILES]}, policy()) == {LOG: week[LOG], CLEANUP: "false"}
    assert still({LOG: LONG[LOG], CLEANUP: "false"}, policy()) == {FILES: week[FILES]}


@pytest.mark.parametrize(
    "asked",
    [
        policy(PolicySettings(vacuum_retention_seconds=90 * DAY)),
        policy(db=PolicySettings(vacuum_retention_seconds=90 * DAY)),
        policy(PolicySettings(vacuum_retention_seconds=8 * DAY, rollback_promise_seconds=90 * DAY)),
        replace(
            policy(PolicySettings(vacuum_retention_seconds=8 * DAY)),
            downstream=DownstreamPromise(seconds=90 * DAY, name="db.derived"),
        ),
    ],
    ids=["the table's policy", "a scope's policy", "not below the promise", "nor below one downstream"],
)
def test_who_asks_for_less_gets_it_for_that_property_alone(asked: EffectivePolicy) -> None:
    assert still(LONG, asked) == {FILES: "interval 90 days", CLEANUP: "false"}


def test_a_promise_alone_asks_for_more_never_for_less() -> None:
    promised = policy(PolicySettings(rollback_promise_seconds=90 * DAY))
    assert still(LONG, promised) == {CLEANUP: "false"}
    assert still({FILES: "interval 1 week"}, promised)[FILES] == "interval 90 days"


@pytest.mark.parametrize("value", ["soon", "interval 1 month", "", "interval -3 days"])
def test_a_retention_that_is_no_duration_is_left_as_it_is(value: str) -> None:
    asked = policy(PolicySettings(vacuum_retention_seconds=90 * DAY, log_retention_seconds=90 * DAY))
    assert still({FILES: value, LOG: value}, asked) == {CLEANUP: "false"}
    assert DELTA_RETENTION.unreadable({FILES: value, LOG: "interval 1 day"}) == (FILES,)


def test_the_same_duration_in_other_words_needs_no_commit() -> None:
    assert still({FILES: "interval 1 week", LOG: "720 hours", CLEANUP: "false"}, policy()) == {}


def test_more_than_a_thousand_years_can_still_be_reckoned_with() -> None:
    seconds = interval_seconds("interval 999999999999999 days")
    assert seconds is not None and timedelta(seconds=seconds) < timedelta(days=366_000)


@pytest.mark.parametrize("unset", [FILES, LOG, CLEANUP])
def test_an_owners_year_survives_that_another_property_was_unset(tmp_path: Path, unset: str) -> None:
    """Lowered to 7 and 30 days, 40-day-old versions went."""
    location, bench = delta_table(tmp_path / "t"), Bench()
    owners = {name: value for name, value in {**LONG, CLEANUP: "false"}.items() if name != unset}
    DeltaTable(location).alter.set_table_properties(owners)
    version = bench.seen(location).version
    report = set_properties(
        bench.context(location), properties_action(policy(), DELTA_RETENTION, Head(version))
    )
    assert report.message == f"set {unset}"
    assert owners.items() <= bench.seen(location).properties.items()


def test_an_owner_who_sets_a_year_after_the_run_was_queued_keeps_it(tmp_path: Path) -> None:
    location, bench = delta_table(tmp_path / "t"), Bench()
    DeltaTable(location).alter.set_table_properties({**LONG, CLEANUP: "false"})
    planned = decode(encode(properties_action(policy(), DELTA_RETENTION, Head(bench.seen(location).version))))
    assert isinstance(planned, SetProperties)
    assert set_properties(bench.context(location), planned).skipped


def test_a_conversion_that_is_finished_later_keeps_the_retention_set_meanwhile(tmp_path: Path) -> None:
    bench, location = Bench(), canonical(str(tmp_path / "t"))
    parquet_file(tmp_path / "t" / "a.parquet")
    bench.engine.convert(name=None, location=location, partitioned_by=(), statistics=True, run_id="run-1")
    DeltaTable(location).alter.set_table_properties(LONG)
    wanted = Convert(name=None, location=location, properties=DELTA_RETENTION.wanted(policy()))
    report = convert(bench.context(location), wanted)
    assert report.committed_version == bench.seen(location).version
    assert {**LONG, CLEANUP: "false"}.items() <= bench.seen(location).properties.items()


@pytest.mark.parametrize(
    ("own", "asked"),
    [
        ({LOG: "interval 15 days"}, ["clean 3"]),
        ({LOG: "interval 1 day"}, ["clean 11"]),
        ({}, ["clean 11"]),
        ({LOG: "soon"}, []),
    ],
    ids=["longer than the policy", "shorter", "unset", "no duration"],
)
def test_log_care_honours_the_tables_own_log_retention(own: dict[str, str], asked: list[str]) -> None:
    engine = AskedEngine()
    history = [commit(version, 18.5 - version) for version in range(19)]
    one = ValueReader(
        observation=seen("file:///t", 18, committed_at=history[-1].committed_at, properties=own),
        history=history,
    )
    action = LogCare(requires=Head(18), retention_seconds=7 * DAY, checkpoint=False, clean_before_version=18)
    report = log_care(context("/t", one, engine), action)
    assert engine.asked == asked and report.skipped
    assert ("is not a duration" in report.message) == (not asked)
