"""Which metadata file is head's? The one that a pointer names, and no other, however new it is.

In Hadoop's layout a commit is the file `v<N+1>.metadata.json` itself, made by a rename beside `v<N>.metadata.json`;
`version-hint.text` is written afterwards and may lag behind, or be missing: it is deleted before it is written. So head
is where the unbroken row of numbers that begins at the hint ends, and without a hint the largest number that there is,
as it is for every engine. Files of any other name are named by catalogs alone: a commit that failed,
or is not made yet, leaves such ones as well. Where a catalog keeps head, it alone is asked.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.iceberg.errors import (
    UNREADABLE,
    BrokenMetadataError,
    LeftByEntryError,
    missing,
    not_understood,
)
from lakewarden.catalog.formats.iceberg.file_paths import FilePaths
from lakewarden.catalog.formats.spec import CatalogHead
from lakewarden.catalog.storage.file_store import FileEntry, FileStore

__all__ = [
    "FOLDER",
    "HINT",
    "HeadFile",
    "catalogued_file",
    "has_metadata",
    "head_file",
    "hinted_number",
    "metadata_files",
    "number_of",
    "tells_head",
]

FOLDER: Final = "metadata"
HINT: Final = f"{FOLDER}/version-hint.text"
_NUMBERED: Final = re.compile(r"v([0-9]{1,18})(?:\.gz)?\.metadata\.json(?:\.gz)?")
_ENDINGS: Final = (".metadata.json", ".metadata.json.gz")
_UNDER_WAY: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json")
"""What Hadoop's writers call a file before it gets its number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadFile:
    """The file that holds head's metadata."""

    path: str
    named_by: str
    """Who says so."""
    entry: FileEntry | None = None
    """Its size and time: catalogs give each file a name of its own, one that has a number may be another table's."""
    other_names: Callable[[], tuple[str, ...]] = field(default=tuple, compare=False, repr=False)
    """Asks for other entries of the catalog that name a file in the folder. Raises `UnavailableError`."""
    told: CatalogHead | None = field(default=None, compare=False, repr=False)
    """What a catalog said, where one names the file."""

    def require_own(self, location: str, *, said: str, format_id: str) -> None:
        """Raise `LeftByEntryError` where a catalog's entry names the metadata of another table than the one at a
        location by now: one of another UUID than is on record, which lies elsewhere, as it has `said` itself."""
        if self.told is None or self.told.format_id in (None, format_id) or FilePaths(location, said).is_here:
            return
        raise LeftByEntryError(
            f"{_kept(self.told)}'s entry of {self.told.entry} names another table now, which lies at {said}.",
            self.told.others,
        )


def has_metadata(store: FileStore) -> bool:
    """Whether a folder has files of an Iceberg table, referenced or not."""
    return store.exists(HINT) or next(store.named(FOLDER, _is_metadata), None) is not None


def tells_head(store: FileStore) -> bool:
    """Whether a folder is in Hadoop's layout, or points to its metadata: then it tells head without a catalog. Raises
    `OSError`."""
    numbered = store.named(FOLDER, lambda name: number_of(name) is not None)
    return store.exists(HINT) or next(numbered, None) is not None


def metadata_files(store: FileStore) -> tuple[FileEntry, ...]:
    """All metadata files in a table's folder, whichever table's they are, referenced or not."""
    return tuple(store.named(FOLDER, _is_metadata))


def catalogued_file(location: str, told: CatalogHead) -> HeadFile:
    """The file that a catalog names. Raises `LeftByEntryError` where it has no such table any more."""
    if told.file is None:
        raise LeftByEntryError(f"{_kept(told)} has no Iceberg table {told.entry} any more.", told.others)
    path = FilePaths(location, location).path(told.file)
    by = f"{told.keeper}'s entry of {told.entry}"
    return HeadFile(path=path, named_by=by, other_names=_others(told), told=told)


def _kept(told: CatalogHead) -> str:
    """The catalog, where a sentence begins."""
    return told.keeper.replace("the", "The", 1)


def _others(told: CatalogHead) -> Callable[[], tuple[str, ...]]:
    """A metastore would have to be asked for all tables of a database: whoever acts on the table does."""
    return tuple if told.catalog is None else told.others


def head_file(store: FileStore) -> HeadFile | None:
    """The file that the table's folder says holds head's metadata; None where there is no table. Raises
    `BrokenMetadataError` where the pointer leads nowhere, or only a catalog knows it; `OSError`."""
    try:
        hint = store.read(HINT)
    except (FileNotFoundError, NotADirectoryError):
        return _unhinted(store)
    try:
        told = hint.decode("ascii").strip()
    except UnicodeDecodeError as error:
        raise not_understood(HINT) from error
    number = as_whole(told)
    found = _named(store, told) if number is None else _numbered(store, number)
    return HeadFile(path=found.path, named_by=HINT, entry=found)


def _named(store: FileStore, told: str) -> FileEntry:
    """Writers that are not Hadoop's name the file, with its ending or without."""
    if not told or "/" in told:
        raise not_understood(HINT)
    path = f"{FOLDER}/{told if told.endswith(_ENDINGS) else told + _ENDINGS[0]}"
    try:
        return store.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise missing(path, named_by=HINT) from None


def _unhinted(store: FileStore) -> HeadFile | None:
    """The largest number, where all files are those of Hadoop's writers."""
    numbered, others = list[FileEntry](), False
    for entry in store.named(FOLDER, _is_metadata):
        name = _name(entry)
        others = others or number_of(name) is None
        if number_of(name) is not None:
            numbered.append(entry)
        elif _UNDER_WAY.fullmatch(name) is None:
            raise _left_to_a_catalog()
    if numbered:
        found = _by_number(numbered)
        entry = found[max(found)]
        return HeadFile(path=entry.path, named_by=f"the list of {FOLDER}", entry=entry)
    if others:
        raise _left_to_a_catalog()
    return None


def _left_to_a_catalog() -> BrokenMetadataError:
    message = f"Only a catalog knows which metadata file is head's: there is no {HINT}."
    return BrokenMetadataError(UNREADABLE, message)


def _numbered(store: FileStore, first: int) -> FileEntry:
    found = _by_number(store.named(FOLDER, lambda name: (number_of(name) or -1) >= first))
    if first not in found:
        raise missing(f"{FOLDER}/v{first}{_ENDINGS[0]}", named_by=HINT)
    return found[next(one for one in sorted(found) if one + 1 not in found)]


def _by_number(entries: Iterable[FileEntry]) -> dict[int, FileEntry]:
    """Files that have numbers; of those with the same one, that which engines ask for first."""
    found: dict[int, FileEntry] = {}
    for entry in sorted(entries, key=_packing):
        number = number_of(_name(entry))
        assert number is not None, "only numbered ones were asked for"
        found.setdefault(number, entry)
    return found


def _packing(entry: FileEntry) -> tuple[bool, bool]:
    """In the order in which engines ask: plain, packed, packed with an ending of older writers'."""
    name = _name(entry)
    return name.endswith(_ENDINGS[1]), ".gz." in name


def _name(entry: FileEntry) -> str:
    return entry.path.rpartition("/")[2]


def hinted_number(store: FileStore) -> int | None:
    """The number from which on engines look for head; None where the folder tells none. Raises `OSError`."""
    try:
        return as_whole(store.read(HINT).decode("ascii", "replace").strip())
    except (FileNotFoundError, NotADirectoryError):
        return None


def number_of(name: str) -> int | None:
    """The number in the name of a metadata file in Hadoop's layout; None for any other name."""
    match = _NUMBERED.fullmatch(name)
    return None if match is None else int(match[1])  # the first one is v1


def _is_metadata(name: str) -> bool:
    return name.endswith(_ENDINGS)
