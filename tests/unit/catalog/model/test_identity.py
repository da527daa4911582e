"""Who is this table? Same, moved, copied, nested or new."""

import pyarrow as pa
import pytest

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.model.identity import Copy, Known, Moved, New, ancestors, check_nesting, identify
from lakewarden.catalog.model.rows import TableState


def index(*rows: tuple[str, str, str, list[str]]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "table_id": i,
                "kind": "table",
                "name": f"db.{i}",
                "location": at,
                "state": state,
                "format_ids": ids,
            }
            for i, at, state, ids in rows
        ],
        schema=pa.schema(
            [
                ("table_id", pa.string()),
                ("kind", pa.string()),
                ("name", pa.string()),
                ("location", pa.string()),
                ("state", pa.string()),
                ("format_ids", pa.list_(pa.string())),
            ]
        ),
    )


def test_the_location_decides_first_even_when_the_uuid_changed() -> None:
    known = index(("a", "file:///d/a", "active", ["u1"]))
    assert identify(known, "file:///d/a", "u2", alive=()) == Known(table_id="a", state=TableState.ACTIVE)


def test_a_live_row_wins_over_a_dropped_one_at_the_same_place() -> None:
    known = index(("old", "file:///d/a", "dropped", ["u1"]), ("new", "file:///d/a", "active", ["u2"]))
    assert identify(known, "file:///d/a", "u2", alive=()) == Known(table_id="new", state=TableState.ACTIVE)


def test_a_uuid_whose_old_place_is_empty_has_moved() -> None:
    known = index(("a", "file:///d/a", "active", ["u0", "u1"]))
    assert identify(known, "file:///d/b", "u1", alive=()) == Moved(table_id="a", from_location="file:///d/a")


def test_a_uuid_that_lives_in_two_places_is_a_copy() -> None:
    known = index(("a", "file:///d/a", "active", ["u1"]))
    found = identify(known, "file:///d/b", "u1", alive=("file:///d/a",))
    assert found == Copy(table_id="a", name="db.a", location="file:///d/a")


def test_an_earlier_uuid_of_another_table_means_nothing() -> None:
    known = index(("a", "file:///d/a", "active", ["u1", "u2"]))
    assert identify(known, "file:///d/b", "u1", alive=("file:///d/a",)) == New()


@pytest.mark.parametrize(
    "location", ["file:///d/a/inner", "file:///d/a/x/y", "file:///d"], ids=["in", "deep", "around"]
)
def test_tables_may_not_be_nested(location: str) -> None:
    with pytest.raises(RefusedError, match="inside"):
        check_nesting(index(("a", "file:///d/a", "active", [])), location)


@pytest.mark.parametrize("location", ["file:///d/ab", "file:///d/b", "hdfs://h/d/a/x"])
def test_neighbours_are_fine(location: str) -> None:
    known = index(("a", "file:///d/a", "active", []), ("b", "file:///e", "dropped", []))
    check_nesting(known, location)
    assert identify(known, location, None, alive=()) == New()


def test_ancestors_go_up_to_the_root() -> None:
    assert ancestors("hdfs://h:9000/a/b/c") == ("hdfs://h:9000/a/b", "hdfs://h:9000/a", "hdfs://h:9000")
