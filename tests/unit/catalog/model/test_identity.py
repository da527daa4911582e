"""Who is this table? Same, moved, copied, nested or new."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.model.identity import (
    AlreadyManaged,
    Copy,
    Follow,
    Moved,
    New,
    OneOfSeveral,
    RegisteredPlaces,
    ancestors,
    check_nesting,
    identify,
)
from lakewarden.catalog.model.rows import Source, TableRow, TableState
from lakewarden.catalog.storage.place import Moment


def index(*rows: tuple[str, str, str, list[str]], follow: Follow = str) -> RegisteredPlaces:
    held = pa.Table.from_pylist(
        [
            {
                "table_id": i,
                "kind": "table",
                "name": f"db.{i}",
                "location": at,
                "state": "dropped" if state == "left" else state,
                "format_ids": ids,
                "properties": [("left.at", "2026-06-01T00:00:00+00:00")] if state == "left" else [],
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
                ("properties", pa.map_(pa.string(), pa.string())),
            ]
        ),
    )
    return RegisteredPlaces(held, follow=follow)


def test_the_location_decides_first_even_when_the_uuid_changed() -> None:
    known = index(("a", "file:///d/a", "active", ["u1"]))
    assert identify(known, "file:///d/a", "u2", alive=()) == AlreadyManaged(
        table_id="a", state=TableState.ACTIVE
    )


@pytest.mark.parametrize(
    "location",
    ["abfs://box@acc.blob.core.windows.net/t", "wasb://Box@acc.blob.core.windows.net/t"],
)
def test_a_place_in_azure_is_known_by_each_of_its_names(location: str) -> None:
    managed = ("a", "abfs://box@acc.dfs.core.windows.net/t", "active", ["u1"])
    known = index(managed, follow=Moment().spelling)
    assert identify(known, location, "u1", alive=()) == AlreadyManaged(table_id="a", state=TableState.ACTIVE)
    with pytest.raises(RefusedError, match="lies inside the managed table"):
        check_nesting(known, f"{location}/inner", outer=None)


def test_a_live_row_wins_over_a_dropped_one_at_the_same_place() -> None:
    known = index(("old", "file:///d/a", "dropped", ["u1"]), ("new", "file:///d/a", "active", ["u2"]))
    assert identify(known, "file:///d/a", "u2", alive=()) == AlreadyManaged(
        table_id="new", state=TableState.ACTIVE
    )


def test_a_uuid_whose_old_place_is_empty_has_moved() -> None:
    known = index(("a", "file:///d/a", "active", ["u0", "u1"]))
    assert identify(known, "file:///d/b", "u1", alive=()) == Moved(table_id="a", from_location="file:///d/a")


def test_a_table_that_seemed_dropped_has_moved_and_comes_back() -> None:
    known = index(("a", "file:///d/a", "left", ["u1"]), ("b", "file:///d/b", "dropped", ["u2"]))
    assert identify(known, "file:///d/c", "u1", alive=()) == Moved(
        table_id="a", from_location="file:///d/a", is_back=True
    )
    assert identify(known, "file:///d/c", "u2", alive=()) == New(), "somebody gave that one up"


def test_a_uuid_that_lives_in_two_places_is_a_copy() -> None:
    known = index(("a", "file:///d/a", "active", ["u1"]))
    found = identify(known, "file:///d/b", "u1", alive=("file:///d/a",))
    assert found == Copy(table_id="a", name="db.a", location="file:///d/a")


def test_of_several_copies_that_moved_none_is_taken_for_another() -> None:
    known = index(
        ("prod", "file:///d/prod", "active", ["u"]),
        ("dev", "file:///d/dev", "active", ["u"]),
        ("live", "file:///d/live", "active", ["v"]),
        ("lost", "file:///d/lost", "left", ["v"]),
    )
    there = "file:///d/new"
    assert identify(known, there, "u", alive=()) == OneOfSeveral(lost=("db.dev", "db.prod"))
    dev = Moved(table_id="dev", from_location="file:///d/dev")
    assert identify(known, there, "u", alive=(), name="db.dev") == dev
    assert identify(known, there, "u", alive=(), at_head=("dev",)) == dev
    assert isinstance(identify(known, there, "u", alive=(), at_head=("dev", "prod")), OneOfSeveral)
    alive = ("file:///d/live",)
    copy = Copy(table_id="live", name="db.live", location="file:///d/live", lost=("db.lost",))
    assert identify(known, there, "v", alive=alive) == copy
    assert identify(known, there, "v", alive=alive, at_head=("live",)) == copy
    lost = Moved(table_id="lost", from_location="file:///d/lost", is_back=True)
    assert identify(known, there, "v", alive=alive, at_head=("lost",)) == lost
    assert identify(known, there, "v", alive=alive, name="db.lost") == lost


def test_an_earlier_uuid_of_another_table_means_nothing() -> None:
    known = index(("a", "file:///d/a", "active", ["u1", "u2"]))
    assert identify(known, "file:///d/b", "u1", alive=("file:///d/a",)) == New()


@pytest.mark.parametrize(
    "location", ["file:///d/a/inner", "file:///d/a/x/y", "file:///d"], ids=["in", "deep", "around"]
)
def test_tables_may_not_be_nested(location: str) -> None:
    with pytest.raises(RefusedError, match="inside"):
        check_nesting(index(("a", "file:///d/a", "active", [])), location, outer=None)


@pytest.mark.parametrize("location", ["file:///d/ab", "file:///d/b", "hdfs://h/d/a/x"])
def test_neighbours_are_fine(location: str) -> None:
    known = index(("a", "file:///d/a", "active", []), ("b", "file:///e", "dropped", []))
    check_nesting(known, location, outer=None)
    assert identify(known, location, None, alive=()) == New()


def test_ancestors_go_up_to_the_root() -> None:
    assert ancestors("hdfs://h:9000/a/b/c") == ("hdfs://h:9000/a/b", "hdfs://h:9000/a", "hdfs://h:9000")


def row(table_id: str, location: str, *, uuid: str, name: str = "db.new") -> TableRow:
    at = datetime(2026, 6, 1, tzinfo=UTC)
    return TableRow(
        row=9, table_id=table_id, name=name, location=location, source=Source.REGISTER, registered_at=at,
        registered_by="ana", updated_at=at, updated_by="ana", format_ids=(uuid,),
    )  # fmt: skip


def test_what_was_added_counts_for_the_next_decision_and_not_in_the_original() -> None:
    known = index(("a", "file:///d/a", "active", ["u1"]))
    more = known.copy()
    more.add(row("b", "file:///d/b", uuid="u2"))
    assert identify(more, "file:///d/b", None, alive=()) == AlreadyManaged(
        table_id="b", state=TableState.ACTIVE
    )
    assert identify(more, "file:///d/c", "u2", alive=("file:///d/b",)) == Copy(
        table_id="b", name="db.new", location="file:///d/b"
    )
    assert [one.table_id for one in more.named("db.new")] == ["b"]
    with pytest.raises(RefusedError, match="lies inside the managed table db.new"):
        check_nesting(more, "file:///d/b/inner", outer=None)
    with pytest.raises(RefusedError, match=r"db.new .* lies inside file:///d/b"):
        other = known.copy()
        other.add(row("b", "file:///d/b/inner", uuid="u2"))
        check_nesting(other, "file:///d/b", outer=None)
    assert identify(known, "file:///d/b", "u2", alive=()) == New()
    assert not known.named("db.new")


def test_a_table_is_not_nested_in_itself() -> None:
    known = index(("a", "file:///d/a", "active", []), ("b", "file:///d/a", "dropped", []))
    check_nesting(known, "file:///d/a/x", but="a", outer=None)
    with pytest.raises(RefusedError, match="inside"):
        check_nesting(known, "file:///d/a/x", but="b", outer=None)


def test_a_row_that_is_taken_in_again_leaves_what_it_held() -> None:
    before = index(("a", "file:///d/a", "active", ["u1"]), ("b", "file:///d/a/b", "dropped", ["u2"]))
    known = before.copy()
    known.add(row("a", "file:///d/new", uuid="u3", name="db.a"))
    assert identify(known, "file:///d/a", "u9", alive=()) == New()
    assert identify(known, "file:///d/x", "u1", alive=()) == New()
    assert isinstance(identify(known, "file:///d/new", "u9", alive=()), AlreadyManaged)
    assert isinstance(identify(known, "file:///d/x", "u3", alive=()), Moved)
    check_nesting(known, "file:///d/a/inner", outer=None)
    with pytest.raises(RefusedError, match="lies inside the managed table db.a"):
        check_nesting(known, "file:///d/new/inner", outer=None)
    assert [one.location for one in known.named("db.a")] == ["file:///d/new"]
    assert isinstance(identify(before, "file:///d/a", "u9", alive=()), AlreadyManaged), (
        "the copy alone has changed"
    )
    known.add(row("a", "file:///d/a", uuid="u1", name="db.a"))
    assert isinstance(identify(known, "file:///d/a", None, alive=()), AlreadyManaged)
    assert [one.location for one in known.inside("file:///d")] == ["file:///d/a"]
