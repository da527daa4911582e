"""Which snapshots main was at and has left, with no commit that says so: `rollback_to_snapshot`, and the like. Pure."""

from collections.abc import Iterable, Mapping

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.iceberg.commits import LEFT
from lakewarden.catalog.formats.iceberg.metadata import TableMetadata, TableSnapshot

__all__ = ["left_by_main"]


def left_by_main(metadata: TableMetadata) -> tuple[int, ...]:
    """The numbers of the snapshots that main was at, or was made from, and is not any more, as far as the log of its
    moves goes back: neither by what each snapshot was made from, nor by what a rollback of ours says that it left. A
    table made anew has begun since."""
    *_, first = (None, *metadata.line(metadata.current))
    if first is None:
        return ()
    began = first.sequence if first.parent_id is None else 0
    shown = _before(metadata, (metadata.snapshots.get(one) for one in metadata.left_at))
    gone = shown.keys() - _before(metadata, [metadata.current]).keys()
    return tuple(sorted(shown[one].sequence for one in gone if shown[one].sequence > began))


def _before(metadata: TableMetadata, ends: Iterable[TableSnapshot | None]) -> Mapping[int, TableSnapshot]:
    """Snapshots and all that came before them on main, by their ids."""
    by_number = {one.sequence: one for one in metadata.snapshots.values()}
    found, todo = dict[int, TableSnapshot](), list(ends)
    while todo:
        one = todo.pop()
        if one is not None and one.id not in found:
            found[one.id] = one
            left = as_whole(one.summary.get(LEFT, ""))
            todo += [
                None if one.parent_id is None else metadata.snapshots.get(one.parent_id),
                None if left is None else by_number.get(left),
            ]
    return found
