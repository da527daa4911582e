"""Holes of the Iceberg side, opened again: like `holes`, each at named seams; and for each the fewest steps that
show it."""

from dataclasses import replace
from typing import Any, Final

from lakewarden.catalog.formats.iceberg import released
from lakewarden.catalog.formats.iceberg.governed import record_in
from lakewarden.catalog.formats.iceberg.metadata import MAIN
from lakewarden.jobs.engines.iceberg import java_tables
from lakewarden.jobs.engines.iceberg.summaries import change_since
from support.adversary.holes import HOLES, Hole
from support.adversary.rollback_holes import ROLLBACK_HOLES

__all__ = ["ICE_HOLES", "ICE_WITNESSES"]

_MANAGED: Final = "make_ice:2 register:1"
_OLD: Final = f"{_MANAGED} ice_overwrite ice_append wait:2"
_TWO: Final = "found_ice found_ice load make_from"
_RELEASED: Final = "lakewarden.catalog.formats.iceberg.released"


def _main_alone(metadata: Any, now: Any) -> Any:
    return {} if metadata.current is None else {metadata.current.id: metadata.current}


def _one(properties: Any) -> int:
    return 1


def _own_metadata(head: Any, contents: Any, others: Any) -> Any:
    return released.named_by_all(head, contents, ())


def _at_once(table: Any, snapshot: Any, lasts: Any) -> Any:
    refs = table.spark._jvm.org.apache.iceberg.SnapshotRef
    return refs.tagBuilder(snapshot.snapshotId()).maxRefAgeMs(1).build()


def _whatever_head(spark: Any, heads: Any, location: str, requires: Any) -> Any:
    return java_tables.opened(spark, heads, location)


def _over_all(table: Any, branch: str, begun_at: int) -> Any:
    made = table.base.ref(branch)
    snapshot = table.base.snapshot(made.snapshotId())

    def change(builder: Any) -> None:
        builder.setBranchSnapshot(snapshot.snapshotId(), MAIN)
        builder.removeRef(branch)

    table.commit(change, f"publish the compaction of {table.location}")
    return change_since(begun_at, table.base, snapshot)


def _nothing(*arguments: Any, **named: Any) -> None:
    return None


def _none(*arguments: Any, **named: Any) -> tuple[Any, ...]:
    return ()


def _all_but_head(metadata: Any, head: str, contents: Any, files: Any, before: Any, *, first: Any) -> Any:
    return tuple(one for one in files if one.path != head)


class _Everything:
    """Every file there may be."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __contains__(self, path: object) -> bool:
        return True


def _without_inputs(told: Any) -> Any:
    reading = record_in(told)
    if reading.record is None:
        return reading
    return replace(reading, record=replace(reading.record, inputs=()))


def _like(name: str, *, shows: str = "") -> Hole:
    """A hole that Delta tables show, shown by an Iceberg table."""
    known = next(one for one in (*HOLES, *ROLLBACK_HOLES) if one.name == name)
    rewinds = known in ROLLBACK_HOLES
    themes = ("ice interrupted",) if rewinds else ("ice cleaning", "ice leaving")
    return replace(known, name=f"ice {name}", themes=themes, shows=shows or known.shows)


ICE_HOLES: Final = (
    Hole(
        name="ice references",
        words="an expiry takes the snapshots that a branch or a tag points to",
        seams=((f"{_RELEASED}:held", _main_alone),),
        themes=("ice cleaning",),
        shows="points to it",
    ),
    Hole(
        name="ice least",
        words="an expiry leaves fewer snapshots than the table's owner wants to stay",
        seams=((f"{_RELEASED}:_least", _one),),
        themes=("ice cleaning",),
        shows="its owner wants it to stay",
    ),
    Hole(
        name="ice orphans",
        words="a full vacuum takes the files that only other metadata in the folder names",
        seams=(("lakewarden.catalog.formats.iceberg.reader:named_by_all", _own_metadata),),
        themes=("ice cleaning",),
    ),
    Hole(
        name="ice undo",
        words="the tag on the head that a rollback left ends at once",
        seams=(("lakewarden.jobs.engines.iceberg.going_back:until", _at_once),),
        themes=("ice rewinding",),
        shows="which an undo was promised of",
    ),
    Hole(
        name="ice head",
        words="a rollback is made on whatever head there is by then",
        seams=(("lakewarden.jobs.engines.iceberg.engine:opened_at", _whatever_head),),
        themes=("ice rewinding",),
        shows="rows",
    ),
    Hole(
        name="ice publish",
        words="a compaction is published over what others have committed meanwhile",
        seams=(("lakewarden.jobs.engines.iceberg.compaction:_publish", _over_all),),
        themes=("ice keeping",),
        shows="rows",
    ),
    Hole(
        name="ice second name",
        words="a purge takes a table to which somebody has given a second name",
        seams=(
            ("lakewarden.jobs.deletion.going_table:_refuse", _nothing),
            ("lakewarden.jobs.executors.purge:refuse_needed", _nothing),
        ),
        themes=("ice leaving",),
        shows="which its second name reads",
    ),
    Hole(
        name="ice vacuum of two",
        words="a vacuum takes what a second name needs that came after it was decided",
        seams=(
            ("lakewarden.jobs.engines.iceberg.java_tables:require_one_name", _nothing),
            ("lakewarden.catalog.formats.iceberg.verdict:_names", _none),
        ),
        themes=("ice cleaning",),
        shows="which its second name reads",
    ),
    Hole(
        name="ice metadata",
        words="care for metadata deletes files that head remembers",
        seams=(("lakewarden.catalog.formats.iceberg.reader:forgotten", _all_but_head),),
        themes=("ice keeping",),
        shows="a file that is needed",
    ),
    Hole(
        name="ice foretold",
        words="a vacuum deletes other files than its dry run said",
        seams=(("lakewarden.jobs.engines.iceberg.engine:live_paths", _Everything),),
        themes=("ice cleaning",),
        shows="were foretold",
    ),
    Hole(
        name="ice derived",
        words="a rollback does not see that an Iceberg table was made from what it takes back",
        seams=(("lakewarden.catalog.formats.iceberg.commits:record_in", _without_inputs),),
        themes=("ice agreeing",),
        shows="was made from what it takes back",
    ),
    _like("1.1"),
    _like("1.2"),
    _like("1.2 files"),
    _like("1.4"),
    _like("1.5"),
    _like("1.4 undo"),
    _like("3.1"),
)
ICE_WITNESSES: Final = {
    "ice references": f"{_MANAGED} ice_tag ice_overwrite ice_append wait:2 order:0 work",
    "ice least": f"{_MANAGED} ice_properties:8 ice_overwrite ice_append wait:2 order:0 work",
    "ice orphans": f"{_MANAGED} ice_share order:6 work wait:2 order:1 work",
    "ice undo": f"{_MANAGED} ice_append plan apply ice_expire",
    "ice head": f"{_MANAGED} ice_append plan apply!11 ice_append wake",
    "ice publish": f"{_MANAGED} ice_append ice_append policy@1:5 wait:0 order:7 work!7 ice_append wake",
    "ice second name": "make_ice@1:2 register:1 purge wait:2 cycle ice_second_name work",
    "ice vacuum of two": "make_ice@1:2 register:1 ice_overwrite ice_append wait:2 order:0 ice_second_name work",
    "ice foretold": f"{_OLD} foretell:0",
    "ice metadata": f"{_MANAGED} ice_append ice_append policy@1:3 wait:2 order:5 work",
    "ice 1.4 undo": f"{_TWO} cascade:4 apply_cascade!204 undo_cascade wake",
    "ice 3.1": f"{_TWO} cascade:4 apply_cascade!205 make_from:3 resume_cascade undo_cascade",
    "ice derived": "found found_ice load make_from cascade:4 apply_cascade",
    "ice 1.1": f"{_OLD} order:0 hold:0 work",
    "ice 1.2": f"{_MANAGED} purge wait:2 cycle ice_append work",
    "ice 1.2 files": f"{_MANAGED} purge wait:2 cycle leave_in_ice work",
    "ice 1.4": f"{_OLD} order:0 work!6 ice_put_back:3 wake",
    "ice 1.5": f"{_OLD} hold:1 rename:0 order:0 work",
}
