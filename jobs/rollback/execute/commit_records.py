"""The lineage records of a rollback's own commits other than RESTOREs. Pure."""

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.versions import version_of
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation
from lakewarden.jobs.rollback.journal.steps import NO_VERSION, TableStep

__all__ = ["again_record", "removal_record"]


def removal_record(step: TableStep, line: Iterable[int], *, mark: str, user: str) -> LineageRecord:
    """Taking files out: what is left is the version before the first of them, and what the others did since. `line` are
    the versions by which head came from that one, in order."""
    versions = [one for one in line if one <= step.from_version]
    inputs = [] if step.to_version == NO_VERSION else [_read(step, upto=step.to_version)]
    inputs += [
        _read(step, after=after, upto=upto) for after, upto in _kept(frozenset(step.versions), versions)
    ]
    return LineageRecord(run_id=mark, operation=Operation.REMOVE_FILES, user=user, inputs=tuple(inputs))


def again_record(step: TableStep, original: Commit, *, mark: str, user: str) -> LineageRecord:
    """Adding a commit's files again: its rows come from that commit, and from that commit's reads if its record is
    credible.

    What is not known of that commit stays so: this one depends on it.
    """
    own = _read(step, after=original.parent, upto=original.version)
    made, told = version_of(original), original.lineage
    return LineageRecord(
        run_id=mark,
        operation=Operation.APPEND,
        user=made.user or user,
        inputs=(own, *made.inputs),
        user_metadata=None if told is None else told.user_metadata,
    )


def _kept(removed: Collection[int], line: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The runs of versions after removed ones, as (the one before, the last)."""
    before: int | None = None
    for gone, run in groupby(line, removed.__contains__):
        *_, last = run
        if gone:
            before = last
        elif before is not None:
            yield before, last


def _read(step: TableStep, *, upto: int, after: int | None = None) -> LineageInput:
    return LineageInput(
        table_id=step.table_id,
        location=step.location,
        format=step.format,
        version=upto,
        from_version=after,
        format_id=step.format_id,
    )
