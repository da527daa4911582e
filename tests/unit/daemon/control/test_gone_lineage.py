"""The logs of tables that are gone, read again for lost lineage: no cycle waits long, and no table for good."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.model.rows import GONE, LineageRow, TableState
from lakewarden.catalog.model.unread_lineage import is_given_up, is_lineage_unread
from lakewarden.catalog.policy.original_properties import awaits_lineage
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.port import LINEAGE, TABLES, Fence
from lakewarden.daemon.control.gone_lineage import GoneLineageClerk
from support.builders.chained_tables import CHAINED_AT, Chain, CountingReader
from support.fakes.clock import ManualClock

pytestmark = pytest.mark.heavy

FENCE = cast(Fence, None)


@dataclass
class OddReader(CountingReader):
    """Before it reads a log, it does what it was told to for that place."""

    odd: dict[str, Callable[[], object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        self.odd.get(location.rpartition("/")[2], lambda: None)()
        return super().commits(location, after=after, upto=upto)


class Bench:
    """`d`, from which `x` was made, is gone; that it was made from `t` is lost."""

    def __init__(self, folder: Path) -> None:
        self.chain, self.reader = Chain(folder), OddReader()
        self.clock = ManualClock(moment=CHAINED_AT)
        store = self.chain.store

        class Cache:
            """As much of the fleet's cache as is asked."""

            reverted_ranges = SimpleNamespace(ranges={})

            def gone_unread(self) -> tuple[Any, ...]:
                rows = store.rows(TABLES).all()
                return tuple(row for row in rows if row.state in GONE and awaits_lineage(row))

            def wrote_lineage(self, *told: object) -> None:
                """It asks the store each time."""

            wrote_tables = wrote_lineage

        harvest = StreamHarvest(store=store, storage=lambda _: StorageOptions(), readers=(self.reader,))
        self.clerk = GoneLineageClerk(
            store=store, cache=cast(Any, Cache()), readers=(self.reader,), harvest=harvest, clock=self.clock, wait=0.2
        )  # fmt: skip

    def gone(self, *names: str, state: TableState = TableState.DROPPED) -> None:
        self.chain.mark(*names)
        self.chain.change(*(replace(self.chain.row(name), state=state) for name in names))

    def known(self) -> list[LineageRow]:
        """What is on record of what `d` was made from."""
        found = self.chain.store.rows(LINEAGE).find(output_id="d")
        return [one for one in found if one.output_version == 1]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("state", [TableState.DROPPED, TableState.PURGING])
def test_a_log_that_is_there_is_read_once(bench: Bench, state: TableState) -> None:
    bench.gone("d", state=state)
    assert awaits_lineage(bench.chain.row("d"))
    assert (bench.clerk.record(FENCE), len(bench.known())) == (1, 1)
    assert not is_lineage_unread(bench.chain.row("d").properties) and bench.clerk.record(FENCE) == 0


@pytest.mark.parametrize("state", [TableState.DROPPED, TableState.PURGING])
def test_nobody_waits_for_a_log_that_is_not_there_any_more(bench: Bench, state: TableState) -> None:
    bench.gone("d", state=state)
    (bench.chain.folder / "d").rename(bench.chain.folder / "aside")
    assert bench.clerk.record(FENCE) == 1
    row = bench.chain.row("d")
    assert is_given_up(row.properties) and is_lineage_unread(row.properties) and not awaits_lineage(row)
    assert awaits_lineage(replace(row, state=TableState.ACTIVE)), "who brings it back has it read"
    bench.chain.mark("d")
    assert not awaits_lineage(bench.chain.row("d")), "the moment is the same"


def test_a_log_that_takes_long_is_taken_up_later_and_begun_once(bench: Bench) -> None:
    goes_on, begun = Event(), list[bool]()

    def slow() -> None:
        begun.append(goes_on.is_set())
        goes_on.wait(30)

    bench.reader.odd["d"] = slow
    bench.gone("d", "beside")
    started = time.monotonic()
    assert bench.clerk.record(FENCE) <= 1 and bench.clerk.record(FENCE) <= 1
    assert time.monotonic() - started < 10 and bench.known() == []
    assert not is_lineage_unread(bench.chain.row("beside").properties), "others do not wait for it"
    goes_on.set()
    until = time.monotonic() + 30
    while not bench.known() and time.monotonic() < until:
        bench.clerk.record(FENCE)
        time.sleep(0.05)
    assert len(bench.known()) == 1 and begun.count(False) == 1


def test_an_odd_log_stops_no_other(bench: Bench) -> None:
    def odd() -> None:
        raise ValueError("an odd log")

    bench.reader.odd["beside"] = odd
    bench.gone("d", "beside")
    assert bench.clerk.record(FENCE) == 2 and len(bench.known()) == 1
    assert is_given_up(bench.chain.row("beside").properties)


def test_a_storage_that_is_away_is_asked_now_and_then_for_a_week(bench: Bench) -> None:
    asked = list[str]()

    def away() -> None:
        asked.append("d")
        raise UnavailableError("no route to host")

    bench.reader.odd["d"] = away
    bench.gone("d")
    assert [bench.clerk.record(FENCE) for _ in range(3)] == [0, 0, 0] and len(asked) == 1
    assert awaits_lineage(bench.chain.row("d")), "it may be read still"
    bench.clock.moment += timedelta(minutes=6)
    assert bench.clerk.record(FENCE) == 0 and len(asked) == 2
    bench.clock.moment += timedelta(days=7)
    assert bench.clerk.record(FENCE) == 1 and not awaits_lineage(bench.chain.row("d"))
