"""Where a table lies that somebody named by a catalog's entry: the catalog names a metadata file, which says it."""

from lakewarden.catalog.errors import PreconditionError, RefusedError
from lakewarden.catalog.formats.registry import formats, spec_of
from lakewarden.catalog.metastore.lookup import NamedLocation, place_to_manage, refuse_ambiguous, refuse_ours
from lakewarden.catalog.metastore.table_heads import address_in
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.named_catalogs.port import NamedCatalogs
from lakewarden.catalog.registry.service import Registry

__all__ = ["is_named_still", "place_wanted"]


def place_wanted(registry: Registry, where: str) -> NamedLocation:
    """The place of a table to be managed: a path, a name in the metastore, or `catalog.namespace.table`. Raises what
    `place_to_manage` raises, and `UnavailableError` where a catalog does not answer."""
    catalogs = registry.catalogs
    address = None if catalogs is None else catalogs.address(where)
    if catalogs is None or address is None:
        return place_to_manage(where, registry.metastore)
    refuse_ours(address.entry)
    file = _file_of(catalogs, address)
    if file is None:
        raise RefusedError(
            f"The catalog {address.catalog} has no Iceberg table {address.entry}.", hint="Check the name."
        )
    location = _located(registry, file)
    refuse_ambiguous(location)
    return NamedLocation(location=location, name=address.managed_as, address=address)


def is_named_still(registry: Registry, row: TableRow) -> bool:
    """Whether what a managed table goes by still names it: an entry of a catalog, or its folder where that tells head.
    Raises `UnavailableError`."""
    address = address_in(row.properties)
    if address is None:
        return row.location is None or spec_of(row.format).told_by_folder(registry.storage, row.location)
    if address.catalog is None:
        if registry.metastore is None:
            return True
        named = registry.metastore.metadata_files(address.namespace, [address.table])
        file = named.get(address.table)
    elif registry.catalogs is None:
        return True
    else:
        file = _file_of(registry.catalogs, address)
    return file is not None and _located(registry, file) == row.location


def _file_of(catalogs: NamedCatalogs, address: CatalogAddress) -> str | None:
    """The metadata file that an entry of a declared catalog names; None where it is not there."""
    assert address.catalog is not None, "the metastore is asked elsewhere"
    files = catalogs.catalog(address.catalog).metadata_files(address.namespace, [address.table])
    return files.get(address.table)


def _located(registry: Registry, file: str) -> str:
    located = next((spec.located for spec in formats().values() if spec.located is not None), None)
    if located is None:
        raise PreconditionError(
            "No table format here has its heads in catalogs.", hint="Install the one that is missing."
        )
    return located(registry.storage, file)
