"""Tables that leave management get their properties back:
with a daemon or without, killed, unreachable, all at once."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from lakewarden.catalog.formats.delta.retention import CLEANUP, FILES, LOG
from lakewarden.catalog.model.lineage_record import RUN_ID
from lakewarden.catalog.model.rows import Action, Source, TableRow, TableState
from lakewarden.catalog.policy.original_properties import is_leaving, kept_of
from lakewarden.catalog.registry.governance import set_hold
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.removal import undrop
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.usecases.runs.leaving import Left, finish, foresee, leave, those_who_leave
from lakewarden.daemon.usecases.runs.orders import order_run
from lakewarden.daemon.usecases.runs.waiting import raise_for, run_and_wait
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.actions.registry import encode
from lakewarden.jobs.actions.spec import Order
from lakewarden.jobs.planning.planner import plan
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.processes.commands import Cli, caller
from support.processes.house import ANA, CARE, QUICK, House

OURS = {FILES: "interval 7 days", LOG: "interval 30 days", CLEANUP: "false"}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path, settings={**QUICK, "backoff.first": "1 s"})
    yield made
    made.end()


def managed(house: House, name: str, **users: str) -> str:
    """A table with properties of its user that we have set ours on."""
    place = house.folder / "lake" / name
    house.append(place)
    if users:
        DeltaTable(str(place)).alter.set_table_properties(users, raise_if_not_exists=False)
    row = register(house.services.registry, str(place), actor=ANA, name=f"db.{name}").row
    house.services.store.edit(TABLES, lambda _: [replace(row, policy=CARE)], because="test")
    return str(place)


def properties(place: str) -> dict[str, str]:
    return dict(DeltaTable(place).metadata().configuration)


def row_of(house: House, name: str) -> TableRow:
    return next(row for row in house.services.store.rows(TABLES).all() if row.name == name)


def dropped(house: House, name: str) -> Left:
    """What `tables drop` does."""
    services = house.services
    foreseen = foresee(services, services.registry.resolve(name))
    leave(services, foreseen, actor=ANA)
    [left] = finish(services, [foreseen], actor=ANA, tell=lambda _: None)
    return left


@pytest.mark.long
def test_a_dropped_table_has_its_users_properties_again(house: House) -> None:
    place = managed(house, "t", **{LOG: "interval 3 days", "their.own": "x"})
    before = properties(place)
    assert house.run_until_idle() == 0
    assert properties(place).items() >= OURS.items()
    left = dropped(house, "db.t")
    assert properties(place) == before
    assert left.row.state is TableState.DROPPED and "given back" in (left.row.state_reason or "")
    assert not is_leaving(left.row) and kept_of(left.row) == ()
    assert DeltaTable(place).to_pyarrow_table().num_rows == 10


@pytest.mark.long
def test_taken_back_it_is_cared_for_and_left_again(house: House) -> None:
    place = managed(house, "t", **{LOG: "interval 3 days"})
    assert house.run_until_idle() == 0
    dropped(house, "db.t")
    row = undrop(house.services.registry, "db.t", actor=ANA)
    request = order_run(house.services, row, Order(action=Action.PROPERTIES), actor=ANA)
    raise_for(run_and_wait(house.services, request, tell=lambda _: None))
    assert properties(place) == OURS
    dropped(house, "db.t")
    assert properties(place) == {LOG: "interval 3 days"}


@pytest.mark.long
def test_what_its_owner_set_while_it_was_away_stays_when_it_leaves_again(house: House) -> None:
    place = managed(house, "t")
    assert house.run_until_idle() == 0
    dropped(house, "db.t")
    DeltaTable(place).alter.set_table_properties({CLEANUP: "false"}, raise_if_not_exists=False)
    undrop(house.services.registry, "db.t", actor=ANA)
    dropped(house, "db.t")
    assert properties(place) == {CLEANUP: "false"}


@pytest.mark.long
def test_what_its_owner_set_while_it_was_away_stays_without_the_log_that_tells_it(house: House) -> None:
    place = managed(house, "t")
    assert house.run_until_idle() == 0
    DeltaTable(place).create_checkpoint()
    log = Path(place) / "_delta_log"
    for entry in sorted(log.glob("*.json"))[:-1]:
        entry.unlink()
    dropped(house, "db.t")
    DeltaTable(place).alter.set_table_properties({CLEANUP: "false"}, raise_if_not_exists=False)
    undrop(house.services.registry, "db.t", actor=ANA)
    dropped(house, "db.t")
    assert properties(place) == {CLEANUP: "false"}


@pytest.mark.long
def test_what_its_owner_had_set_before_us_to_our_value_stays(house: House) -> None:
    users = {CLEANUP: "false", LOG: "interval 3 days"}
    place = managed(house, "t", **users)
    assert house.run_until_idle() == 0
    assert properties(place) == OURS
    dropped(house, "db.t")
    assert properties(place) == users


def test_a_daemon_gives_back_what_a_killed_command_has_left(house: House) -> None:
    place = managed(house, "t")
    assert house.run_until_idle() == 0
    leave(house.services, foresee(house.services, house.services.registry.resolve("db.t")), actor=ANA)
    assert is_leaving(row_of(house, "db.t")) and properties(place) == OURS
    assert house.run_until_idle() == 0
    assert properties(place) == {}
    assert "given back" in (row_of(house, "db.t").state_reason or "")
    versions = house.versions()
    assert house.run_until_idle() == 0
    assert house.versions()["tables"] - versions["tables"] <= 1, "a fence, and nothing more"


@pytest.mark.long
def test_a_table_that_cannot_be_read_is_dropped_all_the_same(house: House) -> None:
    place = managed(house, "t")
    assert house.run_until_idle() == 0
    away = f"{place}.away"
    shutil.move(place, away)
    left = dropped(house, "db.t")
    assert left.row.state is TableState.DROPPED and is_leaving(left.row)
    assert left.owed is not None and "UNSET TBLPROPERTIES" in left.owed
    shutil.move(away, place)
    with house.daemon():
        house.wait_until(lambda: properties(place) == {} and not is_leaving(row_of(house, "db.t")))


@pytest.mark.long
@pytest.mark.crash
@pytest.mark.parametrize(
    "point", mostly_long(points_of("test_giving_back_killed_goes_on"), ["give_back.committed"])
)
def test_giving_back_killed_goes_on(house: House, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    place = managed(house, "t", **{LOG: "interval 3 days"})
    assert house.run_until_idle() == 0
    services = house.services
    leave(services, foresee(services, services.registry.resolve("db.t")), actor=ANA)
    cache = FleetCache(services.store, services.clock)
    cache.refresh()
    monkeypatch.setenv("WORKER_FAILPOINT", point)
    with house.daemon():
        house.wait_until(lambda: any(run.request.attempt > 1 for run in house.unfinished()))
    monkeypatch.delenv("WORKER_FAILPOINT")
    assert house.run_until_idle() == 0
    assert properties(place) == {LOG: "interval 3 days"}
    assert not is_leaving(row_of(house, "db.t"))
    assert house.operations(place)["UNSET TBLPROPERTIES"] == 1


@pytest.mark.long
def test_under_legal_hold_it_waits(house: House) -> None:
    place = managed(house, "t")
    assert house.run_until_idle() == 0
    set_hold(house.services.registry, "db.t", "court", actor=ANA)
    leave(house.services, foresee(house.services, house.services.registry.resolve("db.t")), actor=ANA)
    cache = FleetCache(house.services.store, house.services.clock)
    cache.refresh()
    budget = Budget(runs_per_cycle=9, unfinished=9)
    made = plan(cache.world((), budget, has_metastore=False), house.services.clock.now())
    assert made.runs == () and "court" in str(made.of(row_of(house, "db.t").table_id))
    assert properties(place) == OURS


def test_everybody_leaves(house: House) -> None:
    first = managed(house, "a", **{LOG: "interval 3 days"})
    second = managed(house, "b")
    assert house.run_until_idle() == 0
    third = managed(house, "c", **{LOG: "interval 5 days"})  # nobody has touched it yet
    services = house.services
    foreseen = [foresee(services, row) for row in those_who_leave(services)]
    assert [bool(one.wanted) for one in foreseen] == [True, True, False]
    for one in foreseen:
        leave(services, one, actor=ANA)
    lefts = finish(services, foreseen, actor=ANA, tell=lambda _: None)
    assert [left.row.state for left in lefts] == [TableState.DROPPED] * 3
    assert [properties(one) for one in (first, second, third)] == [
        {LOG: "interval 3 days"},
        {},
        {LOG: "interval 5 days"},
    ]
    assert those_who_leave(services) == ()


# tables that were managed before their rows remembered anything


def legacy(house: House, name: str, **users: str) -> str:
    place = managed(house, name, **users)
    row = replace(row_of(house, f"db.{name}"), source=Source.CONVERT, properties={})
    house.services.store.edit(TABLES, lambda _: [row], because="test")
    DeltaTable(place).alter.set_table_properties(
        OURS,
        commit_properties=CommitProperties(custom_metadata={RUN_ID: "run-of-old"}),
        raise_if_not_exists=False,
    )
    return place


def test_of_an_old_table_the_log_tells_what_stood_there(house: House) -> None:
    place = legacy(house, "t", **{LOG: "interval 3 days"})
    left = dropped(house, "db.t")
    assert left.owed is None and properties(place) == {LOG: "interval 3 days"}


@pytest.mark.long
def test_of_an_old_table_without_that_log_only_what_equals_ours_is_taken_away(house: House) -> None:
    place = legacy(house, "t")
    DeltaTable(place).alter.set_table_properties({LOG: "interval 99 days"}, raise_if_not_exists=False)
    house.append(place)
    DeltaTable(place).create_checkpoint()
    for version in range(2):
        (Path(place) / "_delta_log" / f"{version:020d}.json").unlink()
    foreseen = foresee(house.services, house.services.registry.resolve("db.t"))
    assert set(foreseen.guessed) == {FILES, CLEANUP} == set(foreseen.wanted.unsets)
    dropped(house, "db.t")
    assert properties(place) == {LOG: "interval 99 days"}


def test_a_table_that_only_its_user_ever_set_keeps_everything(house: House) -> None:
    place = managed(house, "t", **OURS)
    foreseen = foresee(house.services, house.services.registry.resolve("db.t"))
    assert not foreseen.wanted and not foreseen.guessed
    began = time.monotonic()
    left = dropped(house, "db.t")
    assert left.row.state is TableState.DROPPED and properties(place) == OURS
    assert time.monotonic() - began < 20, "no worker was started for nothing"


# the command line


@pytest.fixture
def cli(house: House, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return caller(house.home, monkeypatch, capfdbinary)


@pytest.mark.long
def test_a_dry_run_shows_what_would_be_given_back_and_changes_nothing(house: House, cli: Cli) -> None:
    place = managed(house, "t", **{LOG: "interval 3 days"})
    assert house.run_until_idle() == 0
    before = house.versions(), DeltaTable(place).version()
    shown = cli("tables", "drop", "db.t", "--dry-run", "-o", "json")
    assert shown.code == 0
    assert shown.json["sets"] == {LOG: "interval 3 days"}
    assert set(shown.json["unsets"]) == {FILES, CLEANUP}
    everything = cli("system", "leave", "--dry-run", "-o", "json")
    assert [(row["name"], row["sets"]) for row in everything.json] == [("db.t", {LOG: "interval 3 days"})]
    assert (house.versions(), DeltaTable(place).version()) == before


def test_a_table_nobody_touched_is_dropped_at_once(house: House, cli: Cli) -> None:
    place = house.folder / "plain"
    write_deltalake(str(place), pa.table({"id": [1]}))
    assert cli("tables", "register", str(place), "--name", "db.plain").code == 0
    done = cli("tables", "drop", "db.plain", "--yes", "-o", "json")
    assert done.code == 0 and done.json["state"] == "dropped"
    assert DeltaTable(str(place)).version() == 0
    assert cli("system", "leave", "--yes").code == 0


def test_the_payload_of_giving_back_is_read_by_workers() -> None:
    assert '"gives_back":true' in encode(SetProperties(gives_back=True))
