"""What an owner says of single versions, written into the row of the table."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from lakewarden.catalog.errors import NotFoundError, RefusedError
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.registry import has_branches
from lakewarden.catalog.lineage.marks import standing_marks
from lakewarden.catalog.lineage.versions import Version, history_of
from lakewarden.catalog.model.rows import Mark, MarkVerdict, Source, TableRow
from lakewarden.catalog.policy.access import Actor, Permission
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.system.port import LINEAGE

__all__ = ["log_of", "mark_versions", "marks_of", "require_rewindable", "unmark_versions"]


def mark_versions(
    registry: Registry,
    where: str,
    versions: Collection[int],
    verdict: MarkVerdict,
    *,
    note: str | None = None,
    actor: Actor,
) -> TableRow:
    """Say of versions that they are bad or clean; a mark that a version has already is replaced.

    Raises `NotFoundError` for a version that the table does not have, `RefusedError` for a system table.
    """
    row, now = registry.resolve(where), registry.clock.now()
    require_rewindable(row)
    history, head = log_of(registry, row)
    head_id = None if head is None else head.format_id
    said = {
        version: Mark(
            version=version,
            verdict=verdict,
            by=actor.name,
            at=now,
            format_id=_format_id(registry, row, version, history, head_id),
            note=note,
        )
        for version in versions
    }
    return _change(registry, row, actor, lambda kept: {**kept, **said}, f"{verdict}: {_listed(versions)}")


def unmark_versions(registry: Registry, where: str, versions: Collection[int], *, actor: Actor) -> TableRow:
    """Take marks back. Raises `NotFoundError` for a version that has none."""
    row = registry.resolve(where)

    def without(kept: Mapping[int, Mark]) -> Mapping[int, Mark]:
        missing = sorted(set(versions) - set(kept))
        if missing:
            raise NotFoundError(
                f"Version {missing[0]} of {row.name} has no mark.",
                hint=f"`lakewarden lineage marks {row.name}` lists them.",
            )
        return {version: mark for version, mark in kept.items() if version not in versions}

    return _change(registry, row, actor, without, f"no marks: {_listed(versions)}")


def marks_of(registry: Registry, row: TableRow) -> tuple[tuple[Mark, bool], ...]:
    """A table's marks in the order of versions, each with whether it speaks of the table as it is now."""
    if not row.marks:
        return ()
    history, head = log_of(registry, row)
    head_id = None if head is None else head.format_id
    standing = standing_marks(row.marks, history, head_id, branching=has_branches(row.format))
    return tuple((mark, mark in standing) for mark in row.marks)


def require_rewindable(row: TableRow) -> None:
    """Raise `RefusedError` for a system table: what it says of the past is not taken back."""
    if row.source is Source.SELF:
        raise RefusedError(
            f"{row.name} is a system table: it is never rolled back.",
            hint="It has every table's registration, holds and audit trail. What was changed in it can be "
            "changed back; `lakewarden system verify` finds damage.",
        )


def log_of(registry: Registry, row: TableRow) -> tuple[Sequence[Version], Observation | None]:
    """The versions that a table's log still tells, and its head (None where the log cannot be used)."""
    location = row.location or ""
    reader = registry.reader_at(location, row.name)
    seen = reader.observe(location)  # before the commits, so that head is one of them
    history = history_of(reader.commits(location, after=-1))
    return history, seen if isinstance(seen, Observation) else None


def _format_id(
    registry: Registry, row: TableRow, version: int, history: Sequence[Version], head_id: str | None
) -> str | None:
    """The UUID a version has, by the log or, where the log was cleaned, by what the sweep wrote down."""
    told = {one.version: one.format_id for one in history}
    if version in told:
        return told[version] or (None if any(told.values()) else head_id)
    recorded = list(registry.store.rows(LINEAGE).find(output_id=row.table_id, output_version=version))
    if history and version > history[-1].version:
        own = has_branches(row.format) and head_id is not None
        recorded = [one for one in recorded if own and one.output_format_id == head_id]
    if not recorded or not history:
        raise NotFoundError(
            f"{row.name} has no version {version}.", hint="`lakewarden tables history` shows those it has."
        )
    return recorded[-1].output_format_id


def _change(
    registry: Registry,
    row: TableRow,
    actor: Actor,
    change: Callable[[Mapping[int, Mark]], Mapping[int, Mark]],
    because: str,
) -> TableRow:
    def marked(current: TableRow) -> TableRow:
        marks = change({mark.version: mark for mark in current.marks})
        return replace(current, marks=tuple(marks[version] for version in sorted(marks)))

    return registry.change_row(row, actor, Permission.ROLLBACK, marked, because=f"{row.name}: {because}")


def _listed(versions: Collection[int]) -> str:
    return ", ".join(str(version) for version in sorted(set(versions)))
