"""Tables and system tables on a real S3: looked after without a JVM, never gone for an error, and no commit lost."""

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.storage.file_store import StorageOptions, open_store
from lakewarden.catalog.storage.place import Moment, Presence
from lakewarden.catalog.storage.secret_files import current
from lakewarden.catalog.system.port import Fence
from lakewarden.daemon.cli.commands import daemon as command_module
from lakewarden.daemon.control.assembly import build_daemon
from lakewarden.daemon.control.cycle import Cycle
from lakewarden.daemon.control.cycle_report import CycleReport
from lakewarden.daemon.fleet.stores import IN_A_ROW, Stores
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.telemetry.log import configure
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.executors.purge import purge
from lakewarden.jobs.runs.log_stores import CONDITIONAL, S3_LOG_STORE
from lakewarden.jobs.runs.port import JobContext, Target
from support.builders.iceberg_tables import IcebergWriter
from support.cases import mostly_long
from support.fakes.clock import ManualClock
from support.processes.commands import Cli, caller
from support.processes.log_writers import append_together
from support.servers.faults import Fault, FaultyProxy
from support.servers.s3 import SECRET, S3Server, options_of
from support.servers.s3_home import make_home, settings_of

pytestmark = pytest.mark.s3

SINGLE_DRIVER = "io.delta.storage.S3SingleDriverLogStore"
FAULTS = (Fault.SLOW_DOWN, Fault.DENIED, Fault.LOST_REQUEST)
SAID = dict.fromkeys(FAULTS, "does not answer") | {Fault.DENIED: "denies access"}
FAR = 12
"""So many tables on S3 has a fleet."""
ATTEMPTS = 3
"""So often a request is sent that fails (`max_retries` is 2)."""
PATIENCE = ("max_retries", "retry_timeout")


@pytest.fixture
def storage(proxy: FaultyProxy) -> StorageOptions:
    return StorageOptions.of(options_of(proxy.endpoint))


@pytest.fixture
def cli(
    proxy: FaultyProxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Cli:
    """Commands on a home of its own, whose system tables are on S3, too."""
    monkeypatch.setattr(command_module, "configure", lambda **_: None)
    for name, value in settings_of().items():
        monkeypatch.setenv(name, value)
    home = make_home(tmp_path / "home", proxy.endpoint, prefix=tmp_path.name)
    return caller(home, monkeypatch, capfdbinary)


def orders(location: str, storage: StorageOptions, versions: int = 3) -> str:
    """A table of so many versions, each overwriting the one before it but the last, which appends."""
    for number in range(versions):
        rows = pa.table({"id": pa.array(range(number, number + 10), pa.int64())})
        if number == versions - 1:
            write_deltalake(location, rows, mode="append", storage_options=current(storage))
        else:
            write_deltalake(location, rows, mode="overwrite", storage_options=current(storage))
    return location


def test_small_files_are_written_whole_listed_read_and_deleted(
    s3: S3Server, proxy: FaultyProxy, storage: StorageOptions
) -> None:
    files = open_store(s3.at("small files"), storage)
    proxy.counted()
    files.write("hints/a b.json", b'{"a": 1}')
    assert sum(proxy.counted().values()) <= 3, "what is written is written once, and not copied into place"
    assert files.read("hints/a b.json") == b'{"a": 1}' and files.stat("hints/a b.json").size_bytes == 8
    assert [one.path for one in files.list("", recursive=True) if not one.is_dir] == ["hints/a b.json"]
    files.delete("hints/a b.json")
    files.delete("hints/a b.json")
    assert not files.exists("hints/a b.json") and list(files.list("elsewhere")) == []
    with pytest.raises(FileNotFoundError):
        files.read("hints/none.json")


def test_a_file_of_a_listing_is_deleted_unless_another_lies_there_and_no_request_is_spent_on_it(
    s3: S3Server, proxy: FaultyProxy, storage: StorageOptions
) -> None:
    files = open_store(s3.at("listed files"), storage)
    for name in ("plain", "listed", "other"):
        files.write(f"data/{name}", b"0123456789")
    listed = {one.path: one for one in files.list("", recursive=True)}
    files.write("data/other", b"somebody else's")
    proxy.counted()
    files.delete("data/plain")
    plain = sum(proxy.counted().values())
    assert files.delete_listed(listed["data/listed"]) and files.delete_listed(listed["data/plain"])
    assert sum(proxy.counted().values()) <= 2 * plain
    assert not files.delete_listed(listed["data/other"])
    assert [one.path for one in files.list("data")] == ["data/other"]
    assert files.read("data/other") == b"somebody else's"


def test_an_iceberg_table_is_read_there_whatever_its_paths_call_the_storage(
    s3: S3Server, proxy: FaultyProxy, storage: StorageOptions, tmp_path: Path
) -> None:
    location = s3.at("iced")
    table = IcebergWriter(root=tmp_path / "iced", told=location.replace("s3://", "s3a://"))
    table.commit(add=(("a.parquet", 100),))
    table.commit(add=(("b.parquet", 100),), remove=("a.parquet",))
    store, reader = open_store(location, storage), IcebergReader(lambda _: storage)
    for path in (one for one in table.root.rglob("*") if one.is_file()):
        store.write(str(path.relative_to(table.root)), path.read_bytes())
    seen = reader.observe(location)
    assert isinstance(seen, Observation)
    assert (seen.version, seen.files, seen.tombstones) == (2, 1, 3)
    assert seen.capabilities.unsupported == ("Hadoop's layout on an object store",)
    assert [one.path for one in reader.files(location)] == ["b.parquet"]
    proxy.counted()
    probe = reader.probe(location, seen=2, head=seen.head)
    assert (probe.moved, probe.head) == (False, seen.head)
    assert sum(proxy.counted().values()) <= 5, "an idle look at a Delta table sends four"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.lower())
def test_an_error_is_never_taken_for_a_table_that_is_not_there(
    s3: S3Server, proxy: FaultyProxy, storage: StorageOptions, tmp_path: Path, fault: Fault
) -> None:
    location, reader = orders(s3.at(f"{tmp_path.name}/orders"), storage), DeltaReader(lambda _: storage)
    nowhere = s3.at(f"{tmp_path.name}/nowhere")
    place = Moment().place(nowhere)
    assert not reader.is_table(nowhere) and place.presence(storage, reader.is_table) is Presence.GONE
    with proxy.failing(fault):
        for ask in (reader.is_table, reader.observe, DeltaReader(lambda _: storage).observe):
            with pytest.raises(UnavailableError, match=SAID[fault]):
                ask(location)
        with pytest.raises(UnavailableError, match=SAID[fault]):
            reader.probe(location, seen=2)
        assert place.presence(storage, reader.is_table) is Presence.UNKNOWN
    assert reader.probe(location, seen=2).moved is False


@pytest.mark.long
def test_a_store_that_hangs_is_given_up_before_delta_rs_would(s3: S3Server, proxy: FaultyProxy) -> None:
    told = {name: value for name, value in options_of(proxy.endpoint).items() if not name.endswith(PATIENCE)}
    files = open_store(s3.at("patience"), StorageOptions.of({**told, "timeout": "2s"}))
    proxy.counted()
    with proxy.slow(4.0), pytest.raises(UnavailableError):
        files.exists("a.json")
    assert 1 < sum(proxy.counted().values()) < 8, (
        "delta-rs repeats a request ten times, for up to three minutes"
    )


def test_tables_are_registered_swept_validated_and_their_log_is_cared_for_without_a_jvm(
    s3: S3Server, proxy: FaultyProxy, storage: StorageOptions, cli: Cli, tmp_path: Path
) -> None:
    location = orders(s3.at(f"{tmp_path.name}/lake/orders"), storage)
    assert cli("init").code == 0
    row = cli(
        "tables", "register", location.replace("s3://", "s3a://"), "--name", "lake.orders", "-o", "json"
    ).json
    assert (row["state"], row["version"], row["rows"], row["location"]) == ("active", 2, 20, location)
    assert cli("tables", "policy", "set", "lake.orders", "mode=manage").code == 0
    write_deltalake(location, pa.table({"id": [99]}), mode="append", storage_options=current(storage))
    assert cli("daemon", "--once").code == 0
    assert cli("tables", "show", "lake.orders", "-o", "json").json["version"] == 3
    assert cli("tables", "validate", "lake.orders").code == 0
    done = cli("jobs", "run", "lake.orders", "log_care", "-o", "json")
    assert done.code == 0 and "checkpoint of version" in done.json["message"], done
    swept = cli("jobs", "run", "lake.orders", "vacuum", "--dry-run", "-o", "json")
    assert swept.code == 0 and "nothing can go; 1 removed file still needed" in swept.json["message"], swept
    found = sorted(
        DeltaTable(location, storage_options=current(storage)).to_pyarrow_table()["id"].to_pylist()
    )
    assert len(found) == 21 and found[-1] == 99
    assert cli("system", "verify").code == 0


@pytest.mark.parametrize("fault", mostly_long(FAULTS, FAULTS[-1:]), ids=lambda fault: fault.name.lower())
def test_a_sweep_that_cannot_reach_a_table_leaves_it_active(
    s3: S3Server, proxy: FaultyProxy, storage: StorageOptions, cli: Cli, tmp_path: Path, fault: Fault
) -> None:
    location = orders(s3.at(f"{tmp_path.name}/lake/orders"), storage)
    assert cli("init").code == 0
    assert cli("tables", "register", location, "--name", "lake.orders").code == 0
    with proxy.failing(fault, "lake(/|%2F)orders"):
        assert cli("daemon", "--once").code == 0
        shown = cli("tables", "show", "lake.orders", "-o", "json").json
        assert shown["state"] == "active", shown
        validated = cli("tables", "validate", "lake.orders")
        assert validated.code != 0 and SAID[fault] in validated.out + validated.err, validated
    assert cli("daemon", "--once").code == 0
    assert cli("tables", "show", "lake.orders", "-o", "json").json["state"] == "active"
    assert cli("tables", "validate", "lake.orders").code == 0


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """A daemon's cycle over tables on local disk and on S3, which it reaches through the proxy."""

    cycle: Cycle
    fence: Fence
    proxy: FaultyProxy
    clock: ManualClock

    def sweep(self) -> tuple[CycleReport, int, list[str]]:
        """One cycle, half a minute after the last, the requests that S3 had in it, and what the log warned of."""
        self.clock.advance(timedelta(seconds=30))
        self.proxy.counted()
        configure(level="warning", format="json")
        with capture_logs() as said:
            report = self.cycle.run(self.fence, may_plan=False)
        return (
            report,
            sum(self.proxy.counted().values()),
            [one["event"] for one in said if "store" in one["event"]],
        )


@pytest.fixture
def fleet(
    s3: S3Server,
    proxy: FaultyProxy,
    storage: StorageOptions,
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Fleet:
    """An installation with its system tables and one table on local disk, and twelve tables on S3; swept once."""
    monkeypatch.setenv("LAKEWARDEN_SYSTEM_LOCATION", str(tmp_path / "system"))
    assert cli("init").code == 0
    for number in range(FAR):
        place = orders(s3.at(f"{tmp_path.name}/lake/far{number:02}"), storage, versions=1)
        assert cli("tables", "register", place, "--name", f"lake.far{number:02}").code == 0
    write_deltalake(str(tmp_path / "near"), pa.table({"id": [1]}))
    assert cli("tables", "register", str(tmp_path / "near"), "--name", "lake.near").code == 0
    services, clock = open_services(home=tmp_path / "home"), ManualClock()
    parts = replace(
        build_daemon(services, pages=False).parts.cycle.parts,
        stores=Stores(clock=clock, longest_pause=timedelta(minutes=5), threads=8),
        require=lambda _: None,
    )
    fence = services.store.raise_fence("test", at_least=1)
    fleet = Fleet(cycle=Cycle(parts), fence=fence, proxy=proxy, clock=clock)
    for _ in range(2):
        assert fleet.sweep()[0].left_out is None
    return fleet


def test_an_idle_sweep_sends_four_requests_per_table(fleet: Fleet) -> None:
    for _ in range(3):
        report, requests, _ = fleet.sweep()
        assert (report.changed, requests) == (0, 4 * FAR)


@pytest.mark.long
@pytest.mark.parametrize("fault", mostly_long(FAULTS, FAULTS[:1]), ids=lambda fault: fault.name.lower())
def test_a_sweep_asks_a_store_that_answers_errors_a_few_times_and_looks_at_everything_else(
    s3: S3Server,
    proxy: FaultyProxy,
    storage: StorageOptions,
    fleet: Fleet,
    cli: Cli,
    tmp_path: Path,
    fault: Fault,
) -> None:
    def state_of(name: str) -> tuple[object, ...]:
        shown = cli("tables", "show", name, "-o", "json").json
        return shown["state"], shown["version"], shown["findings"]

    before = state_of("lake.far00")
    with proxy.failing(fault):
        write_deltalake(str(tmp_path / "near"), pa.table({"id": [2]}), mode="append")
        report, requests, lines = fleet.sweep()
        assert (report.skipped, report.trouble) == (FAR, None)
        assert 0 < requests <= IN_A_ROW * ATTEMPTS and lines == ["a store is away"]
        assert report.left_out is not None and SAID[fault] in report.left_out
        assert report.left_out.endswith(f"And {FAR - 1} more.")
        assert state_of("lake.near")[:2] == ("active", 1), "which is on local disk"
        for _ in range(2):
            report, requests, lines = fleet.sweep()
            assert (report.skipped, lines) == (FAR, []) and 0 < requests <= ATTEMPTS, "one table is asked for"
        for number in range(FAR):
            assert state_of(f"lake.far{number:02}") == before, "nothing is concluded from an error"
    fleet.clock.advance(timedelta(minutes=2))
    write_deltalake(
        s3.at(f"{tmp_path.name}/lake/far07"),
        pa.table({"id": [2]}),
        mode="append",
        storage_options=current(storage),
    )
    report, requests, lines = fleet.sweep()
    assert (report.skipped, report.left_out, lines) == (0, None, []), "one sweep is enough"
    assert requests >= 4 * FAR and state_of("lake.far07")[:2] == ("active", 1)


def test_credentials_are_named_and_never_shown(cli: Cli, tmp_path: Path) -> None:
    shown = cli("config", "show", "-o", "json")
    assert "aws_secret_access_key" in shown.out and SECRET not in shown.out + shown.err
    wrong = (tmp_path / "home" / "lakewarden.toml").read_text().replace("mounted-key", "no-key")
    (tmp_path / "home" / "lakewarden.toml").write_text(wrong)
    missing = cli("tables", "list")
    assert missing.code == 2 and "no-key cannot be read" in missing.err and SECRET not in missing.err


@pytest.mark.long
def test_where_sparks_commits_would_be_unsafe_it_stays_out_and_says_why(
    s3: S3Server, storage: StorageOptions, cli: Cli, tmp_path: Path
) -> None:
    settings = tmp_path / "home" / "lakewarden.toml"
    told = f'[spark.conf]\n"{S3_LOG_STORE}" = "{SINGLE_DRIVER}"'
    settings.write_text(settings.read_text().replace("[spark.conf]", told))
    location = orders(s3.at(f"{tmp_path.name}/lake/orders"), storage)
    assert cli("init").code == 0
    assert cli("tables", "register", location, "--name", "lake.orders").code == 0
    assert cli("tables", "policy", "set", "lake.orders", "mode=manage").code == 0
    assert cli("daemon", "--once").code == 0
    why = {row["action"]: row for row in cli("why", "lake.orders", "-o", "json").json}
    for action in ("compact", "vacuum", "statistics"):
        assert "through S3SingleDriverLogStore" in why[action]["because"], why
    refused = cli("jobs", "run", "lake.orders", "compact")
    assert refused.code == 4 and "S3SingleDriverLogStore" in refused.err, refused
    found = {row["check"]: row for row in cli("doctor", "-o", "json").json}
    assert found["s3"]["verdict"] == "ok" and found["s3 workers"]["verdict"] == "warn"
    assert cli("jobs", "run", "lake.orders", "log_care").code == 0, "which needs no Spark"


def test_doctor_tries_a_place_out_and_leaves_nothing_there(
    proxy: FaultyProxy,
    storage: StorageOptions,
    s3: S3Server,
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = s3.at(f"{tmp_path.name}/tried")
    examined = ("doctor", "--target", "s3", "--location", place, "-o", "json")
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    found = {row["check"]: row["verdict"] for row in cli(*examined).json}
    assert found == {
        **{f"s3 {name}": "ok" for name in ("credentials", "write", "commits", "clock", "workers")},
        "s3 sessions": "warn",
    }
    assert list(open_store(place, storage).list("", recursive=True)) == []
    (tmp_path / "spark-defaults.conf").write_text(f"# ours\n{S3_LOG_STORE}={CONDITIONAL}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with proxy.failing(Fault.UNCONDITIONAL):
        lax = cli(*examined)
    assert lax.code == 3
    assert {row["check"]: row["verdict"] for row in lax.json if row["verdict"] != "ok"} == {
        "s3 commits": "fail"
    }
    with proxy.failing(Fault.DENIED, "^(PUT|POST)"):
        denied = {row["check"]: row["verdict"] for row in cli(*examined).json}
    assert denied["s3 write"] == "fail" and "s3 commits" not in denied
    monkeypatch.setenv("AWS_S3_LOCKING_PROVIDER", "dynamodb")
    assert {row["check"]: row["verdict"] for row in cli(*examined).json}["s3 environment"] == "warn"
    monkeypatch.delenv("AWS_S3_LOCKING_PROVIDER")
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    assert {row["check"]: row["verdict"] for row in cli(*examined).json}["s3 environment"] == "fail"
    assert cli("doctor", "--location", place).code == 2


def test_doctor_tries_each_bucket_in_use_once_and_leaves_nothing_there(
    proxy: FaultyProxy, storage: StorageOptions, s3: S3Server, cli: Cli, tmp_path: Path
) -> None:
    assert cli("init").code == 0
    for name in ("one", "two"):
        table = orders(s3.at(f"{tmp_path.name}/lake/{name}"), storage)
        assert cli("tables", "register", table, "--name", f"lake.{name}").code == 0

    def commits() -> list[tuple[str, str]]:
        rows = cli("doctor", "--target", "s3", "-o", "json").json
        found = [
            (row["verdict"], row["message"]) for row in rows if row["check"] in ("s3 commits", "s3 write")
        ]
        assert all(message.startswith(s3.at("").rstrip("/")) for _, message in found)
        return found

    assert [verdict for verdict, _ in commits()] == ["ok"]
    with proxy.failing(Fault.UNCONDITIONAL):
        [(verdict, message)] = commits()
    assert verdict == "fail" and "does not honour If-None-Match" in message
    with proxy.failing(Fault.DENIED, "^(PUT|POST)"):
        assert [verdict for verdict, _ in commits()] == ["fail"]
    assert not [one for one in open_store(s3.at(""), storage).list("") if "trial" in one.path]


@pytest.mark.parametrize(
    "option", [{"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, {"AWS_S3_LOCKING_PROVIDER": "dynamodb"}]
)
def test_delta_rs_asks_for_a_commit_of_somebody_else_whatever_such_an_option_says(
    s3: S3Server, storage: StorageOptions, tmp_path: Path, option: dict[str, str]
) -> None:
    location, told = s3.at(f"{tmp_path.name}/t"), current(storage) | option
    rows = pa.table({"k": pa.array([1], pa.int64())})
    write_deltalake(location, rows, storage_options=told)
    one, other = (DeltaTable(location, storage_options=told) for _ in range(2))
    for table in (one, other):
        write_deltalake(table, rows, mode="append", storage_options=told)
    found = DeltaTable(location, storage_options=current(storage))
    assert (found.version(), found.to_pyarrow_table().num_rows) == (2, 3)


def test_a_purge_deletes_all_of_a_table_and_nothing_beside_it_without_a_jvm(
    s3: S3Server, storage: StorageOptions, tmp_path: Path
) -> None:
    location = orders(s3.at(f"{tmp_path.name}/lake/orders"), storage)
    beside = orders(s3.at(f"{tmp_path.name}/lake/orders2"), storage)
    reader = DeltaReader(lambda _: storage)
    head = reader.observe(location)
    assert isinstance(head, Observation)

    def no_spark() -> SparkSession:
        raise AssertionError("nothing of this needs Spark")

    ctx = JobContext(
        target=Target(table_id="t1", name="lake.orders", location=location),
        run_id="run-1",
        reader=reader,
        clock=SystemClock(),
        engine=DeltaEngine(no_spark, storage=lambda _: storage, clock=SystemClock()),
        metastore=None,
        still_ours=lambda: None,
        storage=storage,
    )
    purge(ctx, Purge(requires=head.at, unknown=None, files=3, bytes=1))
    assert (
        not reader.is_table(location) and list(open_store(location, storage).list("", recursive=True)) == []
    )
    assert Moment().place(location).presence(storage, reader.is_table) is Presence.GONE
    assert reader.is_table(beside)


def test_two_writers_of_delta_rs_lose_no_commit(s3: S3Server, tmp_path: Path) -> None:
    append_together(s3.at(f"{tmp_path.name}/appended"), options_of(s3.endpoint), commits=15)
