"""How Spark is told of the declared catalogs. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.catalog.storage.secret_files import known

__all__ = ["catalog_conf"]

_CATALOG: Final = "org.apache.iceberg.spark.SparkCatalog"
_LOGIN: Final = ("user", "password")
"""Options that a database's driver takes, not Iceberg."""


def catalog_conf(declared: Sequence[CatalogDeclaration]) -> tuple[tuple[str, str], ...]:
    """The settings of the Spark catalogs with their names. Holds secrets. Without Spark's cache, which would show what
    was head before."""
    return tuple(pair for one in declared for pair in _conf(one))


def _conf(one: CatalogDeclaration) -> Iterator[tuple[str, str]]:
    key = f"spark.sql.catalog.{one.name}"
    yield key, _CATALOG
    yield f"{key}.cache-enabled", "false"
    if one.warehouse is not None:
        yield f"{key}.warehouse", one.warehouse
    options = known(one.options)
    match one.kind:
        case CatalogKind.SQL:
            yield f"{key}.type", "jdbc"
            uri, user = _jdbc(one.uri)
            yield f"{key}.uri", uri
            login = {**({} if user is None else {"user": user}), **options}
            yield from ((f"{key}.jdbc.{name}", login[name]) for name in _LOGIN if name in login)
            yield from ((f"{key}.{name}", value) for name, value in options.items() if name not in _LOGIN)
        case CatalogKind.REST:
            yield f"{key}.type", "rest"
            yield f"{key}.uri", one.uri
            yield from ((f"{key}.{name}", value) for name, value in options.items())


def _jdbc(uri: str) -> tuple[str, str | None]:
    """A database's address as Java's drivers have it, and the user in it: `postgresql+psycopg://lake@host/db` is
    `jdbc:postgresql://host/db`."""
    parts = urlsplit(uri)
    system = parts.scheme.partition("+")[0]
    if system == "sqlite":
        return f"jdbc:sqlite:{unquote(parts.path.removeprefix('/'))}", None
    host = parts.netloc.rpartition("@")[2]
    return f"jdbc:{system}://{host}{parts.path}{f'?{parts.query}' if parts.query else ''}", parts.username
