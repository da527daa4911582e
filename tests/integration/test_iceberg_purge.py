"""An Iceberg table is purged as a Delta table is: what its own line of metadata names goes, what the dry run said, and
nothing else; killed anywhere it comes to its end; whoever comes in between keeps the table."""

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import write_deltalake

from lakewarden.catalog import failpoints
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.model.pending_purge import MARKER
from lakewarden.catalog.model.rows import Outcome, TableState
from lakewarden.catalog.named_catalogs import rest_session
from lakewarden.catalog.named_catalogs.rest_catalog import RestCatalog
from lakewarden.catalog.state.port import Result
from lakewarden.daemon.control.assembly import build_daemon
from lakewarden.daemon.control.cycle import Cycle
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.deletion import batches
from support.builders.estate import AHEAD, numbers
from support.builders.going_tables import KINDS, GoingEstate, GoingTable, going_table, listed
from support.builders.iceberg_tables import IcebergWriter
from support.builders.sql_catalogs import SqliteCatalog
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here
from support.fakes.rest_catalog import FakeRestServer, rest_server
from support.processes.commands import caller
from support.servers.metastores import without_system_tables
from support.servers.s3 import S3Server
from support.servers.s3_home import settings_of, storage_lines

pytestmark = pytest.mark.metastore
NUMBERS = itertools.count()
CATALOGUED = [kind for kind in KINDS if kind != "hadoop"]
POINTS = (
    "purge.marked",
    "purge.batch",
    "purge.batch:2",
    "purge.data_deleted",
    "purge.log_batch",
    "purge.log_batch:3",
    "purge.log_deleted",
    "purge.unmarked",
    "purge.deleted",
)


@pytest.fixture
def estate(
    tmp_path: Path,
    metastore: EmbeddedMetastore,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> GoingEstate:
    monkeypatch.setenv("LAKEWARDEN_PURGE_GRACE", "1 ms")
    monkeypatch.setenv("LAKEWARDEN_METASTORE_URI", without_system_tables(metastore.uri))
    monkeypatch.setattr(batches, "BATCH", 2)
    made = GoingEstate(tmp_path / "home", caller(tmp_path / "home", monkeypatch, capfdbinary), ahead=AHEAD)
    made.must("init")
    section = SqliteCatalog(file=tmp_path / "catalog.db").section
    (made.home / "lakewarden.toml").write_text(section)
    return made


Make = Callable[[str], GoingTable]


@pytest.fixture
def make(
    estate: GoingEstate,
    tmp_path: Path,
    metastore: EmbeddedMetastore,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Make:
    def made(kind: str) -> GoingTable:
        served = request.getfixturevalue("served") if kind.startswith("rest") else None
        s3: S3Server | None = request.getfixturevalue("s3") if kind.endswith("_s3") else None
        if s3 is not None:
            for name, value in settings_of().items():
                monkeypatch.setenv(name, value)
            with (estate.home / "lakewarden.toml").open("a") as file:
                file.write("\n".join(storage_lines(estate.home, s3.endpoint)) + "\n")
        database = f"going_{next(NUMBERS)}"
        table = going_table(kind, tmp_path, metastore.uri, database, server=served, s3=s3)
        table.fill()
        estate.must("tables", "register", table.where, *(["--name", "db.t"] if kind == "hadoop" else []))
        return table

    return made


@pytest.fixture
def served(estate: GoingEstate, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRestServer]:
    """A declared catalog, web."""
    monkeypatch.setenv("WEB_TOKEN", "t0")
    with rest_server() as server, (estate.home / "lakewarden.toml").open("a") as file:
        file.write(f'[catalogs.web]\ntype = "rest"\nuri = "{server.uri}"\ntoken = "env:WEB_TOKEN"\n')
        file.flush()
        yield server


@pytest.fixture(params=mostly_long(KINDS, ["metastore"]))
def table(request: pytest.FixtureRequest, make: Make) -> GoingTable:
    return make(request.param)


@pytest.fixture(params=mostly_long(CATALOGUED, ["metastore"]))
def catalogued(request: pytest.FixtureRequest, make: Make) -> GoingTable:
    return make(request.param)


def at(point: str, deed: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody does this when a worker comes to `point` for the first time."""
    done: list[str] = []

    def listener(reached: str) -> None:
        if reached == point and not done:
            done.append(point)
            deed()

    monkeypatch.setattr(failpoints, "listener", listener)


def refused(done: Result) -> str:
    assert done.outcome not in (Outcome.SUCCEEDED, Outcome.SKIPPED), done
    return done.message or ""


def is_whole(estate: GoingEstate, table: GoingTable, before: dict[str, bytes]) -> bool:
    """Every file is there, and the table has its name."""
    names = [_full(table)] if table.is_catalogued else []
    return (
        listed(table.root) == before
        and not (table.root / MARKER).exists()
        and estate.entries(table) == (names, False)
    )


def _full(table: GoingTable) -> str:
    return table.where if table.where.startswith(("prod.", "web.")) else table.entry


@pytest.mark.few(1)
@pytest.mark.parametrize("table", KINDS, indirect=True)
def test_what_the_dry_run_says_goes_and_nothing_else(
    estate: GoingEstate, table: GoingTable, tmp_path: Path
) -> None:
    beside = IcebergWriter(root=tmp_path / "lake" / "beside")
    beside.commit(add=(("x.parquet", 1),))
    others = listed(beside.root)
    before = listed(table.root)
    foretold = estate.dry_run(table)
    assert listed(table.root) == before, "a dry run changes nothing"
    assert foretold["all_files"] == len(before)
    assert foretold["all_bytes"] == sum(map(len, before.values()))
    assert (foretold["unknown_files"], foretold["unknown_token"]) == (0, None)
    said = estate.must("tables", "drop", table.name, "--purge", "--dry-run").out
    assert "branch main at 3, branch theirs at 4, tag q1 at 2" in said, said
    assert [one["name"] for one in foretold["references"]] == ["main", "theirs", "q1"]
    estate.order(table)
    assert listed(table.root) == before and estate.is_state(table.name, TableState.PURGING)
    done = estate.attempt(table)
    assert done.outcome is Outcome.SUCCEEDED, done
    assert (done.actual_files, done.actual_bytes) == (foretold["all_files"], foretold["all_bytes"])
    assert estate.is_over(table) and listed(beside.root) == others
    # Name and place are free.
    anew = going_table_like(table)
    anew.append("new.parquet")
    estate.must("tables", "register", anew.where, *([] if anew.is_catalogued else ["--name", "db.t"]))
    shown = estate.must("tables", "show", anew.name, "-o", "json").json
    assert (shown["version"], shown["state"], shown["files"]) == (1, "active", 1)


def going_table_like(table: GoingTable) -> GoingTable:
    """Another table at the same place and under the same name."""
    writer = table.writer
    blank = type(writer)
    more = {"catalog": writer.catalog, "entry": writer.entry} if table.is_catalogued else {}  # type: ignore[attr-defined]  # it is
    return GoingTable(
        writer=blank(root=writer.root, told=writer.told, **more), where=table.where, name=table.name
    )


def test_what_nobody_names_goes_only_by_a_consent_that_names_it(
    estate: GoingEstate, table: GoingTable
) -> None:
    lost = table.root / "metadata" / "99999-lost.metadata.json"
    lost.write_text(json.dumps(table.writer.body))
    for name in ("exports/precious.csv", "metadata/left-m0.avro", "data/left.parquet"):
        (table.root / name).parent.mkdir(exist_ok=True)
        (table.root / name).write_bytes(b"x")
    before = listed(table.root)
    foretold = estate.dry_run(table)
    assert sorted(foretold["unknown_shown"]) == [
        "data/left.parquet", "exports/precious.csv", "metadata/99999-lost.metadata.json", "metadata/left-m0.avro",
    ]  # fmt: skip
    version = str(foretold["version"])
    said = estate.says("tables", "drop", table.name, "--purge", "--at-version", version, "--yes")
    assert said.code == 4 and "in no log" in said.err, said.err
    estate.order(table, "--unknown-files", foretold["unknown_token"])
    (table.root / "exports" / "later.csv").write_bytes(b"y")
    assert "nobody agreed to delete them" in refused(estate.attempt(table))
    (table.root / "exports" / "later.csv").unlink()
    assert is_whole(estate, table, before)
    killed_here("purge.batch:3", lambda: estate.attempt(table))
    estate.give_up()
    done = estate.attempt(table)
    assert done.outcome is Outcome.SUCCEEDED and estate.is_over(table), done


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("table", "point"),
    mostly_long(
        list(itertools.product(KINDS, POINTS)),
        [("hadoop", "purge.log_batch"), ("metastore", "purge.batch"), ("sql", "purge.data_deleted")],
    ),
    indirect=["table"],
)
def test_killed_anywhere_it_comes_to_its_end(estate: GoingEstate, table: GoingTable, point: str) -> None:
    estate.order(table)
    killed_here(point, lambda: estate.attempt(table))
    estate.give_up()
    if point not in ("purge.unmarked", "purge.deleted"):
        said = estate.says("tables", "undrop", table.name)
        assert said.code == 4 and ("has begun" in said.err or "was purged" in said.err), said.err
    done = estate.attempt(table)
    assert done.outcome is Outcome.SUCCEEDED, done
    assert estate.is_over(table)


@pytest.mark.parametrize("point", points_of("test_killed_with_its_entry_taken_away_it_goes_on_from_there"))
def test_killed_with_its_entry_taken_away_it_goes_on_from_there(
    estate: GoingEstate, catalogued: GoingTable, point: str
) -> None:
    before = listed(catalogued.root)
    estate.order(catalogued)
    killed_here(point, lambda: estate.attempt(catalogued))
    estate.give_up()
    assert estate.entries(catalogued) == ([], True) and listed(catalogued.root) == before
    assert estate.says("tables", "undrop", catalogued.name).code == 4
    assert estate.entries(catalogued) == ([], True), "a deletion that is under way keeps it"
    done = estate.attempt(catalogued)
    assert done.outcome is Outcome.SUCCEEDED and estate.is_over(catalogued), done


@pytest.mark.long
def test_undropped_in_its_grace_it_is_as_before(estate: GoingEstate, table: GoingTable) -> None:
    before = listed(table.root)
    estate.order(table)
    estate.must("tables", "undrop", table.name)
    row = estate.row(table.name)
    assert row.state is TableState.ACTIVE, row.state_reason
    assert is_whole(estate, table, before)
    assert "head_file" not in str(estate.row(table.name).properties)


def test_who_commits_after_the_order_keeps_the_table(estate: GoingEstate, table: GoingTable) -> None:
    estate.order(table)
    table.writer.properties["owner"] = "ana"
    table.writer.publish()  # no version of its own
    before = listed(table.root)
    assert "were changed since" in refused(estate.attempt(table))
    table.append("later.parquet")
    assert listed(table.root).keys() > before.keys()
    assert "this was decided on" in refused(estate.attempt(table))
    assert is_whole(estate, table, listed(table.root))


def test_who_commits_before_the_entry_is_taken_away_keeps_the_table(
    estate: GoingEstate, catalogued: GoingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate.order(catalogued)
    at("purge.marked", lambda: catalogued.append("first.parquet"), monkeypatch)
    assert "does not name" in refused(estate.attempt(catalogued))
    assert is_whole(estate, catalogued, listed(catalogued.root))
    assert "first.parquet" in listed(catalogued.root)


def test_who_commits_in_hadoops_layout_while_it_begins_keeps_the_table(
    estate: GoingEstate, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make("hadoop")
    estate.order(table)
    at("purge.marked", lambda: table.append("first.parquet"), monkeypatch)
    assert "this was decided on" in refused(estate.attempt(table))
    assert is_whole(estate, table, listed(table.root))


def test_a_first_commit_to_an_empty_table_keeps_it(
    estate: GoingEstate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = GoingTable(writer=IcebergWriter(root=tmp_path / "lake" / "e"), where="", name="db.e")
    table.writer.publish()
    estate.must("tables", "register", str(table.root), "--name", "db.e")
    estate.order(table)
    at("purge.marked", lambda: table.append("first.parquet"), monkeypatch)
    assert "this was decided on" in refused(estate.attempt(table))
    assert is_whole(estate, table, listed(table.root))


def test_who_lost_its_claim_gives_nothing_back(
    estate: GoingEstate, catalogued: GoingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = listed(catalogued.root)
    estate.order(catalogued)
    at("purge.entry_taken", estate.give_up, monkeypatch)
    refused(estate.attempt(catalogued))
    assert listed(catalogued.root) == before and (catalogued.root / MARKER).exists()
    assert estate.entries(catalogued) == ([], True), "whoever has the claim by now may be deleting"
    done = estate.attempt(catalogued)
    assert done.outcome is Outcome.SUCCEEDED and estate.is_over(catalogued), done


@pytest.mark.few(1)
@pytest.mark.parametrize("point", ["purge.marked", "purge.entry_taken"])
def test_a_hold_that_comes_meanwhile_gives_the_table_its_name_back(
    estate: GoingEstate, catalogued: GoingTable, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    before = listed(catalogued.root)
    estate.order(catalogued)
    hold = ("tables", "hold", catalogued.name, "--reason", "case 7")
    at(point, lambda: estate.must(*hold), monkeypatch)
    assert "case 7" in refused(estate.attempt(catalogued))
    assert is_whole(estate, catalogued, before)


@pytest.mark.few(1)
@pytest.mark.parametrize("point", ["purge.marked", "purge.entry_taken"])
def test_a_second_name_that_comes_meanwhile_keeps_the_table(
    estate: GoingEstate, catalogued: GoingTable, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    before = listed(catalogued.root)
    estate.order(catalogued)
    second = f"{catalogued.entry.rpartition('.')[0]}.second"
    at(point, lambda: catalogued.point(second, catalogued.head), monkeypatch)
    assert "what one of two names deletes, the other needs" in refused(estate.attempt(catalogued))
    assert listed(catalogued.root) == before and not (catalogued.root / MARKER).exists()
    catalogued.point(second, None)
    assert is_whole(estate, catalogued, before)


@pytest.mark.parametrize("point", mostly_long(["purge.batch", "purge.log_batch"], ["purge.batch"]))
def test_a_name_that_comes_amid_the_deletion_stops_it(
    estate: GoingEstate, catalogued: GoingTable, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    estate.order(catalogued)
    own = catalogued.entry
    at(point, lambda: catalogued.point(own, catalogued.head), monkeypatch)
    assert "what one of two names deletes" in refused(estate.attempt(catalogued))
    left = listed(catalogued.root)
    assert left and "name" in refused(estate.attempt(catalogued))
    assert listed(catalogued.root) == left, "nor does the next attempt"
    catalogued.point(own, None)
    monkeypatch.setattr(failpoints, "listener", None)
    done = estate.attempt(catalogued)
    assert done.outcome is Outcome.SUCCEEDED and estate.is_over(catalogued), done


def test_a_second_name_after_the_first_file_gives_nothing_back(
    estate: GoingEstate, catalogued: GoingTable
) -> None:
    """The next attempt finds all that the first has left, and that is not the table."""
    estate.order(catalogued)
    killed_here("purge.batch", lambda: estate.attempt(catalogued))
    estate.give_up()
    left, second = listed(catalogued.root), f"{catalogued.entry.rpartition('.')[0]}.second"
    catalogued.point(second, catalogued.head)
    assert re.search("second name|one of two names", refused(estate.attempt(catalogued)))
    assert listed(catalogued.root) == left and (catalogued.root / MARKER).exists()
    said = estate.says("tables", "undrop", catalogued.name)
    assert said.code == 4 and "has begun" in said.err, said.err
    catalogued.point(second, None)
    done = estate.attempt(catalogued)
    assert done.outcome is Outcome.SUCCEEDED and estate.is_over(catalogued), done


@pytest.mark.parametrize("when", mostly_long(["before", "purge.entry_taken"], ["purge.entry_taken"]))
def test_a_table_made_anew_under_its_name_stays(
    estate: GoingEstate, catalogued: GoingTable, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    estate.order(catalogued)
    anew = going_table_like(catalogued)

    def create() -> None:
        catalogued.point(catalogued.entry, None)
        anew.append("new.parquet")

    if when == "before":
        create()
    else:
        at(when, create, monkeypatch)
    refused(estate.attempt(catalogued))
    there = listed(catalogued.root)
    assert "new.parquet" in there and "data/day=1/b.parquet" in there
    assert estate.entries(catalogued)[0] == [_full(catalogued)]
    estate.must("tables", "drop", estate.row(catalogued.name).table_id, "--yes")  # stops the deletion


@pytest.mark.long
def test_its_owner_may_drop_its_entry_in_the_grace(estate: GoingEstate, catalogued: GoingTable) -> None:
    estate.order(catalogued)
    catalogued.point(catalogued.entry, None)
    killed_here("purge.batch", lambda: estate.attempt(catalogued))
    estate.give_up()
    done = estate.attempt(catalogued)
    assert done.outcome is Outcome.SUCCEEDED and estate.is_over(catalogued), done


def test_dropped_and_registered_under_another_name_it_stays(
    estate: GoingEstate, catalogued: GoingTable
) -> None:
    before = listed(catalogued.root)
    estate.order(catalogued)
    catalogued.point(catalogued.entry, None)
    second = f"{catalogued.entry.rpartition('.')[0]}.second"
    catalogued.point(second, catalogued.head)
    assert "second" in refused(estate.attempt(catalogued))
    assert listed(catalogued.root) == before and not (catalogued.root / MARKER).exists()


@pytest.mark.few(1)
@pytest.mark.parametrize("taken", [False, True], ids=["free", "taken"])
def test_a_stop_gives_the_entry_its_name_back(
    estate: GoingEstate, catalogued: GoingTable, taken: bool
) -> None:
    before = listed(catalogued.root)
    estate.order(catalogued)
    killed_here("purge.entry_taken", lambda: estate.attempt(catalogued))
    estate.give_up()
    if taken:
        catalogued.point(catalogued.entry, f"file:{catalogued.root}_anew/metadata/1.metadata.json")
    said = estate.must("tables", "drop", estate.row(catalogued.name).table_id, "--yes")
    assert estate.is_state(catalogued.name, TableState.DROPPED) and listed(catalogued.root) == before
    assert ("may still be called by a name of ours" in said.err) is taken
    if not taken:
        assert is_whole(estate, catalogued, before)
        estate.must("tables", "undrop", catalogued.name)
        shown = estate.must("tables", "show", catalogued.name, "-o", "json").json
        assert (shown["state"], shown["version"]) == ("active", 3)


@pytest.mark.few(1)
@pytest.mark.parametrize("catalogued", mostly_long(CATALOGUED, ["sql"]), indirect=True)
@pytest.mark.parametrize("when", ["take", "naming"])
def test_who_stops_it_before_its_entry_is_taken_away_keeps_the_name(
    estate: GoingEstate, catalogued: GoingTable, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many tables take long to be asked for their names; and nothing compares when a worker was allowed to go on."""
    before = listed(catalogued.root)
    estate.order(catalogued)
    taken = stopped_at(estate, catalogued, when, monkeypatch)
    refused(estate.attempt(catalogued))
    assert taken == ([] if when == "naming" else [catalogued.name])
    assert estate.is_state(catalogued.name, TableState.DROPPED) and is_whole(estate, catalogued, before)


@pytest.mark.few(1)
@pytest.mark.parametrize("catalogued", mostly_long(CATALOGUED, ["rest"]), indirect=True)
@pytest.mark.parametrize("question", [1, 2, -1], ids=["first", "amid data", "log"])
@pytest.mark.parametrize("forbids", ["hold", "stop"])
def test_what_is_forbidden_while_catalogs_are_asked_deletes_nothing_more(
    estate: GoingEstate,
    catalogued: GoingTable,
    forbids: str,
    question: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server is asked for each of its tables before each batch, which takes as long as it has tables."""
    before, beside = listed(catalogued.root), TakenEntries.naming_beside
    estate.order(catalogued)
    table_id, left = estate.row(catalogued.name).table_id, list[dict[str, bytes]]()

    def asked(entries: TakenEntries, location: str, own_id: str, *, kept: bool) -> tuple[str, ...]:
        found = beside(entries, location, own_id, kept=kept)
        left.append(listed(catalogued.root))
        is_last = not any(name.startswith("data/") for name in left[-1])
        if len(left) == question or (question < 0 and is_last and estate.row(table_id).hold is None):
            stop = ("drop", table_id, "--yes")
            estate.must("tables", *(stop if forbids == "stop" else ("hold", table_id, "--reason", "case 7")))
            monkeypatch.setattr(TakenEntries, "naming_beside", beside)
        return found

    monkeypatch.setattr(TakenEntries, "naming_beside", asked)
    refused(estate.attempt(catalogued))
    assert listed(catalogued.root) == left[-1], "not one file more"
    assert (len(left[-1]) < len(before)) is (question != 1)
    if forbids == "stop":
        assert estate.is_state(table_id, TableState.DROPPED) and not (catalogued.root / MARKER).exists()
    if forbids == "stop" or question == 1:
        assert estate.entries(catalogued) == ([_full(catalogued)], False)
    if question == 1:
        assert is_whole(estate, catalogued, before)


def settled(estate: GoingEstate, token: int = 1) -> None:
    """A cycle of the daemon."""
    services = estate.services
    parts = build_daemon(services, pages=False).parts.cycle.parts
    cycle = Cycle(replace(parts, require=lambda fence: None))
    assert cycle.run(services.store.raise_fence("test", at_least=token), may_plan=False).trouble is None
    assert services.queue.finished(9) == ()


@pytest.mark.long
def test_whose_worker_is_killed_after_a_stop_has_its_name_from_the_daemon(
    estate: GoingEstate, catalogued: GoingTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = listed(catalogued.root)
    estate.order(catalogued)
    # Without its command's last words: it was killed as well.
    stopped_at(estate, catalogued, "take", monkeypatch)
    killed_here("purge.entry_taken", lambda: estate.attempt(catalogued))
    estate.give_up()
    assert estate.entries(catalogued) == ([], True)
    settled(estate)
    assert estate.is_state(catalogued.name, TableState.DROPPED) and is_whole(estate, catalogued, before)


def frozen_before_it_takes(
    estate: GoingEstate,
    table: GoingTable,
    monkeypatch: pytest.MonkeyPatch,
    then: Callable[[], object] = lambda: None,
) -> None:
    """A worker is frozen right before it takes the entry away. Its owner stops the deletion, the daemon gives the run
    up and settles it: nothing was taken. `then` comes before the worker wakes."""
    take = TakenEntries.take

    def taken(entries: TakenEntries, location: str, table_id: str, file: str) -> None:
        estate.must("tables", "drop", table_id, "--yes")
        estate.give_up()
        settled(estate)
        then()
        take(entries, location, table_id, file)

    monkeypatch.setattr(TakenEntries, "take", taken)


@pytest.mark.few(1)
@pytest.mark.parametrize("catalogued", mostly_long(CATALOGUED, ["sql"]), indirect=True)
@pytest.mark.parametrize("undropped", [True, False], ids=["undropped", "dropped"])
def test_a_worker_that_wakes_when_all_is_settled_gives_the_entry_back(
    estate: GoingEstate, catalogued: GoingTable, undropped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = listed(catalogued.root)
    estate.order(catalogued)
    back = ("tables", "undrop", catalogued.name)
    frozen_before_it_takes(
        estate, catalogued, monkeypatch, (lambda: estate.must(*back)) if undropped else (lambda: None)
    )
    refused(estate.attempt(catalogued))
    assert is_whole(estate, catalogued, before)
    assert estate.is_state(catalogued.name, TableState.ACTIVE if undropped else TableState.DROPPED)


@pytest.mark.few(1)
@pytest.mark.parametrize("catalogued", mostly_long(CATALOGUED, ["metastore"]), indirect=True)
@pytest.mark.parametrize("command", ["undrop", "undrop again", "drop"])
def test_whose_entry_was_taken_when_all_was_settled_gets_it_back_by_a_command(
    estate: GoingEstate, catalogued: GoingTable, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is killed right after it woke: nobody comes to it any more."""
    before = listed(catalogued.root)
    estate.order(catalogued)
    table_id, back = estate.row(catalogued.name).table_id, ("tables", "undrop", catalogued.name)
    is_back = command != "undrop"
    frozen_before_it_takes(
        estate, catalogued, monkeypatch, (lambda: estate.must(*back)) if is_back else (lambda: None)
    )
    killed_here("purge.entry_taken", lambda: estate.attempt(catalogued))
    settled(estate, 2)
    # The metastore's notifications tell the daemon of its new name: it is no table that might be managed.
    taken = f"__lakewarden_purged_{table_id.replace('-', '_').lower()}"
    said = estate.says("tables", "register", f"{catalogued.where.rpartition('.')[0]}.{taken}")
    assert said.code == 5 and "of lakewarden's own" in said.err, (said.code, said.err)
    assert estate.entries(catalogued) == ([], True) and not (catalogued.root / MARKER).exists()
    said = estate.must(*(("tables", "drop", table_id, "--yes") if command == "drop" else back))
    assert "name of ours" not in said.err, said.err
    assert is_whole(estate, catalogued, before)
    if command == "drop":
        assert estate.is_state(table_id, TableState.DROPPED)
        return
    settled(estate, 3)  # a sweep in between could not read it
    shown = estate.must("tables", "show", catalogued.name, "-o", "json").json
    assert (shown["state"], shown["version"]) == ("active", 3)


@pytest.mark.long
def test_a_server_that_renames_when_nobody_waits_any_more_is_set_right_by_undrop(
    estate: GoingEstate, make: Make, served: FakeRestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make("rest")
    before = listed(table.root)
    estate.order(table)
    monkeypatch.setattr(rest_session, "_PATIENCE", 0.2)
    served.slow = ("/tables/rename",)
    frozen_before_it_takes(estate, table, monkeypatch)
    assert "does not answer" in refused(estate.attempt(table))
    until = time.monotonic() + 10
    while not estate.entries(table)[1]:
        assert time.monotonic() < until
        time.sleep(0.05)
    served.slow = ()
    settled(estate, 2)
    estate.must("tables", "undrop", table.name)
    assert is_whole(estate, table, before) and estate.is_state(table.name, TableState.ACTIVE)


def stopped_at(
    estate: GoingEstate, table: GoingTable, method: str, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """The table's owner stops its deletion once a worker has asked for its names for the first time, or before he takes
    its entry away. Returns its name once the entry is taken away after all."""
    naming, take, done = TakenEntries.naming, TakenEntries.take, list[str]()

    def stop(now: str) -> None:
        if now == method and estate.is_state(table.name, TableState.PURGING):
            estate.must("tables", "drop", estate.row(table.name).table_id, "--yes")

    def named(entries: TakenEntries, location: str, table_id: str, *, kept: bool) -> tuple[str, ...]:
        found = naming(entries, location, table_id, kept=kept)
        stop("naming")
        return found

    def taken(entries: TakenEntries, location: str, table_id: str, file: str) -> None:
        stop("take")
        take(entries, location, table_id, file)
        done.append(table.name)

    monkeypatch.setattr(TakenEntries, "naming", named)
    monkeypatch.setattr(TakenEntries, "take", taken)
    return done


REFUSALS = {
    "gc.enabled": "gc.enabled=false",
    "data path": "a data path outside its folder",
    "format version 1": "format version 1",
    "elsewhere": "files outside its folder",
    "another uuid": "is the metadata of another table",
    "damaged": "Nobody can tell whose metadata",
    "delta": "what one of them deletes, the other may need",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("why", mostly_long(REFUSALS, ["gc.enabled", "another uuid", "delta"]))
def test_what_others_may_need_is_refused_by_a_sentence(
    estate: GoingEstate, make: Make, tmp_path: Path, why: str
) -> None:
    table = make("hadoop")
    writer = table.writer
    match why:
        case "gc.enabled":
            writer.properties["gc.enabled"] = "false"
        case "data path":
            writer.properties["write.data.path"] = f"file:{tmp_path}/elsewhere"
        case "format version 1":
            writer.format_version = 1
        case "elsewhere":
            writer.commit(add=((f"file:{tmp_path}/elsewhere/x.parquet", 4),))
        case "another uuid":
            IcebergWriter(root=table.root, number=50).publish(hint=False)
        case "damaged":
            (table.root / "metadata" / "half.metadata.json").write_bytes(b"{")
        case "delta":
            write_deltalake(str(table.root), numbers(0), mode="append")
    writer.publish()
    before = listed(table.root)
    for asked in (("--dry-run",), ("--at-version", "3", "--yes")):
        said = estate.says("tables", "drop", table.name, "--purge", *asked)
        assert said.code in (4, 5), (said.code, said.out, said.err)
        assert REFUSALS[why] in said.err and "Traceback" not in said.err, said.err
        assert len(said.err.strip().splitlines()) <= 3, said.err
    assert listed(table.root) == before and not estate.is_state(table.name, TableState.PURGING)


def test_a_second_name_is_refused_by_a_sentence(estate: GoingEstate, catalogued: GoingTable) -> None:
    # In the metastore in another database, too: all of them are asked.
    other = "elsewhere" if catalogued.where.startswith(("prod.", "web.")) else f"going_{next(NUMBERS)}"
    catalogued.point(f"{other}.second", catalogued.head)
    said = estate.says("tables", "drop", catalogued.name, "--purge", "--dry-run")
    assert said.code == 5 and f"{other}.second" in said.err, said.err
    catalogued.point(f"{other}.second", None)
    assert estate.dry_run(catalogued)["all_files"] == len(listed(catalogued.root))


def test_a_name_in_another_kind_of_catalog_is_one_too(
    estate: GoingEstate, make: Make, tmp_path: Path
) -> None:
    table = make("hadoop")
    catalog = SqliteCatalog(file=tmp_path / "catalog.db")
    catalog.point("shop.found", f"file:{table.writer.head}")
    said = estate.says("tables", "drop", table.name, "--purge", "--dry-run")
    assert said.code == 5 and "prod.shop.found" in said.err, said.err


def test_whose_entry_is_gone_already_is_refused_with_the_way_out(
    estate: GoingEstate, catalogued: GoingTable
) -> None:
    catalogued.point(catalogued.entry, None)
    said = estate.says("tables", "drop", catalogued.name, "--purge", "--dry-run")
    assert said.code == 5 and "has no entry" in said.err and "Register it there again" in said.err, said.err


@pytest.mark.long
def test_a_rest_server_that_does_not_rename_is_refused(
    estate: GoingEstate, make: Make, served: FakeRestServer
) -> None:
    table = make("rest")
    before = listed(table.root)
    served.endpoints = ["GET /v1/{prefix}/namespaces"]
    for asked in (("--dry-run",), ("--at-version", "3", "--yes")):
        said = estate.says("tables", "drop", table.name, "--purge", *asked)
        assert said.code == 5 and "REST server" in said.err and "DROP TABLE ... PURGE" in said.err, said.err
    served.endpoints = None
    served.odd = {"/tables/rename": (406, "UnsupportedOperationException")}
    estate.order(table)
    assert "does not rename tables" in refused(estate.attempt(table))
    assert is_whole(estate, table, before)


@pytest.mark.few(1)
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "goes on"])
def test_a_commit_that_comes_while_a_rest_server_renames_keeps_the_table(
    estate: GoingEstate, make: Make, served: FakeRestServer, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request compares and renames: what came before the new name is the table's."""
    table = make("rest")
    estate.order(table)
    served.before["/tables/rename"] = lambda: table.append("first.parquet")
    if killed:
        required = RestCatalog._require_named
        asked: list[str] = []

        def late(catalog: RestCatalog, *what: object) -> None:
            asked.append("looked")
            if len(asked) == 2:
                reach("rest.renamed")
            required(catalog, *what)  # type: ignore[arg-type]  # as they came

        monkeypatch.setattr(RestCatalog, "_require_named", late)
        killed_here("rest.renamed", lambda: estate.attempt(table))
        estate.give_up()
        assert estate.entries(table) == ([], True)
    refused(estate.attempt(table))
    assert "first.parquet" in listed(table.root)
    assert is_whole(estate, table, listed(table.root))


@pytest.mark.long
def test_a_rest_server_that_does_not_tell_of_each_table_keeps_the_table(
    estate: GoingEstate, make: Make, served: FakeRestServer
) -> None:
    table = make("rest")
    before = listed(table.root)
    served.point("shop.other", "file:/elsewhere/metadata/1.metadata.json")
    served.odd = {"/tables/other": (403, "ForbiddenException")}
    said = estate.says("tables", "drop", table.name, "--purge", "--dry-run")
    assert said.code == 1 and "when asked for shop.other" in said.err, (said.code, said.err)
    served.odd = {}
    estate.order(table)
    served.odd = {"/tables/other": (403, "ForbiddenException")}
    assert "when asked for shop.other" in refused(estate.attempt(table))
    served.odd = {}
    assert listed(table.root) == before
    done = estate.attempt(table)
    assert done.outcome is Outcome.SUCCEEDED and estate.is_over(table), done
