"""Installations that share one metastore, which is in memory."""

from pathlib import Path

from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.metastore.system_database import with_system_database
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from support.fakes.metastore import FakeMetastore

__all__ = ["WithMetastore", "on_one_metastore"]


class WithMetastore(Services):
    """An installation whose metastore is in memory."""

    metastore: Metastore = FakeMetastore(strict=False)


def on_one_metastore(home: Path, metastore: Metastore, **settings: str) -> WithMetastore:
    """One that nobody has initialised yet. `system_database="x"` stands for `system.database = "x"`."""
    flags = {key.replace("_", "."): value for key, value in settings.items()}
    made = WithMetastore(load_settings(home=home, environment={}, flags=flags))
    made.metastore = with_system_database(metastore, made.settings.system_database)
    return made
