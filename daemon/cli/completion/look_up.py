"""`python -m lakewarden.daemon.cli.completion.look_up HOME CACHE`: keep an installation's names for shells."""

import sys
from pathlib import Path
from typing import Final

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.model.rows import GONE, RowKind, Source
from lakewarden.catalog.policy.scopes import GLOBAL, scope_names
from lakewarden.catalog.system.port import ROLLBACKS, TABLES
from lakewarden.daemon import callers
from lakewarden.daemon.cli.completion.cached_names import Known, keep_names, write_names
from lakewarden.daemon.cli.completion.tree import ValueKind
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.process.spared_libraries import spare_unused_libraries
from lakewarden.daemon.usecases.runs.listing import newest_on_record

__all__ = ["look_up"]

_RUNS: Final = 200


def look_up(services: Services) -> Known:
    """Tables that are there, scopes over them, unfinished runs and the last ones, rollbacks."""
    rows = services.store.rows(TABLES).arrow(["name", "kind", "state", "source"]).to_pylist()
    gone = {state.value for state in GONE}
    tables = sorted(
        row["name"] for row in rows if row["kind"] == RowKind.TABLE.value and row["state"] not in gone
    )
    ours = {row["name"] for row in rows if row["source"] == Source.SELF.value}
    scopes = {GLOBAL, *(scope for name in tables if name not in ours for scope in scope_names(name))}
    runs = [*_unfinished(services), *(row["run_id"] for row in newest_on_record(services, _RUNS))]
    rollbacks = services.store.rows(ROLLBACKS).arrow(["rollback_id"]).column(0).unique().to_pylist()
    return {
        ValueKind.TABLE: tables,
        ValueKind.SCOPE: sorted(scopes),
        ValueKind.RUN: runs,
        ValueKind.ROLLBACK: sorted(rollbacks),
    }


def _unfinished(services: Services) -> list[str]:
    try:
        return [run.request.run_id for run in services.queue.unfinished()]
    except LakewardenError:  # a database that Tab does not make, upgrade or mend
        return []


def _main(home: Path, cache: Path) -> None:
    spare_unused_libraries()
    try:
        services = open_services(home=home, user=callers.real_user(), as_it_is=True)
        services.require_initialised()
        names = look_up(services)
    except LakewardenError:  # no installation, or one that does not answer: there is nobody to tell
        keep_names(cache, home)
    else:
        write_names(cache, home, names)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]))
