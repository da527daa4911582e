"""The checks one by one: what they find, in whose words, and since when."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.clock import from_millis
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.delta.retention import FILES, LOG
from lakewarden.catalog.formats.delta.segment import listing_of, segment_of
from lakewarden.catalog.formats.port import Capabilities, LogProblem, Maintenance, Observation
from lakewarden.catalog.metastore.port import Entry, EntryColumn
from lakewarden.catalog.model.rows import (
    DELTA,
    Column,
    Finding,
    HealthRow,
    Mode,
    PolicySettings,
    Severity,
)
from lakewarden.catalog.policy.effective import effective
from lakewarden.catalog.policy.retention_properties import interval_seconds
from lakewarden.catalog.storage.file_store import FileEntry, StorageOptions, canonical
from lakewarden.catalog.units import DAY, HOUR
from lakewarden.catalog.validation.checks import CHECK_BY_NAME, CHECKS
from lakewarden.catalog.validation.commit_times import clock_findings
from lakewarden.catalog.validation.context import Subject
from lakewarden.catalog.validation.metastore import Answer, KnownEntry, Silent, Unknown, metastore_findings
from lakewarden.catalog.validation.nesting import Neighbours, location_findings
from lakewarden.catalog.validation.on_change import gone_findings, on_change_findings
from lakewarden.catalog.validation.partitions import partition_findings, unknown_partitions
from lakewarden.catalog.validation.retention import retention_findings
from support.builders.commits import changed, counted, observed
from support.builders.delta_logs import LogWriter, add
from support.builders.worlds import DAY as ONE_DAY
from support.builders.worlds import NOW, row

CAN = Capabilities(restore=True, vacuum=True, compact=True, file_statistics=True)
SEEN = observed(
    format=DELTA,
    location="file:///lake/db/t",
    version=5,
    committed_at=NOW - ONE_DAY,
    format_id="uuid",
    schema=(Column(id=1, path="id", type="bigint"),),
    capabilities=CAN,
    properties={"delta.enableExpiredLogCleanup": "false"},
)


def subject(
    seen: Observation | LogProblem = SEEN,
    *,
    findings: tuple[Finding, ...] = (),
    version: int = 5,
    mode: Mode = Mode.MANAGE,
    **row_changes: Any,
) -> Subject:
    table = row(**{"name": "db.t", **row_changes})
    health = HealthRow(
        table_id=table.table_id, name=table.name, version=version, findings=findings, observed_at=NOW
    )
    policy = effective(source=table.source, table=PolicySettings(mode=mode))
    return Subject(row=table, policy=policy, seen=seen, before=health, now=NOW)


UNKNOWN = Unknown()
OTHER = "5fb7372b-a03c-4e4f-b779-05fec3b214dd"


def kept_by(installation: str | None, **changes: Any) -> KnownEntry:
    marks = {} if installation is None else {"lakewarden.installation": installation}
    values: dict[str, Any] = {
        "database": "db", "table": "t", "location": SEEN.location, "provider": "delta",
        "table_type": "EXTERNAL_TABLE", "parameters": {"lakewarden.table_id": "theirs", **marks},
    }  # fmt: skip
    return KnownEntry(entry=Entry(**{**values, **changes}), strict=False)


def said_of_others(
    answer: Answer = UNKNOWN, *maintained: Maintenance, findings: tuple[Finding, ...] = ()
) -> list[str]:
    asked = subject(changed(SEEN, maintained=maintained), findings=findings, location=SEEN.location)
    found = on_change_findings(replace(asked, installation="ours"), answer)
    return [one.message for one in found if one.check == "another_installation"]


def commit_of(installation: str, *, days_ago: int = 1) -> Maintenance:
    return Maintenance(installation=installation, version=4, at=NOW - days_ago * ONE_DAY)


def test_a_fresh_commit_of_another_installation_is_said_with_its_id_and_version() -> None:
    said = f"Another installation of lakewarden ({OTHER}) looks after the table, too: it committed version 4."
    assert said_of_others(UNKNOWN, commit_of("ours"), commit_of(OTHER)) == [said]
    assert said_of_others(UNKNOWN, commit_of("ours")) == []
    assert said_of_others(UNKNOWN, commit_of(OTHER, days_ago=8)) == [], "it may have left since"
    assert said_of_others() == []


def test_an_entry_that_belongs_to_another_installation_is_said_and_its_owner_stays() -> None:
    said = f"The metastore's entry belongs to another installation of lakewarden ({OTHER})."
    assert said_of_others(kept_by(OTHER)) == [said]
    assert said_of_others(kept_by("ours")) == said_of_others(kept_by(None)) == []
    assert said_of_others(kept_by(OTHER, location="file:///lake/elsewhere")) == [], "another table's"
    found = Finding(check="another_installation", severity=Severity.WARNING, message=said, since=NOW)
    assert said_of_others(Silent(), findings=(found,)) == [said], "nobody says that it has changed"
    assert said_of_others(kept_by("ours"), findings=(found,)) == []


def checks(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.check for finding in findings]


def test_a_healthy_table_has_no_findings() -> None:
    assert on_change_findings(subject(), Unknown()) == ()


def test_a_log_problem_quarantines_in_the_readers_words() -> None:
    found = on_change_findings(subject(LogProblem(check="log_readable", message="Line 1 is odd.")), Unknown())
    assert [(one.check, one.message) for one in found] == [("log_readable", "Line 1 is odd.")]
    assert [one.severity for one in found] == [Severity.ERROR]


def test_a_finding_keeps_the_time_since_when_it_holds() -> None:
    earlier = Finding(
        check="owner_set", severity=Severity.WARNING, message="as it was", since=NOW - 3 * ONE_DAY
    )
    (found,) = on_change_findings(subject(owner="", findings=(earlier,)), Unknown())
    assert (found.check, found.since) == ("owner_set", NOW - 3 * ONE_DAY)


def test_daily_findings_stand_until_the_next_round() -> None:
    daily = Finding(check="head_files", severity=Severity.ERROR, message="gone", since=NOW - ONE_DAY)
    assert on_change_findings(subject(findings=(daily,)), Unknown()) == (daily,)


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        pytest.param({"schema": ()}, "has_columns", id="no columns"),
        pytest.param(
            {"capabilities": replace(CAN, vacuum=False, unsupported=("catalogManaged",))},
            "features_actionable",
            id="a feature that forbids acting",
        ),
        pytest.param(
            {"warnings": (LogProblem(check="history_complete", message="Old."),)},
            "history_complete",
            id="warning",
        ),
        pytest.param({"version": 3}, "version_moved", id="a version that went back"),
    ],
)
def test_what_was_read_is_judged(changes: dict[str, Any], check: str) -> None:
    assert checks(on_change_findings(subject(replace(SEEN, **changes)), Unknown())) == [check]


def test_a_version_that_went_back_is_told_from_another_table() -> None:
    back = replace(SEEN, version=3)
    (same,) = on_change_findings(subject(back, format_ids=("uuid",)), Unknown())
    (other,) = on_change_findings(subject(back, format_ids=("else",)), Unknown())
    assert "went back from version 5 to 3" in same.message
    assert "another table" in other.message
    assert on_change_findings(subject(back, findings=(same,), version=3), Unknown()) == (same,)
    assert on_change_findings(subject(replace(SEEN, version=4), findings=(same,), version=3), Unknown()) == ()


def test_a_table_that_is_rebuilt_every_night_is_not_held_to_what_it_was_nights_ago() -> None:
    """By another UUID at the same number, or by the same table's other commit of it."""
    anew = replace(SEEN, version=0, format_id="of the second night", head="of the second night@0@2")
    (other,) = on_change_findings(subject(anew, format_ids=("uuid",)), Unknown())
    assert other.check == "version_moved"

    def again(head: str | None) -> tuple[Finding, ...]:
        looked = subject(anew, findings=(other,), version=0)
        assert looked.before is not None
        return on_change_findings(replace(looked, before=replace(looked.before, head=head)), Unknown())

    assert again(anew.head) == (other,)
    assert again(None) == (other,), "of a head that nobody wrote down nothing can be told"
    assert again("of the first night@0@1") == ()


def test_a_head_that_was_moved_back_by_hand_is_no_damage() -> None:
    moved = replace(subject(replace(SEEN, version=3), format_ids=("uuid",)), head_moved=True)
    assert on_change_findings(moved, Unknown()) == ()


def test_a_table_that_is_gone_is_an_error() -> None:
    (found,) = gone_findings(subject(LogProblem(check="exists", message="gone")))
    assert (found.check, found.severity) == ("exists", Severity.ERROR)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("interval 30 days", 30 * DAY),
        ("INTERVAL 1 week", 7 * DAY),
        ("interval 1 day 12 hours", 36 * HOUR),
        ("7 days", 7 * DAY),
        ("interval '2' hours", 2 * HOUR),
        ("interval 0 hours", 0),
        ("interval 1 month", None),
        ("soon", None),
        ("", None),
    ],
)
def test_intervals_are_read_as_delta_writes_them(text: str, seconds: int | None) -> None:
    assert interval_seconds(text) == seconds


@pytest.mark.parametrize(
    ("properties", "part"),
    [
        pytest.param(
            {"delta.deletedFileRetentionDuration": "interval 1 day"}, "is 1 day, the policy", id="short"
        ),
        pytest.param({"delta.logRetentionDuration": "soon"}, "not a duration", id="unreadable"),
        pytest.param({"delta.enableExpiredLogCleanup": "true"}, "enableExpiredLogCleanup", id="cleanup"),
    ],
)
def test_retention_that_breaks_the_policy_is_found(properties: dict[str, str], part: str) -> None:
    seen = replace(SEEN, properties={**SEEN.properties, **properties})
    (found,) = retention_findings(subject(), seen)
    assert part in found.message
    assert retention_findings(subject(mode=Mode.OBSERVE), seen) == ()


def test_longer_retention_is_fine_unless_somebody_asked_for_less() -> None:
    durations = dict.fromkeys((FILES, LOG), "interval 90 days")
    seen = replace(SEEN, properties={**SEEN.properties, **durations})
    assert retention_findings(subject(), seen) == ()
    asked = effective(
        source=subject().row.source,
        table=PolicySettings(mode=Mode.MANAGE, log_retention_seconds=60 * 86_400),
    )
    (found,) = retention_findings(replace(subject(), policy=asked), seen)
    assert found.message == f"{LOG} is 90 days, the policy asks for only 60 days."


def test_a_retention_that_is_no_duration_is_a_finding_of_its_own() -> None:
    seen = replace(SEEN, properties={**SEEN.properties, FILES: "interval 1 month", LOG: "interval 1 day"})
    found = retention_findings(subject(), seen)
    assert checks(found) == ["retention_properties", "retention_readable"]
    assert LOG in found[0].message and FILES not in found[0].message
    assert f"{FILES} is 'interval 1 month', which is not a duration: it is left as it is" in found[1].message


ENTRY = Entry(
    database="db",
    table="t",
    location="file:/lake/db/t",
    provider="delta",
    table_type="EXTERNAL_TABLE",
    columns=(EntryColumn(name="other", type="string"),),
)


def test_a_silent_metastore_leaves_its_findings_standing() -> None:
    earlier = Finding(
        check="metastore_entry", severity=Severity.WARNING, message="differs", since=NOW - ONE_DAY
    )
    assert on_change_findings(subject(findings=(earlier,)), Silent()) == (earlier,)
    assert on_change_findings(subject(findings=(earlier,)), Unknown()) == ()


def test_differences_are_warnings_where_we_manage_and_info_where_we_look() -> None:
    known = KnownEntry(entry=ENTRY, strict=False)
    managed = metastore_findings(subject(), SEEN, known)
    observed = metastore_findings(subject(mode=Mode.OBSERVE), SEEN, known)
    assert "schema_matches_metastore" in checks(managed)
    assert {one.severity for one in managed} == {Severity.WARNING}
    assert {one.severity for one in observed} == {Severity.INFO}


def test_another_table_of_the_name_is_not_for_the_sync() -> None:
    taken = KnownEntry(entry=replace(ENTRY, location="file:/somewhere/else"), strict=False)
    assert checks(metastore_findings(subject(), SEEN, taken)) == ["metastore_name"]


def nothing_above(location: str) -> None:
    """No table around it."""


@pytest.mark.parametrize(
    ("other", "part"),
    [
        ("/lake/db/t", "same location"),
        ("/lake/db/t/inner", "inside this table"),
        ("/lake/db", "lies inside db.other"),
    ],
)
def test_shared_and_nested_locations_are_found(other: str, part: str) -> None:
    mine = subject()
    rows = [
        mine.row,
        row("db.other", location=f"file://{other}"),
        row("db.far", location="file:///lake/db/t2"),
    ]
    (found,) = location_findings(mine, Neighbours.of(rows), nothing_above)
    assert part in found.message
    assert "db.far" not in found.message


def test_a_link_to_the_same_folder_is_the_same_location(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    mine = subject(location=f"file://{tmp_path}/real")
    (found,) = location_findings(
        mine, Neighbours.of([mine.row, row("db.b", location=f"file://{tmp_path}/link")]), nothing_above
    )
    assert found.check == "location_unique"


def test_partition_folders_the_log_does_not_know_are_found(tmp_path: Path) -> None:
    table = LogWriter(root=tmp_path, partition_columns=("day",)).create()
    table.commit(add("day=1/known.parquet", partition={"day": "1"}))
    for path in ("day=1/known.parquet", "day=2/h=3/lost.parquet", "day=4/_tmp/x.parquet", "other/y.parquet"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"PAR1")
    reader, location = DeltaReader(), canonical(str(tmp_path))
    seen = reader.observe(location)
    assert isinstance(seen, Observation)
    unknown = unknown_partitions(reader, seen, StorageOptions())
    assert unknown == ("day=2/h=3",)
    assert checks(partition_findings(subject(), unknown)) == ["partitions_registered"]


def test_times_from_the_future_and_running_backwards_are_found() -> None:
    commits = tuple(
        counted(version=version, committed_at=NOW - timedelta(hours=hours), operation="WRITE")
        for version, hours in ((3, 5), (4, 2), (5, 4))
    )
    (found,) = clock_findings(subject(), replace(SEEN, committed_at=NOW + timedelta(hours=3)), commits)
    assert "3 hours from now" in found.message
    assert "Version 5 is 2 hours older" in found.message
    assert clock_findings(subject(), SEEN, commits[:2]) == ()


def test_checks_have_names_of_their_own_and_say_what_helps() -> None:
    assert len(CHECK_BY_NAME) == len(CHECKS)
    assert all(check.hint.endswith((".", "`lakewarden sql`.")) and check.sentences for check in CHECKS)


def test_a_multi_part_checkpoint_that_lacks_a_part_is_passed_over() -> None:
    def entry(name: str) -> FileEntry:
        return FileEntry(path=f"_delta_log/{name}", size_bytes=1, modified_at=from_millis(0))

    commits = [entry(f"{version:020d}.json") for version in range(3)]
    part = entry(f"{1:020d}.checkpoint.0000000001.0000000002.parquet")
    segment = segment_of(listing_of([*commits, part]), location="file:///t")
    assert segment.checkpoint is None
    assert [warning.check for warning in segment.warnings] == ["history_complete"]
