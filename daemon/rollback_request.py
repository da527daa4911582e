"""What a person asks to undo, from words to a `RollbackRequest`: names to ids, a time to a version."""

from dataclasses import dataclass
from datetime import UTC, datetime

from lakewarden.catalog.errors import NotFoundError, PreconditionError, UsageError
from lakewarden.catalog.formats.base import Observation
from lakewarden.catalog.model import TableRow
from lakewarden.catalog.registry.desk import Desk
from lakewarden.jobs.rollback.request import (
    BadVersions,
    CommitsOf,
    Consent,
    RollbackRequest,
    Seed,
    ToVersion,
)

__all__ = ["Wanted", "request_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A rollback in the words of the caller. One of `version`, `timestamp` (ISO 8601), `bad` and `run` says what to
    undo; `agreed` are tables, by name, whose owners agree."""

    where: str
    version: int | None = None
    timestamp: str | None = None
    bad: tuple[int, ...] = ()
    run: str | None = None
    cascade: bool = False
    consents: frozenset[Consent] = frozenset()
    agreed: tuple[str, ...] = ()


def request_of(desk: Desk, wanted: Wanted) -> RollbackRequest:
    """The request. Raises `UsageError` unless exactly one thing says what to undo, `NotFoundError` for what is not there."""
    row = desk.resolve(wanted.where)
    return RollbackRequest(
        seeds=(_seed(desk, row, wanted),),
        cascade=wanted.cascade,
        consents=wanted.consents,
        agreed=frozenset(desk.resolve(name).table_id for name in wanted.agreed),
    )


def _seed(desk: Desk, row: TableRow, wanted: Wanted) -> Seed:
    said = [
        wanted.version is not None,
        wanted.timestamp is not None,
        bool(wanted.bad),
        wanted.run is not None,
    ]
    if sum(said) != 1:
        raise UsageError(
            "A rollback needs exactly one of --to-version, --to-timestamp, --bad and --run.",
            hint="`lakewarden tables history` shows versions and times.",
        )
    if wanted.run is not None:
        return CommitsOf(run_id=wanted.run)
    if wanted.bad:
        return BadVersions(table_id=row.table_id, versions=wanted.bad)
    version = wanted.version if wanted.version is not None else _version_at(desk, row, wanted.timestamp or "")
    _refuse_expired(desk, row, version)
    return ToVersion(table_id=row.table_id, version=version)


def _refuse_expired(desk: Desk, row: TableRow, version: int) -> None:
    location = row.location or ""
    seen = desk.reader_at(location, row.name).observe(location)
    if isinstance(seen, Observation) and version < seen.first_version:
        raise PreconditionError(
            f"Version {version} of {row.name} has expired: its log goes back to version {seen.first_version}.",
            hint="Choose a later version (`lakewarden tables history`), or restore a backup.",
        )


def _version_at(desk: Desk, row: TableRow, text: str) -> int:
    """The newest version that was there at a time. Only this choice goes by clocks, never what depends on what."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"'{text}' is not a time.", hint="Write 2026-11-21T08:30:00 (UTC).") from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    location = row.location or ""
    commits = desk.reader_at(location, row.name).commits(location, after=-1)
    versions = [commit.version for commit in commits if commit.committed_at <= moment]
    if not versions:
        raise NotFoundError(
            f"The log of {row.name} has no version as old as {moment:%Y-%m-%d %H:%M:%S} UTC.",
            hint="`lakewarden tables history` shows what it has.",
        )
    return max(versions)
