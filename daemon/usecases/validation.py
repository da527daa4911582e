"""Every check on one table, now, for a person. What is broken is quarantined at once."""

from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import Finding, TableRow
from lakewarden.catalog.policy.access import Caller, Permission
from lakewarden.catalog.registry.governance import governed
from lakewarden.catalog.system.port import HEALTH
from lakewarden.catalog.validation.reverted_reads import READS_REVERTED
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.audit import note_done

__all__ = ["validate_table"]


def validate_table(services: Services, caller: Caller, where: str) -> tuple[Finding, ...]:
    """Findings of all tiers, those that stood before with the time since when they stand. An error quarantines the
    table, as a sweep would, and that is on record; nothing else is written.

    What only a sweep can tell, having all lineage at hand, is as it is on record."""
    view = governed(services.registry, where)
    location, now = view.row.location or "", services.clock.now()
    before = services.store.rows(HEALTH).get(view.row.table_id)
    if not services.registry.is_table(location):
        lost = LogProblem(check="exists", message=f"There is no table at {location}.")
        findings = services.inspection.gone(view, before, now)
        _follow(services, caller, view.row, lost, findings)
        return findings
    seen = services.registry.reader_at(location, view.row.name).observe(location)
    told = () if before is None else (one for one in before.findings if one.check == READS_REVERTED)
    findings = (*services.inspection.daily(view, seen, before, now), *told)
    _follow(services, caller, view.row, seen, findings)
    return findings


def _follow(
    services: Services,
    caller: Caller,
    row: TableRow,
    seen: LogProblem | Observation,
    findings: tuple[Finding, ...],
) -> None:
    if services.registry.quarantine(row, seen, findings):
        note_done(services, caller, Permission.QUARANTINE, row.name)
