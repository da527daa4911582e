"""No value is too absurd to be refused with a sentence, clamped, or named:
whichever door it comes by, nothing stops."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.bounds import LATEST, LONGEST, LONGEST_SECONDS
from lakewarden.catalog.clock import from_millis, to_millis
from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.metastore.parameters import long_value
from lakewarden.catalog.model.rows import HealthRow, PolicySettings, Source
from lakewarden.catalog.observation.health import health_of
from lakewarden.catalog.policy.effective import effective, parse_value, with_values
from lakewarden.catalog.policy.property_requests import record_requests
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import HEALTH
from lakewarden.catalog.validation.context import Subject
from lakewarden.catalog.validation.metastore import Unknown
from lakewarden.catalog.validation.on_change import log_findings
from lakewarden.daemon.settings.keys import parse_knob
from lakewarden.daemon.settings.settings import KNOB_BY_KEY
from lakewarden.jobs.actions.world import World
from lakewarden.jobs.planning.planner import plan
from lakewarden.jobs.rollback.plan.consents import parse_consent
from lakewarden.jobs.runs.head import log_retention
from lakewarden.jobs.sql.parser import parse
from support.builders.tables import observation
from support.builders.worlds import NOW, row, view

MANY_DIGITS = "9" * 400
ABSURD_POLICIES = [
    ("log.retention", "999999999999 days"),
    ("log.retention", f"{MANY_DIGITS} days"),
    ("rollback.promise", "36501 days"),
    ("vacuum.full_every", "99999999 weeks"),
    ("compaction.target", "999999999999999 TiB"),
    ("compaction.target", f"{MANY_DIGITS} B"),
    ("compaction.min_small_files", "99999999999999999999"),
    ("compaction.min_small_files", "9" * 5_000),
    ("compaction.min_small_files", "²"),
    ("log.checkpoint_commits", "1000001"),
]


@pytest.mark.parametrize(
    ("key", "text"), ABSURD_POLICIES, ids=[f"{key}-{at}" for at, (key, _) in enumerate(ABSURD_POLICIES)]
)
def test_an_absurd_policy_is_refused_with_a_sentence(key: str, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_value(key, text)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("key", "text"), ABSURD_POLICIES, ids=[f"{key}-{at}" for at, (key, _) in enumerate(ABSURD_POLICIES)]
)
def test_a_table_property_that_asks_for_it_is_named_and_not_obeyed(key: str, text: str) -> None:
    changed, problems = record_requests(row(), {f"lakewarden.{key}": text}, rewound=False)
    assert changed.policy == PolicySettings()
    assert len(problems) == 1 and key in problems[0]


def test_nobody_sets_a_value_beyond_bounds_by_a_way_that_does_not_parse() -> None:
    with pytest.raises(UsageError, match="cannot be more than 36500 days"):
        with_values(PolicySettings(), {"vacuum.retention": LONGEST_SECONDS + 1}, admin=True)


@pytest.mark.parametrize("number", ["999999999999", "9" * 5_000, "²"], ids=["large", "long", "no digit"])
def test_retain_of_a_statement_has_the_same_bounds(number: str) -> None:
    with pytest.raises(UsageError):
        wanted = parse(f"CONVERT TO DELTA db.t VACUUM RETAIN {number} DAYS")
        with_values(PolicySettings(), {"vacuum.retention": wanted.retain_seconds}, admin=True)  # type: ignore[union-attr]  # it is a ConvertTable, or parse raises


@pytest.mark.parametrize(
    "statement",
    [
        "MARK TABLE db.t VERSION {} BAD",
        "UNMARK TABLE db.t VERSION {}",
        "ROLLBACK TABLE db.t TO VERSION {}",
        "ROLLBACK TABLE db.t BAD VERSIONS 1, {}",
        "SHOW RUNS LIMIT {}",
    ],
)
def test_a_number_of_thousands_of_digits_is_none(statement: str) -> None:
    with pytest.raises(UsageError, match="'9+' is not expected here"):
        parse(statement.format("9" * 5_000))
    parse(statement.format("9" * 20))  # whether the table has such a version is asked of the table


@pytest.mark.parametrize("versions", ["{0}", "3,{0}", "{0}-{0}", "1-{0}"])
def test_a_consent_to_a_version_of_thousands_of_digits_is_none(versions: str) -> None:
    with pytest.raises(UsageError, match="does not say which versions"):
        parse_consent(f"collateral=db.t@{versions.format('9' * 5_000)}")


ABSURD_ROW = PolicySettings(
    rollback_promise_seconds=86_400 * 999_999_999_999,
    vacuum_full_every_seconds=2**62,
    vacuum_max_share=float("inf"),
    compaction_target_bytes=2**62,
    compaction_quiet_seconds=-5,
    compaction_min_small_files=2**62,
    log_retention_seconds=2**62,
)


def test_a_row_that_holds_absurd_values_already_counts_as_the_nearest_bound_and_says_so() -> None:
    policy = effective(source=Source.CONVERT, table=ABSURD_ROW)
    assert policy.vacuum_retention_seconds == policy.log_retention_seconds == LONGEST_SECONDS
    assert (policy.settings.vacuum_max_share, policy.settings.compaction_quiet_seconds) == (1.0, 0)
    odd = view(policy=ABSURD_ROW)
    subject = Subject(
        row=odd.governed.row, policy=odd.governed.policy, seen=observation("x", NOW), before=None, now=NOW
    )
    (said,) = (one.message for one in log_findings(subject, Unknown()) if one.check == "policy_bounds")
    assert "The stored log.retention is beyond the bounds; 36500 days counts instead." in said


@pytest.mark.parametrize("at", ["table", "scope"])
def test_a_plan_is_made_with_absurd_values_on_record(at: str) -> None:
    old: dict[str, Any] = {
        "oldest_tombstone_at": NOW - timedelta(days=30),
        "tombstones": 3,
        "small_files": 50,
        "commits_since_checkpoint": 90,
    }
    scope = replace(row("*"), policy=ABSURD_ROW)
    odd = (
        view("db.odd", policy=ABSURD_ROW, **old) if at == "table" else view("db.odd", scopes=(scope,), **old)
    )
    made = plan(World(tables=(odd, view("db.fine", **old)), has_metastore=True), NOW)
    assert made.of("id-db.odd") and made.of("id-db.fine")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("sweep.interval", "999999999999 days"),
        ("run.lease", f"{MANY_DIGITS} s"),
        ("workers.count", "9" * 5_000),
        ("run.attempts", "²"),
        ("http.port", "²"),
        ("spark.driver_memory", "999999999999999 TiB"),
    ],
)
def test_an_absurd_setting_is_refused_with_a_sentence(key: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"The setting {key} cannot be"):
        parse_knob(KNOB_BY_KEY[key], text)


@pytest.mark.parametrize("millis", [-(2**63), -1, 0, 10**15, 2**63 - 1, 2**64])
def test_every_moment_of_a_log_is_a_date_that_can_be_reckoned_with(millis: int) -> None:
    moment = from_millis(millis)
    assert moment - LONGEST < moment < moment + LONGEST
    assert from_millis(to_millis(moment)) == moment


@pytest.mark.parametrize(
    "interval", ["interval 999999999999 days", f"interval {MANY_DIGITS} days", "interval 1 week"]
)
def test_what_a_table_keeps_by_its_own_property_is_a_duration(interval: str) -> None:
    seen = observation("x", NOW, properties={"delta.logRetentionDuration": interval})
    kept = log_retention(seen)
    assert kept == (timedelta(days=7) if "week" in interval else LONGEST)


ADD = {"path": "a", "partitionValues": {}, "size": 10, "modificationTime": 0, "dataChange": True}


def _commit(folder: Path, number: int, *actions: dict[str, Any]) -> None:
    place = folder / "_delta_log" / f"{number:020}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("\n".join(map(json.dumps, actions)))


def _table(folder: Path, *actions: dict[str, Any]) -> Observation | LogProblem:
    schema = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]}
    metadata = {
        "id": "u",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": {},
    }
    _commit(folder, 0, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata})
    _commit(folder, 1, *actions)
    return DeltaReader().observe(f"file://{folder}")


def _stored(seen: Observation) -> HealthRow:
    policy = effective(source=Source.CONVERT, table=PolicySettings())
    health = health_of(row(), policy, seen, (), now=NOW)
    (back,) = codec(HEALTH).decode(codec(HEALTH).encode([health]))
    stored: HealthRow = back
    return stored


BROKEN: list[Callable[[], dict[str, Any]]] = [
    lambda: {"add": {**ADD, "size": 2**63}},
    lambda: {"add": {**ADD, "size": 2**63 - 1}},
    lambda: {"add": {**ADD, "size": -5}},
    lambda: {"add": {**ADD,
        "deletionVector": {"storageType": "u", "pathOrInlineDv": "x" * 20, "offset": 1, "sizeInBytes": 1,
            "cardinality": 2**62}}},
    lambda: {"remove": {"path": "a", "deletionTimestamp": 2**64 - 1, "dataChange": True, "size": 1}},
]  # fmt: skip
ODD: list[Callable[[], dict[str, Any]]] = [
    lambda: {"commitInfo": {"operation": "WRITE", "timestamp": 9_408_000_000_000_000}},
    lambda: {"commitInfo": {"operation": "WRITE", "timestamp": -(2**62)}},
    lambda: {"commitInfo": {"operation": "WRITE", "inCommitTimestamp": 2**63 - 1}},
    lambda: {"commitInfo": {"operation": "VACUUM START",
        "operationParameters": {"specifiedRetentionMillis": "9" * 5_000}}},
    lambda: {"commitInfo": {"operation": "WRITE", "operationMetrics": {"numOutputRows": "9" * 5_000}}},
    lambda: {"add": {**ADD, "stats": json.dumps({"numRecords": 2**62})}},
    lambda: {"add": {**ADD, "stats": json.dumps({"numRecords": -1})}},
    lambda: {"add": {**ADD, "modificationTime": 2**62}},
    lambda: {"remove": {"path": "a", "deletionTimestamp": 2**62, "dataChange": True, "size": 2**62}},
]  # fmt: skip


@pytest.mark.parametrize("action", BROKEN)
def test_a_log_with_numbers_beyond_all_sense_is_a_problem_of_that_table(
    tmp_path: Path, action: Callable[[], dict[str, Any]]
) -> None:
    seen = _table(tmp_path, action())
    assert isinstance(seen, LogProblem) and seen.check == "log_readable"


@pytest.mark.parametrize("action", ODD)
def test_a_log_with_odd_times_and_counts_is_read_and_its_health_can_be_stored(
    tmp_path: Path, action: Callable[[], dict[str, Any]]
) -> None:
    seen = _table(tmp_path, action())
    assert isinstance(seen, Observation)
    stored = _stored(seen)
    assert stored.version == 1 and stored.observed_at == NOW
    assert list(DeltaReader().commits(f"file://{tmp_path}", after=-1))[-1].committed_at <= LATEST


@pytest.mark.parametrize("count", ["999999999999", "9" * 5_000, "²"])
def test_a_metastore_entry_that_claims_a_billion_parts_is_not_counted_through(count: str) -> None:
    assert long_value({"k.numParts": count, "k.part.0": "x"}, "k") is None
