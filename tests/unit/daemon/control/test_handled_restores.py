"""What was handled is known by its entry: a RESTORE once, and the same move of a head as often as it was made."""

from dataclasses import replace

import pytest

from lakewarden.catalog.lineage.restores import RestoreCommit
from lakewarden.catalog.model.rollbacks import Undone
from lakewarden.daemon.control.handled_restores import HandledRestores

MOVE = Undone(table_id="t-1", name="db.t", first=3, last=4, by="a move", format_id="u-2")
LONGER = replace(MOVE, last=5)
ENTRY = "restored-t-1-left-3-4-u-2"


def test_a_move_is_handled_until_head_came_back_and_left_again() -> None:
    handled = HandledRestores()
    for number in ("", "-again-1", "-again-2"):
        assert not handled.has(MOVE) and handled.entry(MOVE) == f"{ENTRY}{number}"
        assert handled.returned([]) == {}, "of what was not handled there is nothing to say"
        handled.add([handled.entry(MOVE)])
        assert handled.has(MOVE) and handled.returned([MOVE]) == {}
        assert handled.returned([LONGER]) == {"t-1": (f"{ENTRY}{number}-back",)}
        handled.add(handled.returned([])["t-1"])
        assert handled.returned([]) == {}, "it is said once"


def test_where_head_came_back_to_a_part_the_rest_was_handled_with_it() -> None:
    handled, rest = HandledRestores(), replace(MOVE, first=4)
    others = [replace(rest, format_id="u-3"), replace(rest, table_id="t-2"), replace(rest, first=5, last=5)]
    assert handled.parts([rest]) == {}, "nothing was handled"
    handled.add([ENTRY])
    assert handled.parts([MOVE]) == {} and handled.parts([rest, *others]) == {"t-1": (rest,)}
    assert handled.parts([MOVE, rest]) == {}, "all of it is left"
    handled.add([handled.entry(rest)])
    assert handled.has(rest) and handled.parts([rest]) == {}
    assert handled.returned([rest]) == {"t-1": (f"{ENTRY}-back",)}
    handled.add([f"{ENTRY}-back"])
    assert handled.parts([replace(MOVE, last=3)]) == {}, "left once more, it is another move"


@pytest.mark.parametrize("turn", [1, -1])
def test_the_order_in_which_entries_are_read_does_not_matter(turn: int) -> None:
    handled = HandledRestores()
    ids = [ENTRY, f"{ENTRY}-back", f"{ENTRY}-again-1", "restored-t-1-7-u-2"]
    handled.add(ids[::turn])
    handled.add(ids)
    assert handled.has(MOVE) and not handled.has(LONGER)
    assert handled.returned([]) == {"t-1": (f"{ENTRY}-again-1-back",)}


def test_a_restore_is_one_of_its_kind() -> None:
    handled = HandledRestores()
    restore = RestoreCommit(table_id="t-1", version=7, target=2, ours=False, format_id="u-2")
    handled.add(["restored-t-1-7-u-2"])
    assert handled.has(restore) and not handled.has(replace(restore, version=8))
    again = replace(restore, log=1)
    assert not handled.has(again) and handled.entry(again) == "restored-t-1-7-u-2-log-1"
    assert handled.returned([]) == {}
