"""What Spark's catalog events say, read from their text."""

import pytest

from lakewarden.catalog.state.port import HintKind
from lakewarden.jobs.session.attached import Sighting
from lakewarden.jobs.session.catalog_listener import sightings


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param("CreateTableEvent(db,T1)", [Sighting("db.t1", HintKind.CREATED)], id="create"),
        pytest.param("DropTableEvent(db,t)", [Sighting("db.t", HintKind.DROPPED)], id="drop"),
        pytest.param("AlterTableEvent(db,t,table)", [Sighting("db.t", HintKind.ALTERED)], id="convert"),
        pytest.param(
            "RenameTableEvent(db,old,new)",
            [Sighting("db.old", HintKind.DROPPED), Sighting("db.new", HintKind.CREATED)],
            id="rename",
        ),
        pytest.param("DropDatabaseEvent(db)", [Sighting("db.*", HintKind.DROPPED)], id="drop database"),
        pytest.param(
            "CreateTablePreEvent(db,t) [CreateTableEvent(db,t), DropTablePreEvent(db,u), "
            "DropTableEvent(db,u)]",
            [Sighting("db.t", HintKind.CREATED), Sighting("db.u", HintKind.DROPPED)],
            id="several, announcements left out",
        ),
        pytest.param(
            "CreateDatabaseEvent(db) AlterDatabaseEvent(db) CreateFunctionEvent(db,f)",
            [],
            id="not about tables",
        ),
        pytest.param("wake up []", [], id="nothing"),
        pytest.param("SomethingEvent(a-b,c d) CreateTableEvent()", [], id="odd"),
    ],
)
def test_events_are_read(events: str, expected: list[Sighting]) -> None:
    assert sightings(events) == expected
