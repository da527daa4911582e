"""Who may do everything: recorded by `init` in row 0, and named by a settings file that can be trusted.

What this is worth: whoever can write the files of the system tables can do anything, whatever is decided here. The rule
guards against mistakes, and is what later surfaces with a login of their own will go by. So nobody becomes admin by an
environment variable, a flag or a file of their own.
"""

import pwd
from pathlib import Path
from stat import S_IWGRP, S_IWOTH
from typing import Final

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.policy.access import Role
from lakewarden.catalog.system.own_rows import ADMINS, system_table_id
from lakewarden.catalog.system.port import TABLES, SystemStore
from lakewarden.daemon.settings.settings import Settings

__all__ = ["admins_of", "distrust", "name_of", "recorded_admins", "roles_of"]

_ROOT: Final = 0


def admins_of(store: SystemStore, settings: Settings) -> frozenset[str]:
    """Who may do everything, by what `init` recorded and by the settings file.

    Where the system tables are lost or damaged, and have to be mended by somebody, it is the owner of the home folder;
    where they do not answer for now, that owner is nobody.
    """
    try:
        recorded = recorded_admins(store) or _owner_of(settings.home)
    except UnavailableError:
        recorded = frozenset()
    except LakewardenError:
        recorded = _owner_of(settings.home)
    return recorded if distrust(settings, recorded) is not None else recorded | frozenset(settings.admins)


def roles_of(name: str, store: SystemStore, settings: Settings) -> frozenset[Role]:
    """What the installation lets somebody be."""
    return frozenset({Role.ADMIN}) if name in admins_of(store, settings) else frozenset()


def recorded_admins(store: SystemStore) -> frozenset[str]:
    """The admins of row 0. A home that was made before they were recorded has the owner of row 0."""
    row = store.rows(TABLES).get(system_table_id(TABLES.name)) if store.exists() else None
    return frozenset() if row is None else _of(row)


def distrust(settings: Settings, recorded: frozenset[str]) -> str | None:
    """Why nobody becomes admin by the settings file; None where it can be trusted, or names nobody."""
    if not settings.admins:
        return None
    file = settings.file
    if file is None:
        return "the settings come from no file"
    return _distrust(file, recorded)


def _distrust(file: Path, recorded: frozenset[str]) -> str | None:
    try:
        status = file.stat()
    except OSError:
        return f"{file} cannot be looked at"
    owner = name_of(status.st_uid)
    if status.st_uid != _ROOT and owner not in recorded:
        return f"{file} belongs to {owner}, who is no admin"
    if status.st_mode & (S_IWGRP | S_IWOTH):
        return f"others than its owner may write {file}"
    return None


def _owner_of(folder: Path) -> frozenset[str]:
    """Whose a folder is; if it is gone, the owner of its folder."""
    place = next((one for one in (folder, *folder.parents) if one.exists()), folder)
    try:
        return frozenset([name_of(place.stat().st_uid)])
    except OSError:
        return frozenset()


def _of(row: TableRow) -> frozenset[str]:
    named = frozenset(name for name in row.properties.get(ADMINS, "").split(",") if name)
    return named or frozenset(filter(None, [row.owner]))


def name_of(uid: int) -> str:
    """The name of a user of this machine; `uid-1000` where it has none for the number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"
