"""What histories are about: how they begin, what is decided in them, what happens meanwhile, who acts then.

Few things, often, find more than everything, rarely: each history has one theme and leaves some of its moves
out. A word is a move; `wait:2` gives its second number, `order@0:1` both, `work!` makes its actor stand
still, `work!6` at its sixth failpoint, `order*3` is chosen so much more often.
"""

import random
from collections.abc import Iterator, Sequence

from support.adversary import deeds, happenings, rollback_moves
from support.adversary.disasters import catalog_moves, disks
from support.adversary.iceberg.ice_themes import ICE_THEMES
from support.adversary.moves import MOVES, Step
from support.adversary.theme import Theme

__all__ = ["DISASTERS", "ICEBERG", "OF_DELTA", "PLAYED", "ROLLBACKS", "THEMES", "Theme", "chosen"]

_KNOWN = (deeds, happenings, rollback_moves, disks, catalog_moves)
"""They enter their moves into the table when they are imported."""
_LEFT_OUT = 0.3
_FAULTY = 0.15
"""Share of the product's steps that a fault hits, where a history has faults."""
_ROUNDS = (1, 5)
_MEANWHILE = (0, 4)

_BORN = "make:1 register"
_AGED = f"{_BORN} overwrite append wait:2"
THEMES = {
    "leaving": Theme(
        begins=_BORN,
        decides=("purge", "purge wait:2", "purge wait:2 cycle", "purge wait:2 cycle", "drop",
            "undrop purge wait:2 cycle"),
        meanwhile="undrop*3 hold pause policy rename remake:1*3 move_folder*2 register*2 "
                  "leave_file*2 make append cycle",
        acts=("work", "cycle work", "wait:2 cycle work", "register:0 wait:2 cycle work", "work! wake",
            "work! undrop wake"),
    ),
    "cleaning": Theme(
        begins=_AGED,
        decides=("order:0", "order:1", "nest wait:2 order:1", "clone register wait:2 order:0",
            "link wait:2 order:1",
            "hold:1 rename:0 order:0",
                 "delete wait:2 order:0", "overwrite wait:2 order:0", "policy:2 wait:1 cycle work cycle"),
        meanwhile="hold pause policy rename remake move_folder drop undrop register wait restore "
                  "replace append nest clone",
        acts=("work", "work", "cycle work", "work! wake", "wait:2 cycle work work"),
    ),
    "standing": Theme(
        begins=_AGED,
        decides=("order:0 work!",
            "order:0 work!6", "order:1 work!", "overwrite wait:2 order:0 work!", "plan apply!", "cycle!"),
        meanwhile="restore*4 hold*2 pause policy rename remake replace wait:0 plan apply "
                  "undo append drop purge",
        acts=("wake", "wait:0 wake", "wait:0 cycle work wake", "wait:0 cycle wake work"),
    ),
    "rewinding": Theme(
        begins=f"{_BORN} append append",
        decides=("plan", "append plan", "overwrite append plan", "plan apply", "append plan apply!"),
        meanwhile="append*2 delete overwrite restore make register order work cycle wait:0 "
                  "hold pause rename replace",
        acts=("apply", "apply undo", "apply! wait:0 resume_rollback undo", "apply! append wake undo", "undo",
            "resume_rollback undo",
              "wait:0 cycle work undo"),
    ),
    "keeping": Theme(
        begins=f"{_BORN} append",
        decides=("keep_long policy:0 cycle", "keep_long order:6",
            "policy:3 spoil_checkpoint append wait:2 append cycle",
                 "policy:3 cycle work", "overwrite wait:2 policy:0 cycle"),
        meanwhile="append delete overwrite keep_long policy spoil_checkpoint drop undrop register wait "
                  "clean_log_by_hand hold",
        acts=("work", "work cycle work", "wait:2 cycle work cycle work", "drop", "work drop"),
    ),
}  # fmt: skip
THEMES["everything"] = Theme(
    begins=_BORN,
    decides=tuple(one for theme in THEMES.values() for one in theme.decides),
    meanwhile=" ".join(f"{name}*{move.weight}" for name, move in MOVES.items() if move.weight),
    acts=tuple(one for theme in THEMES.values() for one in theme.acts),
)
PLAYED = tuple(THEMES)
"""What CI plays."""
THEMES |= {
    "escaping": Theme(
        begins=_AGED,
        decides=("hold:1 rename order:0", "pause:1 rename order:0", "hold:2 rename order:1", "rename hold:1",
            "hold:1 policy:2"),
        meanwhile="rename*4 rename:0*3 hold pause append wait:2 register drop undrop "
                  "move_folder cycle order:0",
        acts=("work", "wait:2 order:0 work", "cycle work", "rename wait:2 order:0 work"),
    ),
    "sharing": Theme(
        begins=f"{_BORN} append",
        decides=("nest", "clone", "clone register:1", "clone register:1 overwrite@0", "link", "link append"),
        meanwhile="append delete overwrite*3 restore register:1*3 link nest clone move_folder "
                  "wait:2*2 drop policy:2 cycle",
        acts=("wait:2 order:0 work", "wait:2 order@0:0 work", "wait:2 order:1 work", "wait:2 order@0:1 work",
            "wait:2 cycle work"),
    ),
    "sleeping": Theme(
        begins=_AGED,
        decides=("order:0 work!5", "order:0 work!6", "order:1 work!6", "overwrite wait:2 order:0 work!6"),
        meanwhile="restore*8 wait:0*2 append nest hold rename plan apply undo",
        acts=("wake", "restore wake", "wait:0 cycle wake", "wait:0 cycle work wake"),
    ),
    "parting": Theme(
        begins=f"{_BORN} append",
        decides=("keep_long policy:0 cycle", "keep_long order:6", "order:6 work", "policy order:6 work",
            "policy:0 cycle work"),
        meanwhile="append delete overwrite restore*2 keep_long policy spoil_checkpoint drop undrop register "
                  "wait clean_log_by_hand hold",
        acts=("work", "work cycle work", "drop", "work drop", "drop undrop drop"),
    ),
    "overtaking": Theme(
        begins=f"{_BORN} append append",
        decides=("plan apply!12", "plan apply!11", "overwrite plan apply!12", "append plan apply!12",
            "plan apply!10", "plan apply!"),
        meanwhile="append*4 wait:0 make hold cycle",
        acts=("wake", "append wake", "append wake undo"),
    ),
    "rotting": Theme(
        begins=f"{_BORN} append overwrite policy@1:3",
        decides=("wait:2 spoil_checkpoint", "wait:1 spoil_checkpoint", "wait:2 spoil_checkpoint append",
            "spoil_checkpoint wait:2",
                 "append wait:2 order:5"),
        meanwhile="append*2 delete overwrite restore wait:0 policy keep_long hold pause "
                  "clean_log_by_hand work",
        acts=("cycle work", "wait:0 cycle work cycle work", "cycle work! wake", "order:5 work"),
    ),
}  # fmt: skip
_OTHERS = tuple(THEMES)
THEMES |= {
    "agreeing": Theme(
        begins="found:0 found:0 load",
        decides=("load cascade", "load make_from cascade", "load make_from append cascade",
            "load make_from note cascade",
                 "make_from mark make_from cascade", "load make_from restore cascade"),
        meanwhile="make_from*4 load*3 note*2 append*2 delete overwrite restore replace optimize "
                  "recreate found hold pause",
        acts=("apply_cascade", "apply_cascade", "apply_cascade undo_cascade",
            "work apply_cascade undo_cascade"),
    ),
    "interrupted": Theme(
        begins="found:0 found:0 load make_from",
        decides=("load make_from cascade apply_cascade!205", "load make_from cascade apply_cascade!206",
                 "load make_from cascade apply_cascade!204", "load make_from load cascade apply_cascade!207",
                 "load make_from cascade apply_cascade!", "load make_from cascade apply_cascade!208"),
        meanwhile="load*4 make_from*6 append note restore recreate wait:0 cycle work hold pause",
        acts=("resume_cascade undo_cascade", "resume_cascade undo_cascade",
            "resume_cascade wake undo_cascade",
              "wake undo_cascade", "undo_cascade wake", "wake resume_cascade undo_cascade",
              "wait:0 cycle work undo_cascade", "undo_cascade!203 load wake resume_cascade"),
    ),
    "emptying": Theme(
        begins="found:0 found:0 load make_from",
        decides=("load make_from empty empty cascade", "load empty empty cascade",
                 "load make_from empty:1 empty cascade", "load make_from load empty make_from cascade"),
        meanwhile="load*2 make_from empty*3 note optimize",
        acts=("apply_cascade", "apply_cascade", "apply_cascade undo_cascade"),
    ),
    "recording": Theme(
        begins="found:0 load",
        decides=("replace", "recreate", "spoil", "spoil_policy", "replace sweep load",
            "recreate sweep replace", "load sweep spoil"),
        meanwhile="load*3 found:0 make_from*2 replace*2 recreate*2 note append restore wait:0 ask "
                  "trespass spoil spoil_policy",
        acts=("sweep", "sweep", "sweep ask", "cycle! sweep", "sweep work sweep", "trespass sweep"),
    ),
}  # fmt: skip
ROLLBACKS = tuple(one for one in THEMES if one not in _OTHERS)
"""About what is rewound, and about bad values."""
THEMES |= {
    "unplugged": Theme(
        begins="make_there:1 register:1 overwrite append",
        decides=("copy_folder unplug", "clone register:1 overwrite@0 wait:2", "wait:2 order:0 unplug",
            "copy_folder wait:2 unplug",
                 "purge wait:2 cycle unplug"),
        meanwhile="register:1*4 cycle*2 work copy_folder plug*2 unplug*2 make_there make append "
                  "hold wait:2 purge undrop",
        acts=("register@0:1", "cycle work", "plug", "plug cycle work", "wait:2 order:0 work plug",
            "register@1:1 plug cycle"),
    ),
    "swapping": Theme(
        begins="make:1 register:1 overwrite append make:1 overwrite@1 append@1 wait:2",
        decides=("order:0 swap", "order:1 swap", "order:0 make_anew:1 overwrite", "policy:2 cycle swap",
            "purge wait:2 cycle swap",
                 "order:5 swap"),
        meanwhile="swap*2 overwrite wait:2*2 append register:1*2 replace make_anew:1 hold copy_folder",
        acts=("work", "work", "wait:2 work", "cycle work", "swap work", "work! swap wake"),
    ),
    "recovering": Theme(
        begins="make:1 register:1 overwrite append",
        decides=("back_up:1 policy:4", "back_up:1 purge", "purge back_up:1 undrop", "hold:0 back_up:1 rename",
            "back_up:0 policy back_up:0",
                 "wait:2 order:0 back_up:1", "rename back_up:1 rename back_up:1",
                 "back_up:1 purge wait:2 cycle back_up:1 undrop", "back_up:1 order:0",
                 "append append plan apply!204 back_up:1", "back_up:1 append plan apply! back_up:1",
                 "rename:1 rename:3 rename:5 back_up:1 damage_catalog@3:2 mend_catalog@1 rename:3 rename:5"),
        meanwhile="policy*2 rename*2 hold pause undrop purge register:1 make append overwrite wait:2 "
                  "cycle work order:0 back_up",
        acts=("lose_catalog mend_catalog", "lose_catalog mend_catalog damage_catalog:1 mend_catalog@1",
              "damage_catalog mend_catalog back_up:0", "damage_catalog:0 mend_catalog policy back_up:0",
              "lose_catalog mend_catalog wait:2 cycle work", "damage_catalog cycle mend_catalog work",
              "lose_catalog mend_catalog! mend_catalog", "damage_catalog:0 mend_catalog@20! mend_catalog@20"),
    ),
}  # fmt: skip
DISASTERS = ("unplugged", "swapping", "recovering")
"""About what is away, or lost, or somewhere else."""
OF_DELTA = tuple(THEMES)
"""What a stage without Spark plays."""
THEMES |= ICE_THEMES
ICEBERG = tuple(ICE_THEMES)
"""With Iceberg tables; they need a stage with Spark."""


def chosen(seed: int, themes: Sequence[str] = OF_DELTA) -> list[Step]:
    """The steps of a seed; about one of these themes."""
    chance = random.Random(seed)
    theme = THEMES[chance.choice(list(themes))]
    faulty = chance.choice((0.0, _FAULTY, 2 * _FAULTY))
    kinds = [one for one in theme.meanwhile.split() if chance.random() > _LEFT_OUT] or ["wait"]
    words = theme.begins.split()
    for _ in range(chance.randint(*_ROUNDS)):
        words += [
            *chance.choice(theme.decides).split(),
            *_some(kinds, chance),
            *chance.choice(theme.acts).split(),
        ]
    begun = len(theme.begins.split())
    return [_step(word, chance, faulty if number >= begun else 0.0) for number, word in enumerate(words)]


def _some(kinds: Sequence[str], chance: random.Random) -> Iterator[str]:
    weights = [int(one.partition("*")[2] or 1) for one in kinds]
    for word in chance.choices(kinds, weights, k=chance.randint(*_MEANWHILE)):
        yield word.partition("*")[0]


def _step(word: str, chance: random.Random, faulty: float) -> Step:
    told, stands, where = word.partition("!")
    told, _, second = told.partition(":")
    name, _, first = told.partition("@")
    x, y = (0 if chance.random() < 0.5 else chance.randrange(60)), chance.randrange(2520)
    fault = 0
    if stands:
        fault = int(where) if where else chance.randint(1, 9)
    elif MOVES[name].ours and chance.random() < faulty:
        fault = _fault(chance)
    return name, int(first) if first else x, int(second) if second else y, fault


def _fault(chance: random.Random) -> int:
    where = chance.choice((1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15))
    return chance.choice((where, where, -where, 100 + where))
