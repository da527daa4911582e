"""Rows of `lakewarden.tables` that validation judges before they are written: active or quarantined.

Validation reads the table and asks the metastore, so it is done before rows are compared and set, on the row
as it would be written. Where that row, its policy or what was looked at has become another one meanwhile,
it is done again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import Finding, TableRow
from lakewarden.catalog.observation.health import with_verdict
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.registry.service import Desk, governed_in
from lakewarden.catalog.system.port import TABLES, Rows

__all__ = ["Decide", "LookAgain", "Settled", "Unchecked", "settle"]

_ATTEMPTS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Unchecked:
    """A row that is to be judged before it is written."""

    row: TableRow


Decide = Callable[[Rows[TableRow]], Iterable[TableRow | Unchecked]]
"""What is to be written, decided on one version of `lakewarden.tables`. Pure; may raise `LookAgain`."""


class LookAgain(Exception):
    """What was looked at outside the catalog is not, or no longer, what has to be decided on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """The rows that were written, and what validation found of the one that it judged (None: it judged none)."""

    rows: tuple[TableRow, ...]
    findings: tuple[Finding, ...] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Checked:
    row: TableRow
    policy: EffectivePolicy
    findings: tuple[Finding, ...]


def settle(
    desk: Desk,
    prepare: Callable[[Rows[TableRow]], Decide],
    seen: Observation | LogProblem,
    *,
    because: str,
) -> Settled:
    """Compare-and-set. `prepare` looks at whatever else has to be known, and gives the decision that is made
    with it; at most one row of that is `Unchecked`. Raises `ConflictError` if others change the same again
    and again."""
    for _ in range(_ATTEMPTS):
        rows = desk.store.rows(TABLES)
        decide = prepare(rows)
        try:
            checked = _checked(desk, rows, decide, seen)
            done = desk.store.edit(TABLES, partial(_judged, decide, checked), because=because)
        except LookAgain:
            continue
        return Settled(rows=tuple(done.rows), findings=checked.findings if checked is not None else None)
    raise ConflictError(
        "Others changed the same in the catalog again and again.", hint="Nothing was changed; repeat it."
    )


def _checked(
    desk: Desk, rows: Rows[TableRow], decide: Decide, seen: Observation | LogProblem
) -> _Checked | None:
    for one in decide(rows):
        if isinstance(one, Unchecked):
            policy = governed_in(rows, one.row).policy
            return _Checked(row=one.row, policy=policy, findings=desk.inspect(one.row, policy, seen))
    return None


def _judged(decide: Decide, checked: _Checked | None, rows: Rows[TableRow]) -> Iterator[TableRow]:
    for one in decide(rows):
        if isinstance(one, TableRow):
            yield one
            continue
        if checked is None or not _is_same(one.row, checked, rows):
            raise LookAgain
        yield with_verdict(one.row, checked.findings)


def _is_same(row: TableRow, checked: _Checked, rows: Rows[TableRow]) -> bool:
    """Its number among the rows is no matter to any check."""
    return (
        replace(row, row=checked.row.row) == checked.row and governed_in(rows, row).policy == checked.policy
    )
