"""A second copy of the seven system tables, all as of one moment, with their whole history.
First a plan, then the copy.

A backup is a store like any other (`lakewarden system verify` and `sql` read it). Repeating a backup to the
same place copies only what is new: data files never change under their name, log files are compared by
content (after a repair the same version may be another commit of the very same size).
What is there already is looked at again, not believed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from pydantic import TypeAdapter

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import ConflictError, NotFoundError, RefusedError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.log_names import FOLDER, whole_version
from lakewarden.catalog.storage.file_store import FileStore, StorageOptions, open_store
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.system.handles import files_of, open_at, opened
from lakewarden.catalog.system.port import SYSTEM_TABLES, SystemStore, SystemTable, SystemTableName
from lakewarden.catalog.system.schema import BUCKET
from lakewarden.catalog.system.snapshot import Snapshot, take_snapshot

__all__ = [
    "MANIFEST",
    "BackedUp",
    "Backup",
    "BackupPlan",
    "BackupSource",
    "Copied",
    "check_files",
    "copied_of",
    "data_first",
    "open_backup",
    "plan_backup",
    "read_backup",
    "root_of",
    "run_backup",
]

MANIFEST = "lakewarden-backup.json"
_STARTED = "lakewarden-backup.started.json"
_ATTEMPTS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """One file of a backup."""

    path: str
    """Below the store."""
    size_bytes: int
    digest: str | None = None
    """SHA-256; None for a data file that is only planned."""

    @property
    def in_table(self) -> str:
        """The path below the table."""
        return self.path.partition("/")[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class BackedUp:
    """One table of a backup."""

    table: SystemTableName
    version: int
    """The version copied."""
    format_id: str
    """The table's Delta id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupPlan:
    """What a backup would copy."""

    source: str
    destination: str
    tables: tuple[BackedUp, ...]
    files: tuple[Copied, ...]
    known: tuple[Copied, ...]
    """Files that are at the destination already."""

    @property
    def bytes(self) -> int:
        """Bytes that are to be copied."""
        return sum(one.size_bytes for one in self.files)


@dataclass(frozen=True, kw_only=True, slots=True)
class Backup:
    """A finished backup, as its manifest tells."""

    source: str
    made_at: datetime
    tables: tuple[BackedUp, ...]
    files: tuple[Copied, ...]

    def version_of(self, name: SystemTableName) -> int:
        """The version of a table that the backup holds."""
        return next(one.version for one in self.tables if one.table is name)

    def files_of(self, table: SystemTable[Any]) -> tuple[Copied, ...]:
        """The files of one table."""
        return tuple(one for one in self.files if one.path.startswith(f"{table.name}/"))


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupSource:
    """A backup to take files from."""

    location: str
    """Canonical."""
    options: StorageOptions
    backup: Backup
    """What its manifest says."""

    @property
    def said(self) -> str:
        """How rows that come back from it are marked."""
        return f"restored from the backup of {self.backup.made_at:%Y-%m-%d %H:%M} UTC"

    def store(self) -> FileStore:
        """All files of the backup."""
        return open_store(self.location, self.options)

    def check(self, files: Iterable[Copied]) -> None:
        """Raise `UnreadableError` unless the backup has all these files as its manifest says."""
        check_files(self.store(), files)


_BACKUP: Final = TypeAdapter(Backup)
_TABLES: Final = TypeAdapter(tuple[BackedUp, ...])


def open_backup(location: str, options: StorageOptions) -> BackupSource:
    """The backup at a canonical location. Raises `NotFoundError` where there is none, `UnreadableError`."""
    found = read_backup(location, options)
    if found is None:
        raise NotFoundError(
            f"There is no backup at {location}.",
            hint="Give the folder that `lakewarden system backup` wrote.",
        )
    return BackupSource(location=location, options=options, backup=found)


def plan_backup(store: SystemStore, destination: str, options: StorageOptions) -> BackupPlan:
    """Look what is to be copied to a canonical location. Raises `RefusedError` if something else lives there."""
    source = root_of(store)
    now = Moment()
    if now.place(destination).overlaps(now.place(source)):
        raise RefusedError("A backup cannot be inside its own source.", hint="Choose a folder elsewhere.")
    target = open_store(destination, options)
    before = read_backup(destination, options)
    snapshots = _one_moment(store)
    tables = tuple(
        BackedUp(table=table.name, version=snapshot.version, format_id=snapshot.format_id)
        for table, snapshot in snapshots
    )
    _refuse_other(target, before, tables)
    held = {one.path: one for one in before.files} if before is not None else {}
    wanted = [file for table, snapshot in snapshots for file in _wanted(store, table, snapshot)]
    known = {file.path: held[file.path] for file in wanted if _is_known(held, file, target)}
    return BackupPlan(
        source=source,
        destination=destination,
        tables=tables,
        files=tuple(file for file in wanted if file.path not in known),
        known=tuple(known.values()),
    )


def run_backup(store: SystemStore, plan: BackupPlan, options: StorageOptions, *, clock: Clock) -> Backup:
    """Copy what the plan names: data first, each log in order, the manifest last. May be killed and repeated.

    Raises `UnreadableError` if a file that a live version needs is gone at the source.
    """
    source = open_store(plan.source, store.storage())
    target = open_store(plan.destination, options)
    target.write(_STARTED, json.dumps([asdict(one) for one in plan.tables]).encode())
    copied: list[Copied] = []
    for file in data_first(plan.files):
        try:
            content = source.read(file.path)
        except FileNotFoundError:
            continue  # an old version's file that the audit window has just passed; checked below
        target.write(file.path, content)
        copied.append(Copied(path=file.path, size_bytes=len(content), digest=sha256(content).hexdigest()))
        reach("system.backup.file")
    backup = Backup(source=plan.source, made_at=clock.now(), tables=plan.tables, files=(*plan.known, *copied))
    for one in plan.tables:
        _check_complete(one, plan.destination, options, {file.path for file in backup.files})
    check_files(target, [file for file in backup.files if whole_version(file.in_table) is not None])
    reach("system.backup.manifest")
    manifest = json.loads(json.dumps(asdict(backup), default=datetime.isoformat))
    target.write(MANIFEST, json.dumps({**manifest, "seal": _seal(manifest)}, indent=1).encode())
    target.delete(_STARTED)
    return backup


def read_backup(location: str, options: StorageOptions) -> Backup | None:
    """The backup at a location, None if there is none. Raises `UnreadableError` for a manifest that cannot be read."""
    try:
        content = open_store(location, options).read(MANIFEST)
    except FileNotFoundError:
        return None
    try:
        manifest = json.loads(content)
        if manifest.pop("seal", None) not in (None, _seal(manifest)):
            raise ValueError("the seal is broken")
        return _BACKUP.validate_python(manifest)
    except (AttributeError, TypeError, ValueError) as error:
        raise UnreadableError(
            f"The manifest of the backup at {location} cannot be read.", hint="Use another backup."
        ) from error


def check_files(place: FileStore, files: Iterable[Copied]) -> None:
    """Check that a place holds these files as in its manifest. Raises `UnreadableError` for the first that differs."""
    for file in files:
        try:
            content = place.read(file.path)
        except FileNotFoundError:
            content = b""
        if len(content) != file.size_bytes or sha256(content).hexdigest() != file.digest:
            renewed = place.exists(_STARTED)
            raise UnreadableError(
                f"{file.path} of the backup at {place.root} is not what its manifest says.",
                hint="It was being renewed: run `lakewarden system backup` again, or use another."
                if renewed
                else "Use another backup.",
            )


def data_first(files: Iterable[Copied]) -> list[Copied]:
    """Files in the order in which they are copied: each log after the data that it names, its oldest entry first."""
    return sorted(files, key=lambda one: (one.in_table.startswith(FOLDER), one.path))


def _seal(manifest: Mapping[str, Any]) -> str:
    """A digest of everything else that a manifest says."""
    return sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _one_moment(store: SystemStore) -> list[tuple[SystemTable[Any], Snapshot]]:
    """Versions that all were the head at one and the same moment.

    Two readings with the same result: between the end of the first and the start of the second nothing changed (the
    "double collect" of Afek et al., Atomic Snapshots of Shared Memory, 1993). Raises `ConflictError` if the store
    does not hold still.
    """
    before: list[int] = []
    for _ in range(_ATTEMPTS):
        found = [(table, opened(store, table)[1]) for table in SYSTEM_TABLES]
        versions = [snapshot.version for _, snapshot in found]
        if versions == before:
            return found
        before = versions
    raise ConflictError(
        "The system tables are being changed all the time.",
        hint="`lakewarden pause`, back up, `lakewarden resume`.",
    )


def _wanted(store: SystemStore, table: SystemTable[Any], snapshot: Snapshot) -> Iterator[Copied]:
    files = files_of(store, table)
    for file in copied_of(table, files, snapshot.version):
        digest = None
        if whole_version(file.in_table) is not None:
            try:
                digest = sha256(files.read(file.in_table)).hexdigest()
            except FileNotFoundError:
                continue  # cleaned up just now
        yield replace(file, digest=digest)


def copied_of(table: SystemTable[Any], files: FileStore, version: int) -> Iterator[Copied]:
    """Data files, and log files up to the version. `_last_checkpoint` is a hint that may point further: left out."""
    for entry in files.list("", recursive=True):
        number = whole_version(entry.path)
        wanted = entry.path.startswith(f"{BUCKET}=") if number is None else number <= version
        if wanted and not entry.is_dir:
            yield Copied(path=f"{table.name}/{entry.path}", size_bytes=entry.size_bytes)


def _is_known(held: Mapping[str, Copied], file: Copied, target: FileStore) -> bool:
    """Whether an earlier backup has the very file, and still has it."""
    before = held.get(file.path)
    if before is None or before.size_bytes != file.size_bytes:
        return False
    try:
        if file.digest is None:
            return target.stat(file.path).size_bytes == file.size_bytes
        return before.digest == file.digest == sha256(target.read(file.path)).hexdigest()
    except FileNotFoundError:
        return False


def _refuse_other(target: FileStore, before: Backup | None, tables: tuple[BackedUp, ...]) -> None:
    if before is not None:
        older = before.tables
    elif target.exists(
        _STARTED
    ):  # killed before it was finished: going on is right if it was one of this store
        older = _TABLES.validate_json(target.read(_STARTED))
    elif any(target.exists(f"{one.table}/{FOLDER}") for one in tables):
        raise RefusedError(
            f"{target.root} holds tables that are not a backup.", hint="Choose an empty folder."
        )
    else:
        return
    for old, new in zip(older, tables, strict=True):
        if old.format_id != new.format_id or old.version > new.version:
            raise RefusedError(
                f"{target.root} holds a backup of another or a newer lakewarden.{old.table}.",
                hint="Choose an empty folder.",
            )


def _check_complete(one: BackedUp, destination: str, options: StorageOptions, copied: set[str]) -> None:
    try:
        handle = open_at(f"{destination}/{one.table}", options, name=one.table)
        snapshot = take_snapshot(handle, one.table)
    except NotFoundError as error:
        raise UnreadableError(f"The copy of lakewarden.{one.table} has no log.") from error
    missing = [piece.path for piece in snapshot.pieces if f"{one.table}/{piece.path}" not in copied]
    if snapshot.version != one.version or missing:
        raise UnreadableError(
            f"The copy of lakewarden.{one.table} is not complete.",
            hint="`lakewarden system verify` tells what the source lacks; "
            "the older backup was left as it was.",
        )


def root_of(store: SystemStore) -> str:
    """The folder in which the tables of a store lie."""
    return store.location(SYSTEM_TABLES[0]).removesuffix(f"/{SYSTEM_TABLES[0].name}")
