"""Files as a log names them, found again in the table's folder."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final

from lakewarden.catalog.storage.file_store import (
    FileEntry,
    FileStore,
    StorageOptions,
    canonical,
    local_path,
    location_of,
    open_store,
)

__all__ = ["delete_empty_local", "existing", "lacking", "relative_to"]

_FEW: Final = 8
"""Up to so many files of one folder are looked up one by one; for more the folder is listed."""


def relative_to(location: str, path: str) -> str | None:
    """A path as the log has it (decoded; relative, `/absolute`, or a URI) relative to the canonical location; None if
    it lies elsewhere, as the files of a shallow clone do."""
    scheme, separator, rest = path.partition(":/")
    is_uri = bool(separator) and "/" not in scheme
    if not is_uri and not path.startswith("/"):
        return path
    base = location if local_path(location) is None else str(local_path(location))
    if is_uri and scheme.lower() != "file":
        authority, _, inner = rest.lstrip("/").partition("/")
        # Of the spelling only scheme and authority are canonicalised: a decoded `%` in the path must stay as it is.
        path = f"{canonical(f'{scheme}://{authority}')}/{inner}"
    elif is_uri:
        path = f"/{rest.lstrip('/')}"
    prefix = base.rstrip("/") + "/"
    return path.removeprefix(prefix) if path.startswith(prefix) else None


def existing(store: FileStore, paths: Iterable[str]) -> tuple[FileEntry, ...]:
    """The existing paths, files and folders, with sizes and times."""
    by_folder: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        parent = str(PurePosixPath(path).parent)
        by_folder["" if parent == "." else parent].add(path)
    found: list[FileEntry] = []
    for folder, wanted in sorted(by_folder.items()):
        if len(wanted) > _FEW:
            found.extend(entry for entry in store.list(folder) if entry.path in wanted)
        else:
            found.extend(entry for path in sorted(wanted) if (entry := _stat(store, path)) is not None)
    return tuple(found)


def lacking(
    location: str, paths: Mapping[str, int | None], storage: Callable[[str], StorageOptions]
) -> tuple[str, ...]:
    """The paths (as in the log of the table at `location`) that are gone or have another size (None: it says none): in
    its folder, or where they lie elsewhere (a shallow clone's are its source's).
    """
    places = {
        path: (location, inside) for path in paths if (inside := relative_to(location, path)) is not None
    }
    places |= {path: _elsewhere(path) for path in paths if path not in places}
    by_folder: dict[str, list[str]] = defaultdict(list)
    for folder, name in places.values():
        by_folder[folder].append(name)
    sizes = {
        (folder, entry.path): entry.size_bytes
        for folder, names in by_folder.items()
        for entry in existing(open_store(folder, storage(folder)), names)
        if not entry.is_dir
    }
    return tuple(
        sorted(
            path
            for path, place in places.items()
            if place not in sizes or paths[path] not in (None, sizes[place])
        )
    )


def _elsewhere(path: str) -> tuple[str, str]:
    """Folder (canonical) and name of a file that a log names by an absolute path or a URI, decoded."""
    scheme, separator, rest = path.partition(":/")
    if path.startswith("/") or not separator or scheme.lower() == "file":
        folder, _, name = ("/" + (path if path.startswith("/") else rest).lstrip("/")).rpartition("/")
        return location_of(folder or "/"), name
    authority, _, inner = rest.lstrip("/").partition("/")
    folder, _, name = inner.rpartition("/")
    return f"{canonical(f'{scheme}://{authority}')}/{folder}".rstrip("/"), name


def _stat(store: FileStore, path: str) -> FileEntry | None:
    try:
        return store.stat(path)
    except FileNotFoundError:
        return None


def delete_empty_local(location: str, folders: Sequence[str]) -> int:
    """Delete those of `folders` (relative, inner ones first;
    "" is the location's own) on a local disk that are empty."""
    root, deleted = local_path(location), 0
    assert root is not None, "the caller has asked"
    for folder in folders:
        with suppress(OSError):  # not empty, so it stays; or gone already
            os.rmdir(root / folder)
            deleted += 1
    return deleted
