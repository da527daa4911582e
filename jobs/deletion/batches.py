"""Deleting files in bounded batches, each allowed anew: the only way in which a run takes away files of a table.

Before a batch everything that allows the run is asked again, and the caller says what of the batch may still go. Within
a batch this process' clock is asked before every file whether the claim still lasts: a process that was frozen deletes
nothing when it wakes.
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
    """Files that were to go and were needed again when their batch came."""


def delete_files(
    ctx: JobContext,
    store: FileStore,
    files: Sequence[FileEntry],
    still_unneeded: Callable[[Sequence[FileEntry]], Sequence[FileEntry]],
    *,
    on_batch: Callable[[], None],
) -> Deleted:
    """Delete `files`, in order; those that `still_unneeded` leaves out of a batch stay.

    `on_batch` is called after each batch. Raises `RevokedError` or `ConflictError` between two batches, or files, once
    the run may not go on; what went is gone, the rest stays.
    """
    done = Deleted()
    for start in range(0, len(files), BATCH):
        batch = files[start : start + BATCH]
        ctx.require_allowed()
        going = still_unneeded(batch)
        _delete(ctx, store, going)
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


def _delete(ctx: JobContext, store: FileStore, files: Sequence[FileEntry]) -> None:
    def delete(entry: FileEntry) -> None:
        ctx.still_ours()
        store.delete(entry.path)

    def delete_local(entry: FileEntry) -> None:
        delete(entry)
        store.delete(companion_of(entry.path))

    if local_path(store.root) is not None:
        for entry in files:
            delete_local(entry)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(delete, files):
            pass
