"""A head that is moved back by hand, comes back and is moved again: each move is looked at, also by another daemon."""

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import write_deltalake

from lakewarden.catalog.model.rows import Dependency, LeftVersions
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.system.port import AUDIT, HEALTH, TABLES
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.control.restore_cascade import RestoreCascadeDriver
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from support.builders.callers import actor
from support.builders.daemons import Told
from support.builders.estate import numbers

ANA = actor("ana", admin=True)
LEFT = LeftVersions(first=1, last=1, back_to=0, format_id="u")


class Moved:
    """`db.t`, which `db.derived` declares to read, and the daemons that look at it."""

    def __init__(self, folder: Path) -> None:
        self.services = open_services(home=folder / "home")
        initialise(self.services, real_user())
        write_deltalake(str(folder / "t"), numbers(1))
        self.row = register(self.services.registry, str(folder / "t"), actor=ANA, name="db.t").row
        write_deltalake(str(folder / "derived"), numbers(1))
        derived = register(self.services.registry, str(folder / "derived"), actor=ANA, name="db.derived").row
        reads = replace(derived, dependencies=(Dependency(upstream=self.row.table_id),))
        self.services.store.edit(TABLES, lambda _: [reads], because="test")
        self.fence = self.services.store.raise_fence("one", at_least=1)

    def leaves(self, *left: LeftVersions) -> None:
        (health,) = self.services.store.rows(HEALTH).find(table_id=self.row.table_id)
        changed = replace(health, left_behind=left)
        self.services.store.edit(HEALTH, lambda _: [changed], because="test")

    def daemon(self) -> RestoreCascadeDriver:
        cache = FleetCache(self.services.store, self.services.clock)
        cache.refresh()
        return RestoreCascadeDriver(
            rollbacks=rollbacks_of_services(self.services), cache=cache, notifier=Told()
        )

    def entries(self) -> list[str]:
        """Of `lakewarden.audit`, without the table's own id."""
        prefix = f"restored-{self.row.table_id}-"
        ids = (one.audit_id for one in self.services.store.rows(AUDIT).all())
        return sorted(one.removeprefix(prefix) for one in ids if one.startswith(prefix))


@pytest.mark.heavy
def test_a_move_that_was_handled_is_looked_at_again_when_it_is_made_again(tmp_path: Path) -> None:
    moved = Moved(tmp_path)
    for left in ((LEFT,), (), (LEFT,)):
        moved.leaves(*left)
        driver = moved.daemon()
        (one,) = driver.open()
        assert driver.carry(one, moved.fence) is False
        assert driver.open() == (), "it was looked at"
        assert moved.daemon().open() == (), "and another daemon knows"
    assert moved.entries() == ["left-1-1-u", "left-1-1-u-again-1", "left-1-1-u-back"]
