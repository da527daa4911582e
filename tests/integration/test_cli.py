"""The command line on real system tables and real Delta tables, without a JVM: output, exit codes, what is refused."""

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from lakewarden.catalog.model.bucket_layout import BucketLayout
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, custom_metadata
from lakewarden.daemon.cli.commands import daemon as command_module
from lakewarden.jobs.engines.spark.jars import ENGINE, default_cache
from support.processes.commands import Cli, caller


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Runs one command in this process, as the script does, on a home of its own."""
    # `daemon` sets up logging for its process, which here is everybody's, on a stream that is closed afterwards.
    monkeypatch.setattr(command_module, "configure", lambda **_: None)
    return caller(tmp_path / "home", monkeypatch, capfdbinary)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A healthy Delta table with three versions."""
    place = tmp_path / "lake" / "events"
    for day in range(3):
        write_deltalake(
            str(place), pa.table({"day": pa.array([day] * 10), "n": pa.array(range(10))}), mode="append"
        )
    return place


def test_init_makes_row_0_and_repeating_it_changes_nothing(cli: Cli) -> None:
    first = cli("init", "-o", "json")
    assert first.code == 0
    assert next((row["row"], row["name"]) for row in first.json) == (0, "lakewarden.tables")
    assert len(first.json) == 7
    before = cli("sql", "SELECT count(*) AS n FROM lakewarden.tables", "-o", "json").json
    assert cli("init").code == 0
    assert (
        cli("sql", "SELECT count(*) AS n FROM lakewarden.tables", "-o", "json").json == before == [{"n": 7}]
    )


def test_without_init_a_command_says_what_to_do(cli: Cli) -> None:
    said = cli("tables", "list")
    assert said.code == 4
    assert "There are no system tables" in said.err
    assert "lakewarden init" in said.err


def test_registering_prints_the_row_with_state_and_findings(cli: Cli, events: Path) -> None:
    cli("init")
    said = cli("tables", "register", str(events), "-o", "json")
    assert said.code == 0
    row = said.json
    assert (row["name"], row["state"], row["version"], row["files"], row["rows"]) == (
        "default.events", "active", 2, 3, 30,
    )  # fmt: skip
    assert isinstance(row["findings"], list)
    assert cli("tables", "list", "-o", "json").json[-1]["table_id"] == row["table_id"]


def test_a_broken_table_is_registered_as_quarantined_and_the_command_succeeds(cli: Cli, events: Path) -> None:
    cli("init")
    (events / "_delta_log" / "00000000000000000001.json").unlink()
    said = cli("tables", "register", str(events), "-o", "json")
    assert said.code == 0
    assert said.json["state"] == "quarantined"
    assert said.json["findings"][0]["severity"] == "error"


def test_a_conversion_can_be_tried_without_doing_it(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    folder = tmp_path / "raw"
    folder.mkdir()
    pq.write_table(pa.table({"n": [1, 2]}), folder / "part.parquet")
    os.utime(folder / "part.parquet", (0, 0))
    said = cli("tables", "convert", str(folder), "--vacuum-retain", "30 days", "--dry-run", "-o", "json")
    assert said.code == 0, said.err
    assert (said.json["name"], said.json["files"]) == ("default.raw", 1)
    assert said.json["properties"]["delta.deletedFileRetentionDuration"] == "interval 30 days"
    assert not (folder / "_delta_log").exists()
    assert len(cli("tables", "list", "-o", "json").json) == 7
    (folder / "notes.csv").write_text("n")
    refused = cli("tables", "convert", str(folder), "--dry-run")
    assert refused.code == 5
    assert "does not hold Parquet files alone: notes.csv" in refused.err


def test_a_conversion_may_be_bound_to_what_its_dry_run_showed(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    folder = tmp_path / "raw"
    folder.mkdir()
    pq.write_table(pa.table({"n": [1, 2]}), folder / "part.parquet")
    seen = cli("tables", "convert", str(folder), "--dry-run", "-o", "json").json["seen"]
    pq.write_table(pa.table({"n": [3]}), folder / "late.parquet")
    refused = cli("tables", "convert", str(folder), "--seen", seen)
    assert refused.code == 4 and "does not hold what the dry run showed: 2 files" in refused.err
    assert len(cli("tables", "list", "-o", "json").json) == 7


def test_trying_a_conversion_sees_a_table_that_lies_in_the_folder(
    cli: Cli, tmp_path: Path, events: Path
) -> None:
    cli("init")
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "lake" / "part.parquet")
    refused = cli("tables", "convert", str(tmp_path / "lake"), "--dry-run")
    assert refused.code == 5
    assert "has 1 other table in its folder: events." in refused.err


def test_adopting_one_table_that_is_none_is_refused(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    assert cli("tables", "adopt", str(tmp_path / "nothing")).code == 5


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("nothing", "There is nothing at"),
        ("lake", "not a table of a format"),
        ("lake/events/inner", "lies inside"),
    ],
)
def test_what_cannot_be_a_row_is_refused_with_exit_code_5(
    cli: Cli, events: Path, tmp_path: Path, where: str, sentence: str
) -> None:
    cli("init")
    cli("tables", "register", str(events))
    write_deltalake(str(events / "inner"), pa.table({"n": pa.array([1])}))
    said = cli("tables", "register", str(tmp_path / where))
    assert (said.code, said.out) == (5, "")
    assert sentence in said.err
    assert "Hint:" in said.err
    assert "Traceback" not in said.err


def test_policies_are_set_shown_and_refused(cli: Cli, events: Path) -> None:
    cli("init")
    cli("tables", "register", str(events))
    assert (
        cli("tables", "policy", "set", "default.events", "mode=manage", "vacuum.retention=9 days").code == 0
    )
    shown = {row["key"]: row for row in cli("tables", "policy", "show", "default.events", "-o", "json").json}
    assert (shown["vacuum.retention"]["value"], shown["vacuum.retention"]["origin"]) == ("9 days", "table")
    assert shown["compaction.target"]["origin"] == "default"
    said = cli("tables", "policy", "set", "default.events", "vacuum.retention=", "mode=observe")
    assert "Policy of default.events set. From the level above again: vacuum.retention." in said.err
    for nonsense in ("vacuum.retention=-1 day", "vacuum.retentoin=3 days", "vacuum.retention=2 days"):
        said = cli("tables", "policy", "set", "default.events", nonsense)
        assert (said.code, bool(said.err)) == (2, True)


def test_policies_are_set_by_sql_too_and_the_record_is_not(cli: Cli, events: Path) -> None:
    cli("init")
    cli("tables", "register", str(events))
    update = (
        "UPDATE lakewarden.tables SET policy.vacuum.retention = '30 days', owner = 'bo' "
        "WHERE name = 'default.events'"
    )
    assert cli("sql", update, "-o", "json").json == [{"name": "default.events"}]
    row = cli("tables", "show", "default.events", "-o", "json").json
    assert (row["owner"], row["policy"]["vacuum_retention_seconds"]) == ("bo", 30 * 86_400)
    assert cli("sql", "DELETE FROM lakewarden.tables WHERE row = 7").code == 5
    assert cli("sql", "SELECT * FROM default.events").code == 2


def test_why_answers_for_every_kind_of_work(cli: Cli, events: Path) -> None:
    cli("init")
    cli("tables", "register", str(events))
    answers = {row["action"]: row for row in cli("why", "default.events", "-o", "json").json}
    assert {"vacuum", "compact", "statistics", "log_care", "properties", "sync"} <= set(answers)
    assert answers["vacuum"]["verdict"] == "observe only"
    cli("tables", "policy", "set", "default.events", "mode=manage")
    cli("pause", "*", "--reason", "month end")
    paused = {row["action"]: row for row in cli("why", "default.events", "-o", "json").json}
    assert (paused["vacuum"]["verdict"], "month end" in paused["vacuum"]["because"]) == ("paused", True)
    assert cli("resume", "*").code == 0


def test_a_table_says_how_its_rows_are_spread(cli: Cli, events: Path) -> None:
    cli("init")
    cli("tables", "register", str(events))
    assert "buckets" not in cli("tables", "show", "default.events", "-o", "json").json
    layout = BucketLayout(columns=("n", "day"), count=16, sort=("day",))
    DeltaTable(str(events)).alter.set_table_properties(dict(layout.properties), raise_if_not_exists=False)
    assert cli("daemon", "--once", "--set", "http.port=0").code == 0
    told = cli("tables", "show", "default.events", "-o", "json").json["buckets"]
    assert told == "CLUSTERED BY (n, day) SORTED BY (day) INTO 16 BUCKETS"


def test_one_cycle_sees_what_changed_and_ten_more_leave_no_trace(cli: Cli, events: Path) -> None:
    cli("init")
    cli("tables", "register", str(events))
    write_deltalake(str(events), pa.table({"day": pa.array([9]), "n": pa.array([9])}), mode="append")
    once = ("daemon", "--once", "--set", "http.port=0")
    assert cli(*once).code == 0
    assert cli("tables", "show", "default.events", "-o", "json").json["version"] == 3
    home = Path(cli("config", "show", "-o", "json").json[0]["value"])
    cli(*once)
    settled = {table.name: DeltaTable(str(table)).version() for table in (home / "system").iterdir()}
    cli(*once)
    fences = {table.name: DeltaTable(str(table)).version() for table in (home / "system").iterdir()}
    # A new daemon is a new leader and says so once in each table; looking itself adds nothing.
    assert fences == {name: version + 1 for name, version in settled.items()}


def test_dropping_needs_consent_purging_needs_the_dry_run_and_both_can_be_taken_back(
    cli: Cli, events: Path
) -> None:
    cli("init")
    cli("tables", "register", str(events))
    assert cli("tables", "drop", "default.events", "--yes").code == 0
    assert cli("tables", "show", "default.events", "-o", "json").json["state"] == "dropped"
    assert cli("tables", "undrop", "default.events").code == 0
    assert cli("tables", "drop", "default.events", "--purge", "--yes").code == 4
    dry = cli("tables", "drop", "default.events", "--purge", "--dry-run", "-o", "json").json
    assert (dry["version"], dry["files"]) == (2, 3)
    stale = cli("tables", "drop", "default.events", "--purge", "--at-version", "1", "--yes")
    assert stale.code == 4
    done = cli("tables", "drop", "default.events", "--purge", "--at-version", "2", "--yes", "-o", "json")
    assert done.json["state"] == "purging"
    assert cli("tables", "undrop", "default.events", "-o", "json").json["state"] == "active"
    assert DeltaTable(str(events)).version() == 2


def test_validate_finds_a_lost_file_and_exits_with_3(cli: Cli, events: Path) -> None:
    cli("init")
    cli("tables", "register", str(events))
    assert cli("tables", "validate", "default.events").code == 0
    next(events.glob("*.parquet")).unlink()
    said = cli("tables", "validate", "default.events", "-o", "json")
    assert said.code == 3
    assert "head_files" in {row["check"] for row in said.json}


def test_system_tables_are_backed_up_and_verified(cli: Cli, events: Path, tmp_path: Path) -> None:
    cli("init")
    cli("tables", "register", str(events))
    assert cli("system", "verify").code == 0
    assert cli("system", "backup", str(tmp_path / "backup"), "-o", "json").json["files"] > 0
    runs = tmp_path / "home" / "system" / "health"
    next(runs.rglob("*.parquet")).write_bytes(b"garbage")
    assert cli("system", "verify").code == 3
    assert cli("system", "repair", "--backup", str(tmp_path / "backup"), "--yes").code == 0
    assert cli("system", "verify").code == 0


def test_every_governed_call_is_audited_the_refused_ones_with_the_reason(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    cli("tables", "register", str(tmp_path / "nothing"))
    entries = cli("sql", "SELECT what, allowed, why FROM lakewarden.audit", "-o", "json").json
    assert [(row["what"], row["allowed"]) for row in entries] == [("register", False)]
    assert "There is nothing at" in entries[0]["why"]


@pytest.mark.parametrize("form", ["json", "yaml", "csv", "table"])
def test_every_form_of_output_holds_the_same_tables(cli: Cli, events: Path, form: str) -> None:
    cli("init")
    cli("tables", "register", str(events))
    assert cli("tables", "list", "-o", form).out.count("default.events") == 1


def test_doctor_checks_everything_and_tells_the_fix(cli: Cli) -> None:
    found = {row["check"]: row for row in cli("doctor", "-o", "json").json}
    assert found["system tables"]["verdict"] == "fail"
    assert "lakewarden init" in found["system tables"]["fix"]
    cli("init")
    assert {row["check"]: row["verdict"] for row in cli("doctor", "-o", "json").json}["system tables"] == "ok"


@pytest.mark.parametrize(
    ("target", "code", "unseen"),
    [("local", 0, set()), ("k8s", 3, {"cluster", "image"}), ("yarn", 3, {"cluster"})],
)
def test_doctor_examines_a_target_before_anything_is_set_up(
    cli: Cli, target: str, code: int, unseen: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    if target == "k8s":
        monkeypatch.setenv("PATH", str(tmp_path))  # neither helm nor kubectl
    said = cli("doctor", "--target", target, "-o", "json")
    assert said.code == code, said
    assert unseen <= {row["check"] for row in said.json if row["verdict"] == "not checked"}
    assert cli("status").code != 0, "nothing was made"


def test_doctor_finds_jars_where_make_jars_puts_them_and_misses_one_that_is_not_whole(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, copied = default_cache(), tmp_path / "cache" / "lakewarden" / "jars"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert jars_according_to_doctor(cli) == "warn"
    shutil.copytree(ENGINE.folder(usual), ENGINE.folder(copied))
    assert jars_according_to_doctor(cli) == "ok"
    next(ENGINE.folder(copied).glob("delta-storage-*.jar")).write_bytes(b"half of it")
    assert jars_according_to_doctor(cli) == "warn"


def test_doctor_goes_on_where_something_cannot_be_looked_at(cli: Cli, events: Path) -> None:
    cli("init")
    cli("tables", "register", str(events))
    home = Path(os.environ["LAKEWARDEN_HOME"])
    for commit in (home / "system" / "tables" / "_delta_log").glob("*.json"):
        commit.write_text("{")
    said = cli("doctor", "-o", "json")
    verdicts = {one["check"]: one["verdict"] for one in said.json}
    assert (said.code, verdicts["system tables"]) == (3, "fail")
    assert {"java", "admins", "writers"} <= verdicts.keys()


@pytest.mark.parametrize("target", [None, "local", "k8s", "yarn"])
def test_doctor_goes_on_where_the_settings_are_no_toml(cli: Cli, target: str | None) -> None:
    file = Path(os.environ["LAKEWARDEN_HOME"]) / "lakewarden.toml"
    file.parent.mkdir()
    file.write_text("[sweep]\ninterval = often\n")
    said = cli("doctor", *(() if target is None else ("--target", target)), "-o", "json")
    first, *others = said.json
    assert (said.code, said.err, first["check"], first["verdict"]) == (3, "", "settings", "fail")
    assert f"{file} is not valid TOML at line 2, column 12: " in first["message"] and first["fix"]
    verdicts = {one["check"]: one["verdict"] for one in others}
    assert verdicts["spark"] == "ok" and verdicts["database"] == verdicts["admins"] == "not checked"
    file.unlink()
    assert [one["verdict"] for one in cli("doctor", "-o", "json").json if one["check"] == "settings"] == [
        "ok"
    ]


def jars_according_to_doctor(cli: Cli) -> str:
    [found] = [one for one in cli("doctor", "-o", "json").json if one["check"] == "jars"]
    return str(found["verdict"])


def test_usage_errors_exit_with_2(cli: Cli) -> None:
    assert cli("tables", "frobnicate").code == 2
    assert cli("daemon", "--once", "--until-idle").code == 2
    assert cli("daemon", "--once", "--set", "sweep.intervall=3 s").code in (2, 4)


def test_lineage_that_a_commit_carries_is_shown_with_its_versions(cli: Cli, events: Path) -> None:
    cli("init")
    source = cli("tables", "register", str(events), "-o", "json").json
    read = LineageInput(
        table_id=source["table_id"], location=source["location"], format="delta", version=source["version"]
    )
    record = LineageRecord(run_id="r1", operation=Operation.REPLACE, user="ana", inputs=(read,))
    daily = events.parent / "daily"
    write_deltalake(
        str(daily),
        pa.table({"day": [1]}),
        commit_properties=CommitProperties(custom_metadata=custom_metadata(record)),
    )
    derived = cli("tables", "register", str(daily), "-o", "json").json
    assert cli("daemon", "--once", "--set", "http.port=0").code == 0
    edges = cli("lineage", "show", "default.daily", "-o", "json").json["edges"]
    (edge,) = [one for one in edges if one["output"] == "default.daily"]
    assert (edge["input"], edge["input_version"], edge["output"], edge["output_version"]) == (
        "default.events", 2, "default.daily", 0,
    )  # fmt: skip
    assert (edge["output_id"], edge["confidence"]) == (derived["table_id"], "committed")
    tree = cli("lineage", "show", "default.events", "--downstream").out.splitlines()
    assert tree == ["default.events", "└─-> default.daily  v2 → v0 replace"]
    unknown = cli("lineage", "show", "default.events", "--upstream").out.splitlines()
    assert unknown[1:] == ["└─<- (unknown)  → v2 append (hint)"]


def test_the_daemon_sends_the_events_that_lineage_events_prints(
    cli: Cli, events: Path, tmp_path: Path
) -> None:
    feed = tmp_path / "feed.jsonl"
    cli("init")
    assert "No version is on record" in cli("lineage", "events").err
    cli("tables", "register", str(events))
    sweep = ("daemon", "--once", "--set", "http.port=0", "--set", f"openlineage.file={feed}")
    assert cli(*sweep).code == 0
    DeltaTable(str(events)).restore(0)
    assert cli(*sweep).code == 0
    sent = feed.read_text(encoding="utf-8").splitlines()
    assert sent == cli("lineage", "events", "default.events").out.splitlines()
    jobs = [json.loads(line)["job"]["name"] for line in sent]
    assert jobs == [*["default.events.append"] * 3, "default.events.restore"]
    assert cli("lineage", "events", str(events), "--since-version", "3").out.splitlines() == sent[3:]
    said = cli("lineage", "events", "--since-version", "3")
    assert (said.code, "--since-version is about one table." in said.err) == (2, True)
