"""Reading the settings file: sections become keys, values become text as a person would write it in the environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.daemon.settings.catalog_entries import catalog_entries
from lakewarden.daemon.settings.storage_entries import storage_entry
from lakewarden.daemon.settings.toml_file import toml_of

__all__ = ["SettingsFile", "read_settings_file"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingsFile:
    """What a settings file says."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """Values by key."""
    storage: StorageMap = field(default_factory=StorageMap)
    """Its `[[storage]]` entries."""
    catalogs: tuple[CatalogDeclaration, ...] = ()
    """Its `[catalogs.NAME]` sections."""


def read_settings_file(file: Path, env: Mapping[str, str], *, named: bool) -> SettingsFile:
    """The file's values and entries. It may only be missing if nobody `named` it."""
    try:
        tree = toml_of(file)
    except FileNotFoundError:
        if named:
            raise UsageError(f"There is no settings file {file}.", hint="Check LAKEWARDEN_CONFIG.") from None
        return SettingsFile()
    except NotADirectoryError:
        raise UsageError(
            f"The home {file.parent} is not a folder.", hint="Name a folder with --home or LAKEWARDEN_HOME."
        ) from None
    except OSError as error:
        raise UsageError(
            f"The settings file {file} cannot be read: {error.strerror}.",
            hint="Check it, and its permissions.",
        ) from error
    prefixes = tree.pop("storage", [])
    if not isinstance(prefixes, list):
        raise UsageError("Storage options are a list in the settings file.", hint="Write [[storage]].")
    catalogs = catalog_entries(tree.pop("catalogs", {}), env)
    storage = StorageMap(prefixes=tuple(storage_entry(one, env) for one in prefixes))
    return SettingsFile(texts=_flat(tree), storage=storage, catalogs=catalogs)


def _flat(tree: Mapping[str, Any], above: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in tree.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping):
            found.update(_flat(value, f"{path}."))
        elif isinstance(value, list):
            found[path] = ", ".join(str(one) for one in value)
        elif isinstance(value, bool):
            found[path] = "yes" if value else "no"
        else:
            found[path] = str(value)
    return found
