"""The `[catalogs.NAME]` sections of the settings file: catalogs of Iceberg tables, and secrets by reference."""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind, unsendable
from lakewarden.catalog.storage.secret_files import known
from lakewarden.daemon.settings.storage_entries import options_of
from lakewarden.daemon.settings.web_address import is_web_address

__all__ = ["catalog_entries"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN: Final = frozenset({"spark_catalog", "iceberg", "lakewarden"})
"""Names that Spark's sessions have something else by."""
_OWN: Final = ("type", "uri", "warehouse")


def catalog_entries(sections: object, env: Mapping[str, str]) -> tuple[CatalogDeclaration, ...]:
    """The catalogs that a settings file declares. Raises `UsageError` for one that is not whole, or has a secret in
    it."""
    if not isinstance(sections, Mapping):
        raise UsageError("Catalogs have names in the settings file.", hint="Write [catalogs.NAME].")
    return tuple(_entry(str(name), section, env) for name, section in sections.items())


def _entry(name: str, section: object, env: Mapping[str, str]) -> CatalogDeclaration:
    if _NAME.fullmatch(name) is None or name in _TAKEN:
        raise UsageError(
            f"No catalog can be called {name!r}.",
            hint="A name has letters, digits and underscores, and is none of "
            + ", ".join(sorted(_TAKEN))
            + ".",
        )
    if not isinstance(section, Mapping):
        raise UsageError(f"catalogs.{name} is a section.", hint=f"Write [catalogs.{name}].")
    kinds = [one.value for one in CatalogKind]
    kind, uri, warehouse = (section.get(key) for key in _OWN)
    if kind not in kinds or not isinstance(uri, str) or not uri.strip():
        raise UsageError(
            f"The catalog {name} needs a type and a uri.",
            hint=f"type = one of {', '.join(kinds)}; uri = the database, as in postgresql+psycopg://host/lake, or the "
            "server's web address.",
        )
    if kind == CatalogKind.REST and not is_web_address(uri.strip()):
        raise UsageError(
            f"catalogs.{name}.uri has to be a web address.", hint="Write http://host:port/path, or https."
        )
    if warehouse is not None and not isinstance(warehouse, str):
        raise UsageError(f"catalogs.{name}.warehouse has to be a text.", hint="Write a path or URI.")
    options = options_of(_flat(name, section), env, what=f"setting catalogs.{name}.")
    odd = unsendable(known(options))
    if kind == CatalogKind.REST and odd is not None:
        raise UsageError(
            f"catalogs.{name}.{odd} has characters that no request can hold.",
            hint="Check its value for a line end in its middle, and for letters that are not ASCII.",
        )
    return CatalogDeclaration(
        name=name,
        kind=CatalogKind(kind),
        uri=_without_password(name, uri.strip()),
        warehouse=warehouse,
        options=options,
    )


def _flat(name: str, section: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """The other settings of a section, those with dots in their names among them."""
    found: dict[str, str] = {}
    for key, value in section.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping):
            found |= _flat(name, value, f"{path}.")
        elif path not in _OWN:
            found[path] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _without_password(name: str, uri: str) -> str:
    try:
        parts = urlsplit(uri)
        password = parts.password
    except ValueError as error:
        raise UsageError(f"catalogs.{name}.uri is no address.", hint="Write scheme://host/path.") from error
    if password is not None:
        raise UsageError(
            f"The password of catalogs.{name} does not belong in the settings file.",
            hint='Write password = "env:VARIABLE" or "file:/path", and leave it out of the uri.',
        )
    return uri
