"""RESTOREs, above all those that are no rollback of ours:
somebody took versions of a table back and nothing else. Pure.

What was derived from those versions is still there. Which versions they were is told twice: exactly by the table's log
(`taken_back`), for a plan; by the numbers of versions alone (`restored_away`), for warnings.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.lineage.edges import ALIAS, RESTORE, parent_of
from lakewarden.catalog.lineage.graph.incarnations import may_be_same
from lakewarden.catalog.lineage.versions import Effect, Version, effect_of
from lakewarden.catalog.model.rollbacks import Undone, is_mark
from lakewarden.catalog.model.rows import NO_PARENT, UNKNOWN_PARENT, LineageRow

__all__ = [
    "RESTORE_OPERATIONS",
    "RestoreCommit",
    "informed",
    "is_foreign_restore",
    "is_rewound",
    "remembered",
    "restored_away",
    "restores_of",
    "still_undone",
    "taken_back",
]

RESTORE_OPERATIONS: Final = (RESTORE, "RESTORE")
"""What `lakewarden.lineage` calls a RESTORE; the second where the log does not say which version was restored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RestoreCommit:
    """A version of a table that is a RESTORE."""

    table_id: str
    version: int
    target: int | None
    """The version it went back to; None: nobody knows."""
    ours: bool
    """A rollback made it."""
    format_id: str | None
    """The table's UUID at that version."""
    log: int = 0
    """How many logs with this UUID had the number before, until an older one was put back."""


def restores_of(rows: Iterable[LineageRow]) -> Iterator[RestoreCommit]:
    """The RESTOREs among rows of `lakewarden.lineage`."""
    for row in rows:
        if row.operation in RESTORE_OPERATIONS:
            yield RestoreCommit(
                table_id=row.output_id,
                version=row.output_version,
                target=row.input_version,
                ours=is_mark(row.run_id),
                format_id=row.output_format_id,
            )


def restored_away(restores: Iterable[RestoreCommit], name: str) -> tuple[Undone, ...]:
    """Versions reverted by plain RESTOREs of one log and not brought back by a later one. `name` is the table's.

    Versions between a target and its RESTORE count, but for a RESTORE that was made in between to something that is not
    taken back: it holds what that held.
    """
    found: list[Undone] = []
    passed: dict[int, int] = {}
    for one in sorted(restores, key=lambda one: one.version):
        target = one.target
        if target is None:
            continue
        found = [rest for each in found for rest in _without(each, target)]
        if not one.ours:
            first = target + 1
            for version in sorted(each for each in passed if target < each < one.version):
                held = passed[version]
                if not (first <= held < version or any(each.first <= held <= each.last for each in found)):
                    found += _added(found, one, name, first, version - 1)
                    first = version + 1
            found += _added(found, one, name, first, one.version - 1)
        passed[one.version] = target
    return tuple(found)


def still_undone(one: Undone, restores: Iterable[RestoreCommit]) -> tuple[Undone, ...]:
    """What is left of a range after later RESTOREs of the same table (in any order),
    which may have brought some back."""
    left = [one]
    for later in restores:
        if (
            later.target is not None
            and later.version > one.last
            and may_be_same(later.format_id, one.format_id)
        ):
            left = [rest for each in left for rest in _without(each, later.target)]
    return tuple(left)


def is_rewound(since: Sequence[Commit], *, before: int | None, now: int) -> bool:
    """Whether head, which showed version `before`, has gone back in between: by a RESTORE, or to a version that was not
    made from that one. `since` are the commits after it up to `now`; `before` None: that was another table."""
    if any(one.kind is CommitKind.RESTORE for one in since):
        return True
    if before is None:
        return False
    parents = {one.version: one.parent for one in since}
    version: int | None = now
    while version is not None and version in parents:
        version = parents[version]
    return version is not None and version < before


def _added(found: Sequence[Undone], one: RestoreCommit, name: str, first: int, last: int) -> list[Undone]:
    """The versions `first` to `last`, as taken back by one RESTORE, but for those that are found already."""
    left = [(first, last)]
    for each in found:
        cut = (((begin, min(end, each.first - 1)), (max(begin, each.last + 1), end)) for begin, end in left)
        left = [part for both in cut for part in both if part[0] <= part[1]]
    by = f"the RESTORE in version {one.version}"
    return [
        Undone(table_id=one.table_id, name=name, first=begin, last=end, by=by, format_id=one.format_id)
        for begin, end in left
        if begin <= end
    ]


def _without(one: Undone, target: int) -> list[Undone]:
    """The rest of the reverted range once its versions up to `target` are back."""
    if not one.first <= target <= one.last:
        return [one]
    return [] if target == one.last else [replace(one, first=target + 1)]


def informed(history: Sequence[Version], restores: Iterable[RestoreCommit]) -> tuple[Version, ...]:
    """The versions of a log; a RESTORE without its target has the recorded one.

    `restores` are of the table and of predecessors of it, told apart by UUID.
    """
    known = tuple(one for one in restores if one.target is not None)

    def told(one: Version) -> Version:
        targets = {
            each.target
            for each in known
            if each.version == one.version and may_be_same(each.format_id, one.format_id)
        }
        return replace(one, target=targets.pop(), known=True) if len(targets) == 1 else one

    return tuple(told(one) if _is_blind(one) else one for one in history)


def remembered(
    history: Sequence[Version], rows: Iterable[LineageRow], format_id: str | None
) -> tuple[Version, ...]:
    """The versions of a log that branches, and those that only `rows` of its table tell any more, for `taken_back`;
    what a version was made from, too, where the log has forgotten it. `format_id` is the table's UUID."""
    told: dict[int, Version] = {}
    for row in rows:
        if may_be_same(row.output_format_id, format_id):
            told.setdefault(row.output_version, _of_row(row))

    def completed(one: Version) -> Version:
        row = told.get(one.version)
        return replace(one, parent=row.parent) if one.parent == UNKNOWN_PARENT and row is not None else one

    known = {**told, **{one.version: completed(one) for one in history}}
    return tuple(known[version] for version in sorted(known))


def _of_row(row: LineageRow) -> Version:
    parent, effects = parent_of(row), {ALIAS: Effect.ALIAS, RESTORE: Effect.RESTORE}
    return Version(
        version=row.output_version,
        parent=None if parent == NO_PARENT else parent,
        operation=row.operation,
        effect=effects.get(row.operation, effect_of(row.operation)),
        target=row.input_version if row.operation == RESTORE else None,
        run_id=row.run_id,
        format_id=row.output_format_id,
    )


def is_foreign_restore(one: Version) -> bool:
    """Whether a version of a log is a RESTORE that no rollback of ours made."""
    return one.effect is Effect.RESTORE and not is_mark(one.run_id)


def taken_back(
    history: Sequence[Version],
    restores: Collection[int],
    also: Iterable[int] = (),
    *,
    head: int | None = None,
) -> tuple[int, ...]:
    """The content commits that these RESTOREs took out of head, and `also`, less those that are in head again.

    A RESTORE of which nobody knows where it went takes back nothing that could be told; where head came from
    one, nobody knows which of the versions before it are there. `head` is what head shows: the last version, unless
    it is said.
    """
    line = {one.version: one for one in history}
    lost = set(also)
    for version in restores:
        one = line.get(version)
        if one is not None and is_foreign_restore(one) and one.target is not None:
            lost |= set(_ancestors(line, one.parent)) - set(_ancestors(line, one.target))
    last = history[-1].version if history else None
    held = list(_ancestors(line, last if head is None else head))
    known_after = next((version for version in held if _is_blind(line[version])), -1)
    gone = (version for version in lost - set(held) if version > known_after and version in line)
    return tuple(sorted(version for version in gone if _is_content(line[version])))


def _ancestors(line: Mapping[int, Version], version: int | None) -> Iterator[int]:
    """The version and those its content goes back to, as far as the log tells, newest first."""
    while version is not None and (one := line.get(version)) is not None:
        yield version
        target = one.target if one.effect is Effect.RESTORE else None
        version = one.parent if target is None else target


def _is_blind(one: Version) -> bool:
    return one.effect is Effect.RESTORE and one.target is None


def _is_content(one: Version) -> bool:
    return one.effect not in (Effect.ALIAS, Effect.RESTORE)
