"""Which tables a list has: every filter narrows it, and what a scope stops counts for each table below it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.rows import DELTA, Finding, RowKind, Severity, TableRow, TableState
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import HEALTH, TABLES
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.daemon.usecases.tables import STOPPED, TableFilter, Work, fleet
from support.builders.system_samples import NOW, sample

LOST = Finding(check="head_files", severity=Severity.ERROR, message="One file is missing.", since=NOW)


def row(number: int, name: str, **changes: Any) -> TableRow:
    plain = replace(sample(TABLES, number), kind=RowKind.TABLE, name=name, paused=None, hold=None)
    chosen = {"owner": "ana", "state": TableState.ACTIVE, "format": DELTA, **changes}
    made: TableRow = replace(plain, **chosen)
    return made


def scope(number: int, name: str, **changes: Any) -> TableRow:
    return row(number, name, kind=RowKind.SCOPE, location=None, **changes)


ROWS = [
    row(10, "db.events"),
    row(11, "db.events_raw", owner="bo", state=TableState.QUARANTINED),
    row(12, "db.inner.events", paused="by hand"),
    row(13, "other.events", hold="audit"),
    row(14, "other.gone", state=TableState.DROPPED),
]


@pytest.fixture
def store(tmp_path: Path) -> DeltaSystemStore:
    made = DeltaSystemStore(canonical(str(tmp_path / "system")), StorageOptions(), actor="tests")
    made.create(system_rows(made, now=NOW, actor="tests"))
    made.edit(TABLES, lambda _: ROWS, because="fleet")
    seen = [replace(sample(HEALTH, one), findings=(LOST,) if one == 11 else ()) for one in (10, 11, 12)]
    made.edit(HEALTH, lambda _: seen, because="sweep")
    return made


def names(store: DeltaSystemStore, wanted: TableFilter) -> list[str]:
    listed: list[str] = fleet(store, wanted).column("name").to_pylist()
    return [name for name in listed if not name.startswith("lakewarden.")]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (TableFilter(), ["db.events", "db.events_raw", "db.inner.events", "other.events"]),
        (TableFilter(gone=True), [one.name for one in ROWS]),
        (TableFilter(state="dropped"), ["other.gone"]),
        (TableFilter(names="db.*"), ["db.events", "db.events_raw", "db.inner.events"]),
        (TableFilter(names="*_raw"), ["db.events_raw"]),
        (TableFilter(names="db.event?"), ["db.events"]),
        (TableFilter(names="dbxevents"), []),
        (TableFilter(owner="bo"), ["db.events_raw"]),
        (TableFilter(state="quarantined"), ["db.events_raw"]),
        (TableFilter(format="iceberg"), []),
        (TableFilter(finding="head_files"), ["db.events_raw"]),
        (TableFilter(finding="*"), ["db.events_raw"]),
        (TableFilter(finding="log_readable"), []),
        (TableFilter(stopped=Work.PAUSED), ["db.inner.events"]),
        (TableFilter(stopped=Work.HELD), ["other.events"]),
        (TableFilter(namespace="other", names="*events"), ["other.events"]),
    ],
)
def test_a_table_has_to_meet_all_that_is_said(
    store: DeltaSystemStore, wanted: TableFilter, found: list[str]
) -> None:
    assert names(store, wanted) == found


def test_a_scope_stops_the_tables_of_its_database_and_no_others(store: DeltaSystemStore) -> None:
    store.edit(TABLES, lambda _: [scope(20, "db.*", paused="month end", hold="audit")], because="pause")
    told = fleet(store, TableFilter(names="*events*")).select(["name", STOPPED]).to_pylist()
    assert {one["name"]: one[STOPPED] for one in told} == {
        "db.events": "paused, held",
        "db.events_raw": "paused, held",
        "db.inner.events": "paused",
        "other.events": "held",
    }


def test_everything_paused_is_every_table_paused(store: DeltaSystemStore) -> None:
    store.edit(TABLES, lambda _: [scope(20, "*", paused="fire")], because="pause")
    assert set(fleet(store).column(STOPPED).to_pylist()) == {"paused", "paused, held"}


def test_a_state_that_there_is_none_of_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="no state 'quarantine'") as refused:
        TableFilter(state="quarantine")
    assert refused.value.hint == "Did you mean quarantined?"
