"""One table of a list that ends in what nobody foresaw is refused alone; all others are registered."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import HealthRow
from lakewarden.catalog.policy.access import Actor, Caller
from lakewarden.catalog.registry.batch import register_batch
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.registry.service import Registered
from lakewarden.catalog.system.port import AUDIT, HEALTH
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.onboarding.lists import Listed, ListFormat, read_list
from lakewarden.daemon.usecases.onboarding.registrations import register_listed, register_one
from lakewarden.daemon.usecases.onboarding.report import (
    ReportWord,
    as_row,
    is_done,
    summary,
    word_of,
    worth_a_line,
)
from support.builders.callers import actor


class Odd(DeltaReader):
    """A reader with a bug that one table brings to light."""

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        if location.endswith("/t3"):
            raise ZeroDivisionError("division by zero")
        return super().observe(location, since=since)


@pytest.fixture
def services(tmp_path: Path) -> Services:
    made = Services(load_settings(home=tmp_path / "home", environment={}))
    initialise(made, made.user)
    made.__dict__["readers"] = (Odd(),)
    return made


def test_what_is_no_text_has_its_entry_in_the_audit_like_all_others(
    services: Services, tmp_path: Path
) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}))
    places = [str(tmp_path / "t"), f"{tmp_path}/lat\udce9", f"{tmp_path}/half\ud800"]
    listed = [Listed(where=place, asked=WantedTable(where=place)) for place in places]
    outcomes = register_listed(services, actor("ana"), listed, tell=print)
    assert [isinstance(one.came, LakewardenError) for one in outcomes] == [False, True, True]
    assert {row.on: row.allowed for row in services.store.rows(AUDIT).all()} == {
        f"{tmp_path}/t": True,
        f"{tmp_path}/lat\\udce9": False,
        f"{tmp_path}/half\\ud800": False,
    }


def test_every_row_of_a_list_that_makes_no_sense_has_its_entry_in_the_audit(
    services: Services, tmp_path: Path
) -> None:
    text = f"path,name,vacuum.retention\n{tmp_path}/t,db.t,soon\n,,7 days\n"
    register_listed(services, actor("ana"), read_list(text, ListFormat.CSV), tell=print)
    entries = {row.on: row for row in services.store.rows(AUDIT).all()}
    assert set(entries) == {f"{tmp_path}/t", "line 3"}
    assert "'soon' is not a valid duration" in (entries[f"{tmp_path}/t"].why or "")
    assert "It names no table" in (entries["line 3"].why or "")
    assert not any(row.allowed for row in entries.values())


def test_what_nobody_foresaw_stops_no_other_table(services: Services, tmp_path: Path) -> None:
    for number in range(6):
        write_deltalake(str(tmp_path / f"t{number}"), pa.table({"id": [1]}))
    caller: Caller = actor("ana")
    said = list[str]()
    listed = read_list("".join(f"{tmp_path}/t{number}\n" for number in range(6)), ListFormat.PATHS)
    outcomes = register_listed(services, caller, listed, tell=said.append)
    refused = [one for one in outcomes if isinstance(one.came, LakewardenError)]
    assert [one.listed.where for one in refused] == [f"{tmp_path}/t3"]
    assert "ZeroDivisionError: division by zero" in str(refused[0].came)
    assert said == []
    entries = services.store.rows(AUDIT).all()
    assert Counter(row.allowed for row in entries) == {True: 5, False: 1}


def paths(*places: Path) -> list[Listed]:
    return [Listed(where=str(place), asked=WantedTable(where=str(place), moved=True)) for place in places]


def test_the_audit_says_who_registered_a_table_whoever_asks_for_it_again(
    services: Services, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        write_deltalake(str(tmp_path / name), pa.table({"id": [1]}))
    one, two = tmp_path / "one", tmp_path / "two"
    register_listed(services, actor("ana"), paths(one), tell=print)
    # Ana's next call is killed before it writes its entries.
    [killed] = register_batch(services.registry, [WantedTable(where=str(two))], actor=Actor(actor("ana")))
    assert isinstance(killed, Registered)
    register_listed(services, actor("bo"), paths(one, two), tell=print)
    register_listed(services, actor("ana"), paths(one, two), tell=print)
    entries = {row.on: row for row in services.store.rows(AUDIT).all()}
    assert {on: row.actor for on, row in entries.items()} == {str(one): "ana", str(two): "ana"}
    assert len(services.store.rows(AUDIT).all()) == 2
    assert entries[str(two)].at == killed.row.registered_at


@pytest.mark.heavy
def test_a_registration_that_is_repeated_has_one_entry_in_the_audit(
    services: Services, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        write_deltalake(str(tmp_path / name), pa.table({"id": [1]}))
    one, two = (WantedTable(where=str(tmp_path / name)) for name in ("one", "two"))
    # Ana's call for the second is killed before it writes its entry.
    register(services.registry, two.where, actor=Actor(actor("ana")))
    for who in ("ana", "bo", "ana"):
        for wanted in (one, two):
            register_one(services, actor(who), wanted)
    register_listed(services, actor("bo"), paths(tmp_path / "one", tmp_path / "two"), tell=print)
    entries = services.store.rows(AUDIT).all()
    assert sorted((row.actor, row.on, row.what) for row in entries) == [
        ("ana", one.where, "register"),
        ("ana", two.where, "register"),
    ]
    assert len({row.audit_id for row in entries}) == 2


def test_each_move_has_its_entry_in_the_audit_also_one_back(services: Services, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    write_deltalake(str(here), pa.table({"id": [1]}))
    register_listed(services, actor("ana", admin=True), paths(here), tell=print)
    here.rename(there)
    register_listed(services, actor("bo", admin=True), paths(there), tell=print)
    there.rename(here)
    register_listed(services, actor("cem", admin=True), paths(here), tell=print)
    here.rename(there)
    register_listed(services, actor("bo", admin=True), paths(there), tell=print)
    entries = sorted(services.store.rows(AUDIT).all(), key=lambda row: row.at)
    assert [(row.actor, row.on) for row in entries] == [
        ("ana", str(here)),
        ("bo", str(there)),
        ("cem", str(here)),
        ("bo", str(there)),
    ]
    register_listed(services, actor("bo", admin=True), paths(there), tell=print)
    assert len(services.store.rows(AUDIT).all()) == 4


def test_a_table_whose_health_nobody_could_write_is_registered_and_the_report_says_so(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fine", "odd"):
        write_deltalake(str(tmp_path / name), pa.table({"id": [1]}))
    store = services.store
    edit = type(store).edit

    def failing(self: object, table: object, change: Any, **named: Any) -> Any:
        def tried(rows: object) -> list[object]:
            made = list(change(rows))
            if any(isinstance(row, HealthRow) and row.name == "default.odd" for row in made):
                raise ZeroDivisionError("division by zero")
            return made

        return edit(self, table, tried, **named)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(type(store), "edit", failing)
    listed = paths(tmp_path / "fine", tmp_path / "odd")
    fine, odd = register_listed(services, actor("ana"), listed, tell=print)
    monkeypatch.undo()
    assert [word_of(one) for one in (fine, odd)] == [ReportWord.REGISTERED, ReportWord.REGISTERED]
    assert is_done(fine) and not is_done(odd) and worth_a_line(odd)
    assert "It is managed, but its health is not on record yet: Nobody foresaw this" in as_row(odd)["why"]
    assert summary([fine, odd], 0) == (
        "Registered 2 tables. The health of 1 is not on record yet. Took 0 seconds."
    )
    assert {row.on: row.allowed for row in store.rows(AUDIT).all()} == {
        str(tmp_path / "fine"): True,
        str(tmp_path / "odd"): True,
    }
    fine, odd = register_listed(services, actor("ana"), listed, tell=print)
    assert word_of(odd) is ReportWord.MANAGED and is_done(odd)
    assert isinstance(odd.came, Registered)
    assert store.rows(HEALTH).get(odd.came.row.table_id) is not None
