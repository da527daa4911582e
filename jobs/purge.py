"""Delete a dropped table's files, after its grace period: only the version that was agreed to, and only that table."""

from collections.abc import Iterable
from typing import Final

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.names import FOLDER
from lakewarden.catalog.storage import FileStore, open_store
from lakewarden.catalog.units import about_bytes, count_of
from lakewarden.jobs.actions import Purge
from lakewarden.jobs.base import JobContext, Report
from lakewarden.jobs.observed import observe_at

__all__ = ["MARKER", "deletion_order", "purge"]

MARKER: Final = "_lakewarden_purging"
"""A file in the table's folder, with the `table_id` in it: the deletion has begun, and the log may be gone in parts."""


def purge(ctx: JobContext, action: Purge) -> Report:
    """Delete the whole folder. Killed anywhere, the next attempt goes on by the marker.

    Raises `ConflictError` if the table was written to after its dry run, `RefusedError` if another table lies in it or
    something that is not the table has taken its place.
    """
    store = open_store(ctx.target.location, ctx.storage)
    if not store.exists(""):
        return Report(message="its folder is gone already")
    if not _is_marked(store, ctx.target.table_id):
        _check(ctx, action, store)
        store.write(MARKER, ctx.target.table_id.encode())
        reach("purge.marked")
    ctx.still_ours()
    deleted = ctx.engine.delete_table(ctx.target.location)
    reach("purge.deleted")
    return Report(
        message=f"deleted {count_of(deleted.files_removed, 'file')} ({about_bytes(deleted.bytes_removed)})",
        files=deleted.files_removed,
        bytes=deleted.bytes_removed,
    )


def _check(ctx: JobContext, action: Purge, store: FileStore) -> None:
    if not ctx.reader.is_table(ctx.target.location):
        raise RefusedError(
            f"{ctx.target.location} is no longer the table {ctx.target.name}.",
            hint="Look what is there; lakewarden deletes only what it was asked to.",
        )
    observe_at(ctx, action.requires, action.decided_on)
    inner = sorted(
        entry.path.removesuffix(f"/{FOLDER}")
        for entry in store.list("", recursive=True)
        if entry.is_dir and entry.path.endswith(f"/{FOLDER}")
    )
    if inner:
        raise RefusedError(
            f"Another table lies inside {ctx.target.name}: {inner[0]}.",
            hint="Move it away, then purge again.",
        )


def _is_marked(store: FileStore, table_id: str) -> bool:
    return store.exists(MARKER) and store.read(MARKER).decode(errors="replace") == table_id


def deletion_order(names: Iterable[str]) -> list[str]:
    """The entries of a table's folder in the order in which engines delete them: data, then the log, then what else is
    hidden, of which the marker is one. So a deletion that was killed is known as ours until nothing is left."""
    return sorted(names, key=lambda name: (1 if name == FOLDER else 2 if name.startswith("_") else 0, name))
