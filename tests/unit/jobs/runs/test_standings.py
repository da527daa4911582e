"""Which tables a deletion has to ask about: known readers of the folder, and those that nobody has looked at yet."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE
from lakewarden.catalog.model.rows import HealthRow, Source, TableRow, TableState
from lakewarden.catalog.model.unread_lineage import with_lineage_given_up, with_lineage_unread
from lakewarden.catalog.policy.original_properties import leaving
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import HEALTH, TABLES
from lakewarden.jobs.runs import standings as seen_by_sweeps
from lakewarden.jobs.runs.standings import StoredStandings
from support.fakes.system_store import FakeSystemStore

NOW = datetime(2026, 11, 22, tzinfo=UTC)
HERE = "file:///lake/t"


def row(name: str, **changes: Any) -> TableRow:
    values: dict[str, Any] = {
        "row": 9,
        "table_id": f"id-{name}",
        "name": f"db.{name}",
        "location": f"file:///lake/{name}",
        "source": Source.REGISTER,
        "registered_at": NOW,
        "registered_by": "ana",
        "updated_at": NOW,
        "updated_by": "ana",
    }
    return TableRow(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        pytest.param({"properties": {READS_ELSEWHERE: HERE}}, True, id="a clone"),
        pytest.param({"properties": {READS_ELSEWHERE: "file:///lake/u"}}, False, id="a clone of another"),
        pytest.param({"properties": {READS_ELSEWHERE: ""}}, False, id="looked at"),
        pytest.param({"properties": {}}, True, id="nobody looked"),
        pytest.param({"state": TableState.DROPPED}, True, id="dropped and nobody looked"),
        pytest.param({"state": TableState.CONVERTING}, False, id="no table yet"),
        pytest.param({"source": Source.SELF}, False, id="a system table"),
    ],
)
def test_who_is_asked_about(changes: dict[str, Any], asked: bool) -> None:
    store = FakeSystemStore()
    store.create(system_rows(store, now=NOW, actor="root"))
    other = row("other", **changes)
    store.edit(TABLES, lambda _: [other], because="test")
    found = StoredStandings(store).readers_of(HERE)
    assert found == ((other,) if asked else ())


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        pytest.param({}, True, id="active"),
        pytest.param({"state": TableState.QUARANTINED}, True, id="quarantined"),
        pytest.param({"state": TableState.PURGING}, True, id="its promise still counts"),
        pytest.param({"state": TableState.DROPPED}, True, id="dropped"),
        pytest.param({"state": TableState.DROPPED, "given_up": True}, False, id="dropped and given up"),
        pytest.param({"state": TableState.PURGING, "given_up": True}, False, id="half purged"),
        pytest.param({"state": TableState.DROPPED, "leaves": True}, True, id="leaving"),
        pytest.param({"state": TableState.PURGED}, False, id="purged"),
    ],
)
def test_who_waits_for_lineage_that_was_lost(changes: dict[str, Any], waits: bool) -> None:
    store = FakeSystemStore()
    store.create(system_rows(store, now=NOW, actor="root"))
    leaves, given_up = changes.pop("leaves", False), changes.pop("given_up", False)
    (marked,) = with_lineage_unread([row("d", **changes)], now=NOW, actor="root")
    other = leaving(marked, (), NOW.isoformat()) if leaves else marked
    other = with_lineage_given_up(other) if given_up else other
    store.edit(TABLES, lambda _: [other, row("t", row=10)], because="test")
    standings = StoredStandings(store)
    (audit,) = store.rows(TABLES).find(name="lakewarden.audit")
    found = {one: standings.of(one) for one in ("id-t", "id-d", audit.table_id)}
    said = {key: one.unread for key, one in found.items() if one is not None}
    assert said == {"id-t": "db.d" if waits else None, "id-d": None, audit.table_id: None}


def test_who_moved_since_the_last_sweep_is_looked_at_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    store = FakeSystemStore()
    store.create(system_rows(store, now=NOW, actor="root"))
    known = {"properties": {READS_ELSEWHERE: ""}}
    swept, new = row("swept", **known), row("new", **known, row=10)
    others = [
        row("unlooked", properties={}, row=11),  # whoever deletes looks at it anyway
        row("purged", **known, state=TableState.PURGED, row=12),
        row("own", **known, source=Source.SELF, row=13),
    ]
    store.edit(TABLES, lambda _: [swept, new, *others], because="test")
    health = HealthRow(table_id=swept.table_id, name=swept.name, version=7, observed_at=NOW)
    store.edit(HEALTH, lambda _: [health], because="test")
    standings, looks, moment = StoredStandings(store), Counter[tuple[str, int | None]](), 0.0
    monkeypatch.setattr(seen_by_sweeps, "monotonic", lambda: moment)

    def look(one: TableRow, version: int | None, head: str | None) -> TableRow | None:
        looks[one.name, version] += 1
        return one if one is not swept else None

    assert [one.name for one in standings.moved(look)] == ["db.new"]
    assert looks == {("db.swept", 7): 1, ("db.new", None): 1}
    moment = 59.0
    assert [one.name for one in standings.moved(look)] == ["db.new"]
    assert looks.total() == 2
    moment = 61.0
    standings.moved(look)
    assert looks.total() == 4
