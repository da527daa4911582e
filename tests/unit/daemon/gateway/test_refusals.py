"""What is refused goes into the audit: who, what, why; grouped, and without what is secret."""

import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from lakewarden.catalog.errors import ClosedTableError, NotAllowedError, UnavailableError
from lakewarden.catalog.policy.access import Permission
from lakewarden.daemon.gateway.access.refused_statements import Refusals
from lakewarden.daemon.telemetry.gateway_metrics import GatewayMetrics
from lakewarden.daemon.usecases.audit import Refusal
from support.builders.callers import actor

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RITA, BO = actor("rita"), actor("bo")
NO = NotAllowedError("rita may not change rows of pay.")


class Audit:
    """Where they are written; `away` so many times first."""

    def __init__(self, away: int = 0) -> None:
        self.commits: list[list[Refusal]] = []
        self.away, self.written = away, threading.Event()

    def append(self, rows: Iterable[Refusal]) -> None:
        if self.away:
            self.away -= 1
            raise UnavailableError("The storage does not answer.")
        self.commits.append(list(rows))
        self.written.set()


def refusals(audit: Audit, *, pause: timedelta = timedelta(hours=1)) -> Refusals:
    return Refusals(record=audit.append, now=lambda: NOW, metrics=GatewayMetrics(), pause=pause)


def written(*texts: str, error: NotAllowedError = NO) -> list[Refusal]:
    """The entries of statements that were refused before the first commit."""
    audit = Audit()
    kept = refusals(audit)
    for text in texts:
        kept.note(RITA, text, error)
    kept.start()
    kept.stop()
    return [row for commit in audit.commits for row in commit]


def test_an_entry_says_who_what_and_why() -> None:
    (row,) = written("DELETE FROM pay")
    assert (row.caller, row.permission, row.on) == (RITA, Permission.STATEMENT, "DELETE FROM pay")
    assert (row.why, row.at, row.times) == ("rita may not change rows of pay.", NOW, 1)


def test_a_refused_read_is_found_by_its_table() -> None:
    (row,) = written(
        "SELECT x FROM payroll", error=ClosedTableError("rita may not query hr.pay.", table="hr.pay")
    )
    assert (row.permission, row.on) == (Permission.QUERY, "hr.pay")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("SELECT 'it''s' , \"a\\\"b\" FROM t", "SELECT '...''...' , '...' FROM t"),
        ("CREATE TABLE t OPTIONS (password 'hunter2", "CREATE TABLE t OPTIONS (password '..."),
        ("SET spark.hadoop.fs.s3a.secret.key = hunter2", "SET spark.hadoop.fs.s3a.secret.key = ..."),
        ("DELETE FROM t1 WHERE k=4711 AND x > 1.5e3", "DELETE FROM t1 WHERE k=0 AND x > 0"),
        ("SELECT " + "x" * 5_000, "SELECT " + "x" * 193 + "..."),
    ],
)
def test_nobody_reads_in_it_what_a_statement_held(text: str, kept: str) -> None:
    (row,) = written(text)
    assert (
        row.on.startswith(kept[:-3])
        and "hunter2" not in row.on
        and "4711" not in row.on
        and len(row.on) <= 203
    )


def test_a_flood_is_one_commit_now_and_one_later() -> None:
    audit = Audit()
    kept = refusals(audit)
    kept.start()
    kept.note(RITA, "DELETE FROM pay", NO)
    assert audit.written.wait(10)
    for number in range(5_000):
        kept.note(RITA, f"DELETE FROM t{number}", NO)
    kept.note(BO, "DELETE FROM pay", NO)
    kept.stop()
    first, second = audit.commits
    assert len(first) == 1 and len(second) == 22
    assert [row.times for row in second if row.on == "other statements"] == [4_980]
    assert [row.on for row in second if row.caller == BO] == ["DELETE FROM pay"]


def test_what_cannot_be_written_is_written_later() -> None:
    audit = Audit(away=2)
    kept = refusals(audit, pause=timedelta(milliseconds=1))
    kept.note(RITA, "DELETE FROM pay", NO)
    kept.start()
    assert audit.written.wait(10)
    kept.stop()
    assert [row.on for commit in audit.commits for row in commit] == ["DELETE FROM pay"]
