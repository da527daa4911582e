"""Which tables a deletion has to ask about: known readers of the folder, and those that nobody has looked at yet."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE
from lakewarden.catalog.model.rows import Source, TableRow, TableState
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import TABLES
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
