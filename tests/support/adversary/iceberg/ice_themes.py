"""What histories with Iceberg tables are about, Delta tables beside them in the same world. As `themes` has it."""

from support.adversary.iceberg import ice_moves
from support.adversary.theme import Theme

__all__ = ["ICE_THEMES"]

_KNOWN = ice_moves
"""They enter their moves into the table when they are imported."""
_BORN = "make_ice register ice_append ice_append"
_AGED = f"{_BORN} ice_overwrite ice_append wait:2"
_WRITES = "ice_py*2 ice_append*2 ice_overwrite*2 ice_delete ice_set_main ice_tag ice_branch ice_unname ice_properties"
ICE_THEMES = {
    "ice cleaning": Theme(
        begins=_AGED,
        decides=("policy:2 order:0", "order:0", "foretell:0", "ice_orphan order:6 work wait:2 foretell:1",
            "ice_tag ice_overwrite wait:2 order:0",
            "ice_branch ice_overwrite wait:2 order:0", "ice_set_main wait:2 order:0",
            "ice_orphan order:6 work wait:2 order:1", "order:6 work order:1", "ice_put_back wait:2 order:0",
            "ice_properties:0 ice_overwrite wait:2 order:0", "policy:2 wait:1 cycle work cycle",
            "ice_expire ice_overwrite wait:2 order:0", "hold:1 rename:0 order:0", "policy:3 wait:2 cycle work cycle"),
        meanwhile=f"{_WRITES} ice_column ice_expire ice_put_back ice_orphan ice_share ice_second_name hold pause "
            "policy rename drop undrop "
                  "register wait make append overwrite",
        acts=("work", "work", "cycle work", "work! wake", "work!4 ice_set_main wake", "work!6 ice_put_back wake",
            "work!5 ice_append wake", "wait:2 cycle work work", "work!-4 cycle order:0 work"),
    ),
    "ice leaving": Theme(
        begins=_AGED,
        decides=("purge", "purge wait:2", "purge wait:2 cycle", "purge wait:2 cycle", "drop",
            "undrop purge wait:2 cycle", "ice_tag ice_branch purge wait:2 cycle", "ice_orphan purge wait:2 cycle"),
        meanwhile="undrop*3 hold pause policy rename ice_append*2 ice_set_main ice_tag ice_properties ice_put_back "
                  "ice_orphan register*2 leave_in_ice*2 ice_second_name*2 make append cycle",
        acts=("work", "cycle work", "wait:2 cycle work", "register wait:2 cycle work", "work! wake",
            "work! undrop wake",
            "work!5 ice_append wake", "work!6 wait:0 cycle work"),
    ),
    "ice rewinding": Theme(
        begins=f"{_BORN} ice_append ice_overwrite",
        decides=("plan", "ice_append plan", "ice_overwrite ice_append plan", "plan apply", "ice_append plan apply!",
            "ice_column ice_append plan", "plan apply!12", "ice_properties plan", "plan apply wait:2 order:0 work"),
        meanwhile=f"{_WRITES} ice_expire ice_column ice_put_back register order work cycle wait:0 hold pause "
            "rename make "
                  "append",
        acts=("apply", "apply undo", "apply! wait:0 resume_rollback undo", "apply! ice_append wake undo", "undo",
            "resume_rollback undo", "wait:0 cycle work undo", "apply ice_expire undo",
            "apply ice_overwrite wait:2 order:0 work undo"),
    ),
    "ice keeping": Theme(
        begins=f"{_BORN} ice_append ice_append",
        decides=("policy:5 wait:0 cycle work", "policy:5 order:7", "ice_spark policy:5 order:7",
            "policy:3 wait:2 cycle work",
            "ice_properties:1 order:6", "ice_properties:3 ice_append ice_append policy:3 wait:2 order:5",
            "ice_spark ice_spark order:7"),
        meanwhile=f"{_WRITES} ice_spark*3 ice_column hold pause policy drop undrop wait register",
        acts=("work", "work", "work! wake", "work!3 ice_append wake", "work cycle work",
            "wait:2 cycle work cycle work",
            "drop", "work plan apply undo"),
    ),
    "ice agreeing": Theme(
        begins="found_ice:0 found:0 load",
        decides=("load cascade", "load make_from cascade", "load make_from ice_append cascade",
            "found_ice load make_from cascade", "make_from mark make_from cascade",
            "load make_from ice_set_main cascade",
            "load make_from append cascade", "load ice_delete make_from cascade"),
        meanwhile="ice_py make_from*5 load*3 note ice_append append ice_delete overwrite ice_set_main ice_branch "
            "ice_tag found "
                  "found_ice hold pause",
        acts=("apply_cascade", "apply_cascade", "apply_cascade undo_cascade", "work apply_cascade undo_cascade",
            "apply_cascade ice_expire undo_cascade", "sweep", "sweep load make_from sweep"),
    ),
    "ice interrupted": Theme(
        begins="found_ice:0 found:0 found_ice load make_from",
        decides=("load make_from cascade apply_cascade!205", "load make_from cascade apply_cascade!206",
            "load make_from cascade apply_cascade!204", "load make_from load cascade apply_cascade!207",
            "load make_from cascade apply_cascade!", "load make_from cascade apply_cascade!208"),
        meanwhile="load*4 make_from*6 ice_append append ice_set_main ice_properties ice_column wait:0 cycle work "
            "hold pause",
        acts=("resume_cascade undo_cascade", "resume_cascade undo_cascade", "resume_cascade wake undo_cascade",
            "wake undo_cascade", "undo_cascade wake", "wake resume_cascade undo_cascade",
            "wait:0 cycle work undo_cascade", "undo_cascade!203 load wake resume_cascade"),
    ),
}  # fmt: skip
