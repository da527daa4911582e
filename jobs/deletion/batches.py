"""Deleting files in bounded batches, each allowed anew: the only way in which a run takes away files of a table.

Before a batch everything that allows the run is asked again, and the caller says what of the batch may still go. He may
ask catalogs and storages for that, which may take long; so it is asked once more after it, right before the first file.
Within a batch this process' clock is asked before every file whether the claim still lasts: a process that was frozen
deletes nothing when it wakes. And a file goes only while it is the one that was decided on: what came to its path since
stays.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.logs import get_log
from lakewarden.catalog.storage.file_store import FileEntry, FileStore, local_path
from lakewarden.catalog.storage.hadoop_crc import companion_of
from lakewarden.jobs.runs.port import JobContext

__all__ = ["BATCH", "Deleted", "delete_files"]

BATCH: Final = 500
"""Files between two askings. A thousandth of a second each on a slow disk: half a second of work."""
_AT_ONCE: Final = 8
"""Requests to a remote storage under way at the same time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deleted:
    """How many files and bytes went."""

    files: int = 0
    bytes: int = 0
    spared: int = 0
    """Files that were to go and were needed again when their batch came, or were others by then."""


def delete_files(
    ctx: JobContext,
    store: FileStore,
    files: Sequence[FileEntry],
    still_unneeded: Callable[[Sequence[FileEntry]], Sequence[FileEntry]],
    *,
    on_allowed: Callable[[], None] = lambda: None,
    on_batch: Callable[[], None],
    on_another: Callable[[FileEntry], None] = lambda entry: None,
) -> Deleted:
    """Delete `files`, in order; those that `still_unneeded` leaves out of a batch stay.

    So does a file that is not the one of its listing any more, by size and time: `on_another` is told of it, and may
    raise. `on_allowed` is called before the first file of each batch, and may raise; `on_batch` after the last one.
    Raises `RevokedError` or `ConflictError` between two batches, or files, once the run may not go on; what went is
    gone, the rest stays.
    """
    done = Deleted()
    for start in range(0, len(files), BATCH):
        batch = files[start : start + BATCH]
        ctx.require_allowed()
        unneeded = still_unneeded(batch)
        ctx.require_allowed()  # people got their answers while that was asked
        on_allowed()
        going = _delete(ctx, store, unneeded, on_another)
        on_batch()
        get_log("worker").info(
            "files deleted", files=len(going), spared=len(batch) - len(going), of=len(files)
        )
        done = Deleted(
            files=done.files + len(going),
            bytes=done.bytes + sum(entry.size_bytes for entry in going),
            spared=done.spared + len(batch) - len(going),
        )
    return done


def _delete(
    ctx: JobContext,
    store: FileStore,
    files: Sequence[FileEntry],
    on_another: Callable[[FileEntry], None],
) -> Sequence[FileEntry]:
    """Delete each that still is what it was; those that went."""

    def is_deleted(entry: FileEntry) -> bool:
        ctx.still_ours()
        if store.delete_listed(entry):
            return True
        on_another(entry)
        return False

    def is_deleted_locally(entry: FileEntry) -> bool:
        deleted = is_deleted(entry)
        if deleted:
            store.delete(companion_of(entry.path))
        return deleted

    if local_path(store.root) is not None:
        return [entry for entry in files if is_deleted_locally(entry)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        done = list(pool.map(is_deleted, files))
    return [entry for entry, deleted in zip(files, done, strict=True) if deleted]
