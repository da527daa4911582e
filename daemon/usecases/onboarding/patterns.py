"""Patterns of tables (`/lake/*/events`, `s3://bucket/lake/*`, `db.*`) as the places that they mean now."""

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import unquote

from lakewarden.catalog.errors import EntryAwayError, LakewardenError, PreconditionError, RefusedError
from lakewarden.catalog.registry.discovery import in_catalog, in_metastore
from lakewarden.catalog.storage.file_store import (
    FileStore,
    below,
    canonical,
    is_spelled_once,
    local_path,
    open_store,
)
from lakewarden.catalog.units import storable
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.discovery import candidates
from lakewarden.daemon.usecases.onboarding.lists import Listed, listed_at
from lakewarden.daemon.usecases.onboarding.onboarding_progress import found_among

__all__ = ["discovered", "found_at", "is_pattern"]

_MAGIC: Final = frozenset("*?[")
_HIDDEN: Final = ("_", ".")
_ENCODED: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


def is_pattern(services: Services, where: str) -> bool:
    """Whether the text means several tables. A folder that really has such a name is itself."""
    if not _MAGIC & set(where) or storable(where) != where:
        return False
    return not ("/" in where and _is_there(services, canonical(where)))


def _is_there(services: Services, location: str) -> bool:
    try:
        return is_spelled_once(location) and open_store(location, services.storage(location)).exists("")
    except LakewardenError:
        return False  # the search says what is wrong with the storage


def found_at(
    services: Services, where: str, *, owner: str | None, tell: Callable[[str], None]
) -> list[Listed]:
    """The table that is named, or those that a pattern means; one that means none is refused. `tell` hears how far a
    search is."""
    if not is_pattern(services, where):
        return [listed_at(where, owner=owner)]
    found, untold = list[str](), list[Listed]()
    try:
        found.extend(found_among(_matching(services, where), tell=tell))
    except EntryAwayError as error:
        untold = [Listed(where=where, asked=error)]
    except LakewardenError as error:
        return [Listed(where=where, asked=error)]
    if not found and not untold:
        nothing = RefusedError(
            f"Nothing matches {where}.", hint="Each * stands for a part of one folder's name."
        )
        return [Listed(where=where, asked=nothing)]
    return [*(listed_at(one, owner=owner) for one in found), *untold]


def discovered(services: Services, *, tell: Callable[[str], None]) -> tuple[list[str], list[Listed]]:
    """All that discovery finds, and what a catalog does not tell of: that keeps nothing else back."""
    found = list[str]()
    try:
        found.extend(one.where for one in found_among(candidates(services), tell=tell))
    except EntryAwayError as error:
        tell(error.in_full)
        return found, [Listed(where="discovery", asked=error)]
    return found, []


def _matching(services: Services, pattern: str) -> Iterator[str | None]:
    """Folders that a pattern of a path means, one level for each `*`, or names in the metastore. Hidden folders
    (`_delta_log`, `.tmp`) are meant only where the pattern says so."""
    if "/" in pattern:
        yield from _folders(services, pattern)
        return
    catalogs = services.catalogs
    first = pattern.partition(".")[0]
    if catalogs is not None and first in catalogs.names:
        wanted = f"{pattern}.*" if pattern.count(".") == 0 else pattern
        inside = in_catalog(first, catalogs.catalog(first), {}, named=lambda name: fnmatchcase(name, wanted))
        yield from (one.where if one is not None else None for one in inside)
        return
    if services.metastore is None:
        raise PreconditionError(
            f"{pattern} cannot be looked up: no metastore is configured.",
            hint="Set metastore.uri, or give a pattern of paths (./* for the folders here).",
        )
    wanted = pattern if "." in pattern else f"default.{pattern}"
    looks = in_metastore(
        services.metastore,
        services.readers,
        frozenset(),
        named=lambda name: fnmatchcase(name, wanted.lower()),
    )
    yield from (one.where if one is not None else None for one in looks)


def _folders(services: Services, pattern: str) -> Iterator[str]:
    parts = pattern.rstrip("/").split("/")
    first = next(number for number, part in enumerate(parts) if _MAGIC & set(part))
    base = canonical("/".join(parts[:first]) or ("/" if pattern.startswith("/") else "."))
    local, store = local_path(base), open_store(base, services.storage(base))
    meant = (
        [_decoded(part) for part in parts[first:]] if pattern.lower().startswith("file:") else parts[first:]
    )
    for path in _below(store, "", meant):
        yield str(local / path) if local is not None else below(base, path)


def _decoded(part: str) -> str:
    """A part of a URI's pattern; a `*` that it spells as `%2A` is one of the name."""
    return _ENCODED.sub(lambda found: glob.escape(unquote(found[0])), part)


def _below(store: FileStore, path: str, parts: Sequence[str]) -> Iterator[str]:
    if not parts:
        yield path
        return
    part, *rest = parts
    try:
        folders = list(store.folders(path))
    except OSError:
        yield path  # its registration says what is wrong with it
        return
    for folder in folders:
        name = folder.rsplit("/", 1)[-1]
        if fnmatchcase(name, part) and not (name.startswith(_HIDDEN) and part[0] != name[0]):
            yield from _below(store, folder, rest)
