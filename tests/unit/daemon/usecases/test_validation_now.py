"""What follows when somebody validates a table and it is broken: at once, and without a daemon."""

from pathlib import Path

from lakewarden.catalog.model.rows import TableState
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.system.port import AUDIT, HEALTH
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.validation import validate_table
from support.builders.callers import actor
from support.builders.places import overwritten, paths

ANA = actor("ana")


def test_an_error_quarantines_the_table_and_that_is_on_record(tmp_path: Path) -> None:
    services = Services(load_settings(home=tmp_path / "home", environment={}))
    initialise(services, services.user)
    overwritten(tmp_path / "t")
    row = register(services.registry, str(tmp_path / "t"), actor=ANA).row
    assert validate_table(services, ANA, row.name) == ()
    assert services.registry.get(row.table_id) == row and entries(services) == []
    Path(paths(tmp_path / "t")[0]).unlink()
    (found,) = validate_table(services, ANA, row.name)
    now, health = services.registry.get(row.table_id), services.store.rows(HEALTH).get(row.table_id)
    assert (now.state, now.state_reason) == (TableState.QUARANTINED, found.message)
    assert health is not None and health.findings == (found,)
    assert entries(services) == [("ana", "quarantine", row.name, True)]
    validate_table(services, ANA, row.name)
    assert len(entries(services)) == 1, "it changed nothing more"


def entries(services: Services) -> list[tuple[str, str, str, bool]]:
    return [(one.actor, one.what, one.on, one.allowed) for one in services.store.rows(AUDIT).all()]
