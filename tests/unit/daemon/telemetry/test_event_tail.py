"""Lineage events on their way: real system tables and a real bookmark, to a real HTTP endpoint and a real file."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.lineage.edges import ALIAS, NOT_KNOWN, NOTHING
from lakewarden.catalog.model.rows import DELTA, Confidence, LineageRow, Source, TableRow
from lakewarden.catalog.state.port import Bookmarks
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.maintenance import compact
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import LINEAGE, TABLES
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.daemon.telemetry.openlineage_events import MakerSource, events_on_record
from lakewarden.daemon.telemetry.openlineage_sender import EventTail
from lakewarden.daemon.telemetry.openlineage_sinks import FileSink, HttpSink, Sink, sinks_of
from support.builders.states import database_state, sqlite_url
from support.servers.receivers import Receiver, until

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NAMES = ("a", "b")


def edge(table: str, version: int, input_id: str = NOTHING, **changes: Any) -> LineageRow:
    values: dict[str, Any] = {
        "output_id": table,
        "output_version": version,
        "input_id": input_id,
        "operation": "append",
        "confidence": Confidence.COMMITTED,
        "recorded_at": NOW,
    }
    return LineageRow(**{**values, **changes})


@dataclass
class Station:
    """System tables with two managed tables, a bookmark, and tails that are stopped at the end."""

    folder: Path
    bookmarks: Bookmarks
    metrics: Metrics = field(default_factory=Metrics)
    running: list[EventTail] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = load_settings(home=self.folder / "home", environment={})
        self.store = self.opened()
        self.store.create(system_rows(self.store, now=NOW, actor="test"))
        self.store.edit(
            TABLES, lambda _: [self.row(name, 10 + n) for n, name in enumerate(NAMES)], because="t"
        )

    def opened(self) -> DeltaSystemStore:
        return DeltaSystemStore(canonical(str(self.folder / "system")), StorageOptions(), actor="test")

    def row(self, name: str, number: int) -> TableRow:
        return TableRow(
            row=number,
            table_id=name,
            name=f"db.{name}",
            format=DELTA,
            location=f"file:///lake/{name}",
            source=Source.REGISTER,
            registered_at=NOW,
            registered_by="test",
            updated_at=NOW,
            updated_by="test",
        )

    def tail(self, sink: Sink) -> EventTail:
        """A daemon's tail that has just been started."""
        made = EventTail(
            store=self.store,
            bookmarks=self.bookmarks,
            sink=sink,
            maker=MakerSource(self.store, self.settings),
            metrics=self.metrics,
            pause=0.01,
        )
        made.start()
        self.running.append(made)
        return made

    def record(self, *rows: LineageRow) -> None:
        """What a sweep writes down in one commit."""
        self.store.append(LINEAGE, rows, because="test")

    def stop(self) -> None:
        while self.running:
            self.running.pop().stop()


@pytest.fixture
def station(tmp_path: Path) -> Iterator[Station]:
    with database_state(sqlite_url(tmp_path)) as state:
        made = Station(tmp_path, state.bookmarks)
        yield made
        made.stop()


def http(receiver: Receiver, token: str | None = None) -> HttpSink:
    return HttpSink(receiver.url, timeout=timedelta(seconds=5), token=token)


def versions(events: Iterable[dict[str, Any]], name: str = "a") -> list[int]:
    """The versions of one table that events tell of, in their order."""
    ends = [one["outputs"][0] for one in events]
    return [int(one["facets"]["version"]["datasetVersion"]) for one in ends if one["name"] == f"/lake/{name}"]


@pytest.mark.heavy
def test_every_version_is_sent_once_in_its_order(station: Station, receiver: Receiver) -> None:
    tail = station.tail(http(receiver, token="secret"))
    for sweep in range(3):
        station.record(*(edge(name, 2 * sweep + one) for name in NAMES for one in (0, 1)))
        tail.look()
    until(lambda: len(receiver.got) == 12)
    tail.stop()
    assert [versions(receiver.got, name) for name in NAMES] == [[0, 1, 2, 3, 4, 5]] * 2
    assert receiver.tokens == {"Bearer secret"}
    assert b'lakewarden_events_total{outcome="sent",sink="openlineage.url"} 12.0' in station.metrics.render()


@pytest.mark.heavy
def test_an_endpoint_that_is_away_and_back_misses_nothing(station: Station, receiver: Receiver) -> None:
    tail = station.tail(http(receiver))
    station.record(edge("a", 0))
    tail.look()
    until(lambda: versions(receiver.got) == [0])
    receiver.close()
    for version in range(1, 6):
        station.record(edge("a", version), edge("b", version - 1, "a"))
        tail.look()
    receiver.answers = [503, 500, 429, 302, 404]
    receiver.open()
    until(lambda: len(receiver.got) == 11)
    assert versions(receiver.got) == [0, 1, 2, 3, 4, 5]
    assert versions(receiver.got, "b") == [0, 1, 2, 3, 4]


@pytest.mark.heavy
def test_what_was_not_sent_is_sent_after_a_restart(station: Station, receiver: Receiver) -> None:
    station.tail(http(receiver)).stop()
    receiver.close()
    before = station.tail(http(receiver))
    station.record(edge("a", 0), edge("a", 1))
    before.look()
    station.stop()
    station.record(edge("a", 2))
    receiver.open()
    station.tail(http(receiver)).look()
    until(lambda: versions(receiver.got) == [0, 1, 2])


@pytest.mark.heavy
def test_without_a_bookmark_it_begins_with_what_comes_next(station: Station, receiver: Receiver) -> None:
    station.record(edge("a", 0))
    tail = station.tail(http(receiver))
    station.record(edge("a", 1))
    tail.look()
    until(lambda: versions(receiver.got) == [1])
    told = [json.loads(one.text) for one in events_on_record(station.store, station.settings, table_id="a")]
    assert versions(told) == [0, 1]
    assert told[1] == receiver.got[0]


@pytest.mark.heavy
def test_a_stopping_daemon_sends_what_its_last_cycle_recorded(station: Station, receiver: Receiver) -> None:
    tail = station.tail(http(receiver))
    station.record(edge("a", 0))
    tail.look()
    station.stop()
    assert versions(receiver.got) == [0]


@pytest.mark.heavy
def test_an_event_that_is_refused_holds_up_no_other(station: Station, receiver: Receiver) -> None:
    receiver.answers = [422]
    tail = station.tail(http(receiver))
    station.record(edge("a", 0), edge("a", 1))
    tail.look()
    until(lambda: versions(receiver.got) == [1])
    tail.stop()
    assert (
        b'lakewarden_events_total{outcome="refused",sink="openlineage.url"} 1.0' in station.metrics.render()
    )


@pytest.mark.heavy
def test_what_becomes_known_later_is_told_again_as_the_same_run(station: Station, receiver: Receiver) -> None:
    tail = station.tail(http(receiver))
    station.record(edge("a", 0, NOT_KNOWN, confidence=Confidence.HINT))
    tail.look()
    until(lambda: len(receiver.got) == 1)
    station.record(edge("a", 0, "b", input_version=4, confidence=Confidence.STREAM))
    tail.look()
    until(lambda: len(receiver.got) == 2)
    first, again = receiver.got
    assert first["run"]["runId"] == again["run"]["runId"]
    assert (len(first["inputs"]), len(again["inputs"])) == (0, 1)
    assert again["run"]["facets"]["lakewarden_version"]["lineage"] == "complete"


@pytest.mark.heavy
def test_maintenance_of_tables_and_of_lineage_itself_sends_nothing(
    station: Station, receiver: Receiver
) -> None:
    tail = station.tail(http(receiver))
    station.record(edge("a", 0))
    station.record(edge("a", 1, "a", operation=ALIAS, input_version=0))
    station.store.raise_fence("another leader", at_least=7)
    station.record(edge("a", 2))
    tail.look()
    until(lambda: versions(receiver.got) == [0, 2])


@pytest.mark.heavy
def test_a_bookmark_beyond_the_table_is_put_back_to_its_end(station: Station, receiver: Receiver) -> None:
    station.bookmarks.put("openlineage.url", 10_000)
    tail = station.tail(http(receiver))
    tail.look()
    until(lambda: station.bookmarks.get("openlineage.url") == station.store.rows(LINEAGE).version)
    station.record(edge("a", 0))
    tail.look()
    until(lambda: versions(receiver.got) == [0])


@pytest.mark.heavy
def test_a_commit_whose_files_are_gone_is_passed_over_in_the_end(
    station: Station, receiver: Receiver
) -> None:
    station.tail(http(receiver))
    station.stop()
    for version in range(4):
        station.record(edge("a", version))
    note = Note(actor="test", because="care")
    assert compact(station.store, LINEAGE, target_bytes=1 << 20, min_small_files=2, note=note).files_added
    station.record(edge("a", 4))
    place = station.store.location(LINEAGE)
    kept = {uri.rpartition("/")[2] for uri in DeltaTable(place).file_uris()}
    for file in (station.folder / "system" / "lineage").glob("bucket=*/*.parquet"):
        if file.name not in kept:
            file.unlink()
    station.store = station.opened()  # one that has nothing in its cache
    tail = station.tail(http(receiver))

    def over() -> bool:
        tail.look()
        return bool(receiver.got)

    until(over)
    assert versions(receiver.got) == [4]


def test_a_file_grows_by_one_line_per_event(station: Station, tmp_path: Path) -> None:
    path = tmp_path / "not yet" / "events.jsonl"
    tail = station.tail(FileSink(path))
    station.record(edge("a", 0), edge("a", 1))
    tail.look()
    until(lambda: path.exists() and path.read_bytes().count(b"\n") == 2)
    path.write_bytes(path.read_bytes() + b'{"torn by a cra')
    station.record(edge("a", 2))
    tail.look()
    until(lambda: path.read_bytes().count(b"\n") == 4)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert versions(json.loads(line) for line in (*lines[:2], lines[3])) == [0, 1, 2]


def test_a_file_that_cannot_be_written_is_waited_for(station: Station, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.mkdir()
    tail = station.tail(FileSink(path))
    station.record(edge("a", 0))
    tail.look()
    until(lambda: tail.trouble is not None)
    path.rmdir()
    until(lambda: path.is_file() and path.read_bytes().endswith(b"\n"))
    until(lambda: tail.trouble is None)


def test_the_settings_say_where_events_go(tmp_path: Path) -> None:
    flags = {"openlineage.file": str(tmp_path / "events"), "openlineage.url": "http://localhost/secret"}
    settings = load_settings(home=tmp_path, environment={}, flags=flags)
    assert [one.name for one in sinks_of(settings)] == list(flags)
    assert sinks_of(load_settings(home=tmp_path, environment={})) == ()
    shown = {one.key: one.value for one in settings.explain()}
    assert shown["openlineage.url"] == "http://localhost"
    with pytest.raises(UsageError, match="has to be a web address"):
        load_settings(home=tmp_path, environment={}, flags={"openlineage.url": "marquez:5000"})
