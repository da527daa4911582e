"""Witnesses: for each hole the fewest steps, picked by a person, that show it while it is open;
closed, they find nothing.

A word is `name:y@x!n`: a move, its two numbers, and the failpoint at which its actor stands still.
"""

from typing import Final

from support.adversary import themes
from support.adversary.disasters.holes import DISASTER_HOLES
from support.adversary.game import History, played
from support.adversary.holes import HOLES, Hole, opened
from support.adversary.iceberg.ice_holes import ICE_HOLES, ICE_WITNESSES
from support.adversary.moves import Step
from support.adversary.rollback_holes import ROLLBACK_HOLES
from support.adversary.stage import Stage

__all__ = ["EVERY_HOLE", "ICE_HOLES", "WITNESSES", "is_seen", "steps_of"]

_KNOWN = themes
"""Moves are in the table once it is imported."""
EVERY_HOLE: Final = (*HOLES, *ROLLBACK_HOLES, *DISASTER_HOLES)
"""Those that Delta tables show. `ICE_HOLES` need a stage with Spark."""
_OLD = "make:1 register:1 overwrite append wait:2"
"""A table with files that a vacuum may take."""
_TWO = "found found load make_from"
"""A table with a bad load, and one that was made from it."""
_MANAGED = "make:1 register:1"
WITNESSES: Final = {
    "1.1": f"{_OLD} order:0 hold:0 work",
    "1.2": f"{_MANAGED} purge wait:2 cycle remake:1 work",
    "1.2 files": f"{_MANAGED} purge wait:2 cycle leave_file work",
    "1.3": f"{_MANAGED} purge move_folder register:0 wait:2 cycle work",
    "1.4": f"{_OLD} order:0 work!6 restore wake",
    "1.4 undo": f"{_TWO} cascade:4 apply_cascade!204 undo_cascade wake",
    "1.5": f"{_OLD} hold:1 rename:0 order:0 work",
    "1.6": f"{_MANAGED} append plan apply!11 append wake",
    "1.7 replaced": "make:1 register:1 overwrite append make:1 overwrite@1 append@1 "
    "wait:2 order:0 swap:0 work",
    "1.7 away": "make_there:1 register:1 copy_folder unplug register:7",
    "2.1": f"{_MANAGED} nest wait:2 order:1 work",
    "2.2": f"{_MANAGED} keep_long:0 order:6 work",
    "2.3": f"{_MANAGED} clone register:1@1 overwrite@0 wait:2 order:0 work",
    "2.4": f"{_MANAGED} link wait:2 order:1 work",
    "2.5": f"{_MANAGED} append overwrite policy@1:3 wait:2 spoil_checkpoint append cycle work",
    "2.6 stale": f"{_MANAGED} rename:1 rename:3 rename:5 rename:1 back_up:1 damage_catalog:2@3 "
    "mend_catalog@1 rename:3 rename:5 back_up",
    "2.6 purge": f"{_MANAGED} purge back_up:1 undrop lose_catalog mend_catalog",
    "2.6 lock": f"{_MANAGED} append append plan:0 apply!204 back_up:1 lose_catalog mend_catalog",
    "2.6 claim": f"{_MANAGED} back_up:1 order:0 lose_catalog mend_catalog",
    "2.6 history": f"{_MANAGED} back_up:1 rename:1 rename:2 rename:3 back_up:1 lose_catalog mend_catalog "
    "damage_catalog:1 mend_catalog@1 mend_catalog@1",
    "2.6 cut": f"{_MANAGED} purge undrop damage_catalog:0 mend_catalog",
    "2.6 anew": f"{_MANAGED} back_up:1 lose_catalog:1 mend_catalog@1 damage_catalog:1 "
    "mend_catalog mend_catalog",
    "2.7": f"{_MANAGED} order:6 work drop",
    "3.1": f"{_TWO} cascade:4 apply_cascade!205 make_from:3 resume_cascade undo_cascade",
    "3.2": f"{_TWO} cascade:4 apply_cascade!205 resume_cascade",
    "3.3": f"{_TWO} append@1 cascade:4 apply_cascade",
    "3.4": f"{_TWO} cascade:1 apply_cascade!205 load@1 wake",
    "3.5": f"{_TWO} note load cascade",
    "3.6": f"{_TWO} empty:1 empty cascade:4 apply_cascade",
    "3.7": "found load sweep recreate:1 sweep",
    "4 door": "found spoil_policy",
    "4 names": "found trespass",
    **ICE_WITNESSES,
}


def steps_of(name: str) -> list[Step]:
    """The steps of a hole's plan_recorder."""
    return [_step(word) for word in WITNESSES[name].split()]


def is_seen(stage: Stage, hole: Hole) -> History | None:
    """Play a hole's witness while it is open; None if it does not show."""
    with opened(hole):
        history = played(stage, steps_of(hole.name))
    return history if any(hole.shows in str(one) for one in history.findings) else None


def _step(word: str) -> Step:
    told, _, fault = word.partition("!")
    told, _, x = told.partition("@")
    name, _, y = told.partition(":")
    if ":" in x:  # `name@x:y`, as themes have it
        x, _, y = x.partition(":")
    return name, int(x or 0), int(y or 0), int(fault or 0)
