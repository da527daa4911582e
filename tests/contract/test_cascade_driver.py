"""The Carrier port where nobody restores a table: what a daemon has, and what tests of its other duties have."""

from pathlib import Path

import pytest
from deltalake import write_deltalake

from lakewarden.catalog.registry.register import register
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.control.restore_cascade import CascadeDriver, OpenRestores, RestoreCascadeDriver
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from support.builders.callers import actor
from support.builders.daemons import NoRestores, Told
from support.builders.estate import numbers

ME = actor("ana", admin=True)


@pytest.mark.parametrize("kind", ["real", "fake"])
def test_where_nobody_restores_there_is_nothing_to_look_at_and_nothing_begins(
    kind: str, tmp_path: Path
) -> None:
    services = open_services(home=tmp_path / "home")
    initialise(services, real_user())
    write_deltalake(str(tmp_path / "t"), numbers(1))
    row = register(services.registry, str(tmp_path / "t"), actor=ME, name="db.t").row
    cache, told = FleetCache(services.store, services.clock), Told()
    cache.refresh()
    cascade_driver: CascadeDriver = NoRestores()
    if kind == "real":
        cascade_driver = RestoreCascadeDriver(
            rollbacks=rollbacks_of_services(services), cache=cache, notifier=told
        )
    assert list(cascade_driver.open()) == []
    fence = services.store.raise_fence("one", at_least=1)
    none = OpenRestores(row=row, restores=(), downstream=frozenset())
    assert cascade_driver.carry(none, fence) is False
    assert told.events == [] and rollbacks_of_services(services).journal.all() == ()
