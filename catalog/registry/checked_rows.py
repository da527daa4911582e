"""Rows of `lakewarden.tables` that validation judges before they are written: active or quarantined.

Validation reads the table and asks the metastore, so it is done before rows are compared and set, on each row as it
would be written. If the row, its policy or the table has changed meanwhile, the judgement is repeated.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from lakewarden.catalog.errors import ConflictError, LakewardenError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import Finding, RowKind, TableRow
from lakewarden.catalog.observation.health import with_verdict
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.policy.scopes import govern, scopes_by_name
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.system.port import TABLES, Rows
from lakewarden.catalog.threads import in_threads

__all__ = [
    "ATTEMPTS",
    "CheckedWrite",
    "Decide",
    "StaleDecision",
    "Unchecked",
    "foresee",
    "nobody",
    "write_checked",
]

ATTEMPTS: Final = 20
"""How often somebody looks again before others are said to be in the way."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unchecked:
    """A row that is to be judged by what was seen of its table before it is written."""

    row: TableRow
    seen: Observation | LogProblem
    failed: Callable[[LakewardenError], None] | None = None
    """Told where it cannot be judged, and whatever is decided from then on leaves the row out; without that, the
    error is raised."""


Decide = Callable[[Rows[TableRow]], Iterable[TableRow | Unchecked]]
"""What is to be written, decided on one version of `lakewarden.tables`. Pure; may raise `StaleDecision`."""


class StaleDecision(Exception):
    """What was looked at outside the catalog is not, or no longer, what has to be decided on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedWrite:
    """The rows written, and by `table_id` what validation found."""

    rows: tuple[TableRow, ...]
    findings: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Checked:
    """A row, its policy, and what validation found."""

    row: TableRow
    policy: EffectivePolicy
    findings: tuple[Finding, ...]

    def is_of(self, row: TableRow, policy: EffectivePolicy) -> bool:
        """Whether this very row was judged, by this policy; its number among the rows is no matter to any check."""
        return replace(row, row=self.row.row) == self.row and policy == self.policy


_AllChecked = Mapping[str, _Checked]


def nobody() -> None:
    """Nobody wants to know how far it is."""


def write_checked(
    registry: Registry,
    prepare: Callable[[Rows[TableRow]], Decide],
    *,
    because: str,
    threads: int = 1,
    judged: Callable[[], None] = nobody,
) -> CheckedWrite:
    """Compare-and-set. `prepare` looks at whatever else has to be known, and gives the decision that is made with it.

    Rows are judged by at most so many `threads`; `judged` is called after each.
    Raises `ConflictError` if others change the same again and again.
    """
    checked: _AllChecked = {}
    for _ in range(ATTEMPTS):
        rows = registry.store.rows(TABLES)
        decide = prepare(rows)
        try:
            checked = _checked(registry, rows, decide, checked, threads, judged)
            done = registry.store.edit(TABLES, partial(_judged, decide, checked), because=because)
        except StaleDecision:
            continue
        return CheckedWrite(rows=tuple(done.rows), findings=_found(checked))
    raise ConflictError(
        "Others kept changing the same rows of the catalog.", hint="Nothing was changed; repeat it."
    )


def foresee(
    registry: Registry, prepare: Callable[[Rows[TableRow]], Decide], *, threads: int = 1
) -> CheckedWrite:
    """What `write_checked` would write now. Writes nothing."""
    rows = registry.store.rows(TABLES)
    decide = prepare(rows)
    checked = _checked(registry, rows, decide, {}, threads, nobody)
    return CheckedWrite(rows=tuple(_judged(decide, checked, rows)), findings=_found(checked))


def _checked(
    registry: Registry,
    rows: Rows[TableRow],
    decide: Decide,
    before: _AllChecked,
    threads: int,
    judged: Callable[[], None],
) -> _AllChecked:
    scopes = scopes_by_name(rows.find(kind=RowKind.SCOPE))

    def check(one: Unchecked) -> _Checked | LakewardenError:
        policy, known = govern(one.row, scopes).policy, before.get(one.row.table_id)
        if known is not None and known.is_of(one.row, policy):
            return known
        try:
            return _Checked(row=one.row, policy=policy, findings=registry.inspect(one.row, policy, one.seen))
        except LakewardenError as error:
            if one.failed is None:
                raise
            return error

    while True:
        asked = [one for one in decide(rows) if isinstance(one, Unchecked)]
        done, left_out = dict[str, _Checked](), False
        for one, came in zip(asked, in_threads(check, asked, threads=threads), strict=True):
            judged()
            if not isinstance(came, LakewardenError):
                done[one.row.table_id] = came
            elif one.failed is not None:
                one.failed(came)
                left_out = True
        if not left_out:
            return done
        before = done  # what was decided with it in mind is decided anew


def _judged(decide: Decide, checked: _AllChecked, rows: Rows[TableRow]) -> Iterator[TableRow]:
    scopes = scopes_by_name(rows.find(kind=RowKind.SCOPE))
    for one in decide(rows):
        if isinstance(one, TableRow):
            yield one
            continue
        known = checked.get(one.row.table_id)
        if known is None or not known.is_of(one.row, govern(one.row, scopes).policy):
            raise StaleDecision
        yield with_verdict(one.row, known.findings)


def _found(checked: _AllChecked) -> Mapping[str, tuple[Finding, ...]]:
    return {table_id: one.findings for table_id, one in checked.items()}
