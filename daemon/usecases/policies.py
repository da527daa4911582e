"""The policies of the whole fleet at once: as they are, what a file would change, and changing it."""

from collections.abc import Mapping

from lakewarden.catalog.model.rows import GONE, PolicySettings, RowKind, Source, TableRow
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.policy.differences import Difference, Wanted, differences, values_set
from lakewarden.catalog.registry.governance import planned_policies, policies_held, set_policies
from lakewarden.catalog.system.port import TABLES
from lakewarden.catalog.units import count_of
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import Part, run
from lakewarden.daemon.usecases.runs.revocation import PLANNED, take_back_runs

__all__ = ["apply_policies", "compared", "exported", "foresee_policies"]


def exported(services: Services) -> Wanted:
    """Every table and scope at which something is set, but for lakewarden's own."""
    return {
        row.name: values
        for row in services.store.rows(TABLES).all()
        if row.source is not Source.SELF
        and (row.kind is RowKind.SCOPE or row.state not in GONE)
        and (values := values_set(row.policy))
    }


def compared(services: Services, wanted: Wanted) -> tuple[Difference, ...]:
    """What a file would change. Raises `NotFoundError` for a table that is not managed."""
    return _differences(policies_held(services.store.rows(TABLES), wanted), wanted)


def foresee_policies(services: Services, caller: Caller, wanted: Wanted) -> tuple[Difference, ...]:
    """What `apply_policies` would change now: everything that it would refuse is refused. Changes nothing."""
    with run(
        services, caller, declared.APPLY_POLICIES_DRY, _what(wanted), rows=_asked_in_the_commit
    ) as actor:
        rows = services.store.rows(TABLES)
        planned_policies(services.registry, rows, wanted, actor=actor)
        return _differences(policies_held(rows, wanted), wanted)


def apply_policies(services: Services, caller: Caller, wanted: Wanted) -> tuple[Difference, ...]:
    """Make the policies of all that is named just what is wanted, in one commit, or change nothing.

    Raises `ConflictError` where somebody else changes one of them between the look and the commit.
    """
    parts, what = list[Part](), _what(wanted)
    with run(
        services, caller, declared.APPLY_POLICIES, what, rows=_asked_in_the_commit, parts=parts
    ) as actor:
        seen = policies_held(services.store.rows(TABLES), wanted)
        changed = set_policies(services.registry, wanted, seen=seen, actor=actor)
        parts += [Part(on=row.name) for row in changed]
    for row in changed:
        take_back_runs(services, row, PLANNED, f"the policy of {row.name} changed", ordered=False)
    return _differences(seen, wanted)


def _differences(held: Mapping[str, PolicySettings], wanted: Wanted) -> tuple[Difference, ...]:
    return tuple(one for name, values in wanted.items() for one in differences(name, held[name], values))


def _what(wanted: Wanted) -> str:
    return f"policies of {count_of(len(wanted), 'name')}"


def _asked_in_the_commit() -> tuple[TableRow, ...]:
    """Rights are checked later, for each table that changes."""
    return ()
