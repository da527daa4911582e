"""What a person asks to undo, from words to a `RollbackRequest`:
names to ids, a time to a version, marks to versions."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from lakewarden.catalog.errors import NotFoundError, PreconditionError, UsageError
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.registry import has_branches
from lakewarden.catalog.lineage.marks import marked
from lakewarden.catalog.model.rows import GONE, MarkVerdict, TableRow
from lakewarden.catalog.registry.marks import log_of, require_rewindable
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.system.port import TABLES
from lakewarden.jobs.rollback.plan.consents import Agreement, Consents, parse_consent
from lakewarden.jobs.rollback.plan.request import (
    BadVersions,
    CommitsOf,
    RollbackRequest,
    Seed,
    ToVersion,
)

__all__ = ["RollbackWish", "consents_of", "request_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackWish:
    """A rollback in the words of the caller. One of the version, the timestamp, bad versions, a run and what is
    marked says what to undo."""

    where: str | None = None
    """May be left out where all that is marked is meant."""
    version: int | None = None
    timestamp: str | None = None
    """ISO 8601."""
    bad: tuple[int, ...] = ()
    run: str | None = None
    marked: bool = False
    """What is marked bad on the table."""
    all_marked: bool = False
    """What is marked bad on any managed table."""
    cascade: bool = False
    consents: tuple[str, ...] = ()
    """Words like `collateral` and `collateral=db.t@7-9`."""
    agreed: tuple[str, ...] = ()
    """Tables, by name, whose owners agree."""
    remove_files: tuple[str, ...] = ()
    """Tables, by name, that only lose the files of bad appends."""
    reapply: bool = False


def request_of(registry: Registry, wanted: RollbackWish) -> RollbackRequest:
    """The request. Raises `UsageError` unless exactly one thing says what to undo,
    `NotFoundError` for what is not there, `RefusedError` for a system table."""
    return RollbackRequest(
        seeds=_seeds(registry, wanted),
        cascade=wanted.cascade,
        consents=consents_of(registry, wanted.consents),
        agreed=frozenset(registry.resolve(name).table_id for name in wanted.agreed),
        undo=frozenset(registry.resolve(name).table_id for name in wanted.remove_files),
        reapply=wanted.reapply,
    )


def consents_of(registry: Registry, words: Iterable[str]) -> Consents:
    """What was agreed to. Raises `UsageError` for words that are no consent,
    `NotFoundError` for a table that is not there."""
    agreed = Consents()
    for word in words:
        consent, where, versions = parse_consent(word)
        if where is None:
            more = Consents.to(consent)
        else:
            table_id = registry.resolve(where).table_id
            told = versions or (None,)
            more = Consents(
                named=frozenset(
                    Agreement(consent=consent, table_id=table_id, version=version) for version in told
                )
            )
        agreed = agreed.with_more(more)
    return agreed


def _seeds(registry: Registry, wanted: RollbackWish) -> tuple[Seed, ...]:
    said = [
        wanted.version is not None,
        wanted.timestamp is not None,
        bool(wanted.bad),
        wanted.run is not None,
        wanted.marked,
        wanted.all_marked,
    ]
    if sum(said) != 1:
        raise UsageError(
            "A rollback needs exactly one of --to-version, --to-timestamp, --bad, --run, "
            "--marked and --all-marked.",
            hint="`lakewarden tables history` shows versions and times.",
        )
    if (wanted.where is None) is not wanted.all_marked:
        raise UsageError(
            "A rollback begins at the named table, or with --all-marked at all versions marked bad.",
            hint="lakewarden rollback plan db.t --marked, or lakewarden rollback plan --all-marked",
        )
    if wanted.where is None:
        return _all_marked(registry)
    return (_seed(registry, registry.resolve(wanted.where), wanted),)


def _seed(registry: Registry, row: TableRow, wanted: RollbackWish) -> Seed:
    require_rewindable(row)
    if wanted.run is not None:
        return CommitsOf(run_id=wanted.run)
    if wanted.bad:
        return BadVersions(table_id=row.table_id, versions=wanted.bad)
    if wanted.marked:
        versions = _marked(registry, row)
        if not versions:
            raise _nothing_marked(f"No version of {row.name} is marked bad.")
        return BadVersions(table_id=row.table_id, versions=versions)
    version = (
        wanted.version if wanted.version is not None else _version_at(registry, row, wanted.timestamp or "")
    )
    _refuse_expired(registry, row, version)
    return ToVersion(table_id=row.table_id, version=version)


def _all_marked(registry: Registry) -> tuple[Seed, ...]:
    rows = (row for row in registry.store.rows(TABLES).all() if row.marks and row.state not in GONE)
    found = ((row.table_id, _marked(registry, row)) for row in rows)
    seeds = tuple(
        BadVersions(table_id=table_id, versions=versions) for table_id, versions in found if versions
    )
    if not seeds:
        raise _nothing_marked("No version of any table is marked bad.")
    return seeds


def _marked(registry: Registry, row: TableRow) -> tuple[int, ...]:
    """The versions marked bad; marks of a table that was at this place before say nothing of this one."""
    if not row.marks:
        return ()
    history, head = log_of(registry, row)
    head_id = None if head is None else head.format_id
    return marked(row.marks, MarkVerdict.BAD, history, head_id, branching=has_branches(row.format))


def _nothing_marked(sentence: str) -> NotFoundError:
    return NotFoundError(
        sentence,
        hint="`lakewarden lineage mark TABLE VERSION --bad` marks one, `lineage marks TABLE` lists them.",
    )


def _refuse_expired(registry: Registry, row: TableRow, version: int) -> None:
    location = row.location or ""
    reader = registry.reader_at(location, row.name)
    seen = reader.observe(location)
    if isinstance(seen, Observation) and version < seen.first_version:
        beside = reader.commits(location, after=-1, upto=version) if has_branches(row.format) else ()
        if any(one.version == version for one in beside):
            return  # not on head's way back any more, and there all the same: a tag or a branch has it
        raise PreconditionError(
            f"Version {version} of {row.name} has expired: "
            f"its log goes back to version {seen.first_version}.",
            hint="Choose a later version (`lakewarden tables history`), or restore a backup.",
        )


def _version_at(registry: Registry, row: TableRow, text: str) -> int:
    """The newest version that was there at a time. Only this choice goes by clocks, never what depends on what."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"'{text}' is not a time.", hint="Write 2026-11-21T08:30:00 (UTC).") from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    location = row.location or ""
    reader = registry.reader_at(location, row.name)
    head = reader.observe(location)
    commits = {commit.version: commit for commit in reader.commits(location, after=-1)}
    one = commits.get(head.version) if isinstance(head, Observation) else None
    while one is not None and one.committed_at > moment:
        one = None if one.parent is None else commits.get(one.parent)
    if one is None:
        raise NotFoundError(
            f"The log of {row.name} has no version as old as {moment:%Y-%m-%d %H:%M:%S} UTC.",
            hint="`lakewarden tables history` shows what it has.",
        )
    return one.version
