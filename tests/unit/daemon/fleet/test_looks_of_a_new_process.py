"""What a daemon that has just started looks at although it did not move: tables of which something is not on record."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.policy.scopes import govern
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.daemon.fleet.look import OnRecord, resolved_row
from lakewarden.daemon.fleet.observer import Observer
from support.builders.tables import FakeInspector, FakeReader, observation
from support.builders.worlds import NOW, health, row
from support.fakes.clock import ManualClock
from support.fakes.system_store import FakeSystemStore

SEEN = observation("file:///lake/db/t", NOW)
COMPLETE = OnRecord(schema=True, lineage={SEEN.format_id: SEEN.version})


def observed(one: TableRow, on_record: OnRecord) -> Any:
    """What a new process comes to about a table that is where it was; None: it does not look."""
    reader = FakeReader()
    reader.tables[one.location or ""] = SEEN
    store = FakeSystemStore()
    store.create(system_rows(store, now=NOW, actor="root"))
    observer = Observer(
        readers=(reader,),
        inspector=FakeInspector(),
        store=store,
        clock=ManualClock(NOW),
        checks_every=timedelta(days=1),
    )
    before = replace(health(), version=SEEN.version)
    return observer.look(govern(one, {}), before, must=False, checks=False, on_record=on_record)


def of_today(**properties: str) -> TableRow:
    return row("db.t", format_ids=(SEEN.format_id,), properties=properties)


@pytest.mark.parametrize(
    ("one", "on_record", "looks"),
    [
        pytest.param(of_today(**{READS_ELSEWHERE: ""}), COMPLETE, False, id="all is on record"),
        pytest.param(of_today(), COMPLETE, True, id="nobody asked where its files lie"),
        pytest.param(of_today(**{READS_ELSEWHERE: ""}), OnRecord(schema=False), True, id="no schema"),
    ],
)
def test_what_is_looked_at(one: TableRow, on_record: OnRecord, looks: bool) -> None:
    look = observed(one, on_record)
    assert (look is not None) is looks
    if look is not None:
        assert READS_ELSEWHERE in resolved_row(one, look, NOW).properties
