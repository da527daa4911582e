"""One page of state: the leader, the managed tables, and whatever needs attention."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.model.rollbacks import rollbacks_of
from lakewarden.catalog.model.rows import RollbackState, Severity, TableState
from lakewarden.catalog.policy.scopes import GLOBAL
from lakewarden.catalog.state.port import RunState
from lakewarden.catalog.system.port import ROLLBACKS, TABLES
from lakewarden.catalog.units import count_of, sentence
from lakewarden.catalog.validation.reverted_reads import READS_REVERTED
from lakewarden.catalog.validation.system_history import DECIDE
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.telemetry.failed_cycles import Troubles
from lakewarden.daemon.usecases.runs.unsettled import unsettled_runs
from lakewarden.daemon.usecases.tables import STOPPED, Work, fleet, with_finding

__all__ = ["FoundBy", "OwnStatus", "Status", "findings_by_check", "own_status", "status_of"]

_T = TypeVar("_T")
_RANKS = {one.value: number for number, one in enumerate((Severity.ERROR, Severity.WARNING, Severity.INFO))}


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """The state of an installation."""

    home: str
    leader: str | None
    """None where no daemon leads."""
    leader_token: int | None
    paused: str | None
    """The reason everything is paused, None if it is not."""
    tables: int
    quarantined: int
    converting: int
    tables_paused: int
    """Tables paused by themselves or by a scope."""
    tables_held: int
    """Likewise."""
    reads_reverted: int
    """Tables whose heads hold data from reverted versions."""
    files: int
    """Of live versions."""
    bytes: int
    """Likewise."""
    queued: int
    running: int
    unrecorded: int
    last_look_at: datetime | None
    """The newest health row."""
    failed_cycles: int
    """The cycles that failed in a row up to now."""
    failing_since: datetime | None
    failing_because: str | None
    """What stopped the last one."""
    left_out: str | None
    """What the last cycle went through without, and why."""
    runs_failed: int
    """Work of the last day that came to nothing and was not done since."""
    runs_waiting: int
    """Work of the last day that waits for consent."""
    rollbacks_waiting: tuple[str, ...]
    """Rollbacks that stopped at a conflict, by id."""
    unreadable: tuple[str, ...]
    """Which system tables could not be asked."""
    older: tuple[str, ...]
    """System tables that are not those that the database has seen."""
    attention: tuple[str, ...] = ()
    """In sentences what wants somebody, nothing where all is well."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnStatus:
    """What the home alone knows, where the database or the system tables do not answer; as in `Status`."""

    home: str
    failed_cycles: int
    failing_since: datetime | None
    failing_because: str | None
    left_out: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundBy:
    """The findings of one check, with the gravest severity."""

    check: str
    severity: str
    tables: int
    """On so many."""
    example: str
    """One of the tables."""
    message: str
    """What was found there, in words."""


def findings_by_check(found: pa.Table) -> tuple[FoundBy, ...]:
    """The findings of a fleet, as `tables.fleet` tells of it, by check: the gravest and most frequent first."""
    found = found.select(["name", "findings"])
    found = found.filter(pc.greater(pc.list_value_length(found.column("findings")), 0))
    told: dict[str, list[tuple[str, dict[str, str]]]] = {}
    for row in found.to_pylist():
        for finding in row["findings"]:
            told.setdefault(finding["check"], []).append((row["name"], finding))
    sums = []
    for check, some in told.items():
        name, gravest = min(some, key=lambda one: _RANKS[one[1]["severity"]])
        sums.append(
            FoundBy(
                check=check,
                severity=gravest["severity"],
                tables=len({table for table, _ in some}),
                example=name,
                message=gravest["message"],
            )
        )
    return tuple(sorted(sums, key=lambda one: (_RANKS[one.severity], -one.tables, one.check)))


def own_status(home: Path) -> OwnStatus:
    """Read what the daemon of this machine has noted in its home; nothing else has to answer."""
    noted = Troubles(home).read()
    failing = noted if noted is not None and noted.wholly else None
    return OwnStatus(
        home=str(home),
        failed_cycles=0 if failing is None else failing.count,
        failing_since=None if failing is None else failing.since,
        failing_because=None if failing is None else failing.because,
        left_out=None if noted is None or noted.wholly else noted.because,
    )


def status_of(services: Services, found: pa.Table | None = None) -> Status:
    """Read it all; nothing is changed. `found` is the fleet, where it was looked at a moment ago."""
    found = fleet(services.store) if found is None else found
    states = Counter(found.column("state").to_pylist())
    own = own_status(services.settings.home)
    lease = services.leases.current(services.settings.lease_name)
    runs = Counter(run.state for run in services.queue.unfinished())
    ended = services.queue.finished(1000)
    unreadable: list[str] = []
    unsettled = _unless_damaged(lambda: unsettled_runs(services, found, ended), unreadable)
    stopped = _unless_damaged(lambda: _stopped_rollbacks(services), unreadable)
    status = Status(
        home=own.home,
        leader=None if lease is None else lease.holder,
        leader_token=None if lease is None else lease.token,
        paused=next((row.paused for row in services.store.rows(TABLES).find(name=GLOBAL)), None),
        tables=found.num_rows,
        quarantined=states[TableState.QUARANTINED.value],
        converting=states[TableState.CONVERTING.value],
        tables_paused=_stopped(found, Work.PAUSED),
        tables_held=_stopped(found, Work.HELD),
        reads_reverted=pc.sum(with_finding(found, READS_REVERTED)).as_py() or 0,
        files=pc.sum(found.column("files")).as_py() or 0,
        bytes=pc.sum(found.column("bytes")).as_py() or 0,
        queued=runs[RunState.QUEUED],
        running=runs[RunState.CLAIMED] + runs[RunState.RUNNING],
        unrecorded=len(ended),
        last_look_at=pc.max(found.column("observed_at")).as_py(),
        failed_cycles=own.failed_cycles,
        failing_since=own.failing_since,
        failing_because=own.failing_because,
        left_out=own.left_out,
        runs_failed=0 if unsettled is None else unsettled.failed,
        runs_waiting=0 if unsettled is None else unsettled.waiting,
        rollbacks_waiting=stopped or (),
        unreadable=tuple(unreadable),
        older=tuple(f"lakewarden.{one.table.name}: {one.message}" for one in services.history.problems()),
    )
    return replace(status, attention=tuple(_attention(status)))


def _unless_damaged(look: Callable[[], _T], unreadable: list[str]) -> _T | None:
    """What a look comes to; where a system table is damaged, the rest is told all the same."""
    try:
        return look()
    except LakewardenError as error:
        unreadable.append(error.in_full)
        return None


def _stopped_rollbacks(services: Services) -> tuple[str, ...]:
    journal = rollbacks_of(services.store.rows(ROLLBACKS).all())
    return tuple(one.rollback_id for one in journal if one.head.state is RollbackState.CONFLICT)


def _attention(status: Status) -> Iterator[str]:
    """The worst first."""
    if status.older:
        yield f"Older system tables lie where newer ones were, and nothing acts. {status.older[0]} {DECIDE}"
    yield from status.unreadable
    if status.leader is None:
        yield "No daemon leads: nothing is looked after."
    if status.failed_cycles:
        yield f"{count_of(status.failed_cycles, 'cycle')} failed in a row: {status.failing_because}"
    if status.left_out is not None:
        yield f"The last cycle had to leave something out. {status.left_out}"
    if status.paused is not None:
        yield f"Everything is paused: {sentence(status.paused)}"
    if status.quarantined:
        yield (
            f"Quarantined: {count_of(status.quarantined, 'table')}; "
            "`lakewarden tables list --state quarantined`."
        )
    if status.reads_reverted:
        yield (
            f"Made from versions that were taken back: {count_of(status.reads_reverted, 'table')}; "
            f"`lakewarden tables list --finding {READS_REVERTED}`."
        )
    for rollback_id in status.rollbacks_waiting:
        yield f"A rollback stopped at a conflict: `lakewarden rollback show {rollback_id}` says how to go on."
    if status.runs_failed:
        yield (
            f"Failed within a day, and not done since: {count_of(status.runs_failed, 'run')}; "
            "`lakewarden jobs list --outcome failed`."
        )
    if status.runs_waiting:
        yield (
            f"Waiting for somebody's consent: {count_of(status.runs_waiting, 'run')}; "
            "`lakewarden jobs list --outcome failed` says to what."
        )


def _stopped(found: pa.Table, work: Work) -> int:
    return pc.sum(pc.match_substring(found.column(STOPPED), work.value)).as_py() or 0
