"""Delete a dropped table's files, after its grace period: only the head that was agreed to, and only that table."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from lakewarden.catalog.errors import (
    ConflictError,
    LakewardenError,
    PreconditionError,
    RefusedError,
    UnavailableError,
)
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.model.pending_purge import MARKER, how_to_stop
from lakewarden.catalog.registry.other_installations import token_of
from lakewarden.catalog.registry.purge_mark import Begun
from lakewarden.catalog.storage.file_store import FileEntry, FileStore, open_store
from lakewarden.catalog.storage.place import Moment, Presence
from lakewarden.catalog.units import about_bytes, count_of
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.deletion.batches import Deleted, delete_files
from lakewarden.jobs.deletion.file_places import FilePlaces
from lakewarden.jobs.deletion.folder_readers import FolderReaders
from lakewarden.jobs.deletion.going_table import GoingEntry, refuse_needed
from lakewarden.jobs.deletion.table_folder import (
    TableFolder,
    inner_table,
    look_into,
    signature,
    unknown_token,
)
from lakewarden.jobs.deletion.unneeded import inner_tables_at, refuse_outer, refuse_shared
from lakewarden.jobs.runs.head import observe_at
from lakewarden.jobs.runs.port import JobContext, Report

__all__ = ["purge"]


_CAME_LATER: Final = "its files are deleted; what lies in its folder came later and stays"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Going:
    """One attempt."""

    ctx: JobContext
    action: Purge
    store: FileStore
    readers: FolderReaders
    entry: GoingEntry


def purge(ctx: JobContext, action: Purge) -> Report:
    """Delete the whole folder: data, then the log, then the marker that says whose deletion has begun.

    Killed anywhere, the next attempt goes on by the marker and by the table's row, which knows when nothing
    is left. Raises `ConflictError` if the table was written to or made anew after its dry run, `RefusedError`
    if another table, or files that nobody agreed to delete, lie in it or are read from it.
    """
    with ExitStack() as stack:
        return _purged(ctx, action, GoingEntry(ctx=ctx, file=action.head_file, stack=stack))


def _purged(ctx: JobContext, action: Purge, entry: GoingEntry) -> Report:
    store = open_store(ctx.target.location, ctx.storage)
    if ctx.ledger is not None and ctx.ledger.is_deleted(ctx.target.table_id):
        return _tidied(ctx, store, entry)
    match Moment().place(ctx.target.location).presence(ctx.storage, _is_folder(ctx)):
        case Presence.GONE:
            ctx.require_allowed()
            entry.remove()
            return Report(message="its folder is gone already")
        case Presence.UNKNOWN:
            raise UnavailableError(
                f"The folder of {ctx.target.name} cannot be seen, and neither can anything beside it.",
                hint="If its disk or mount is away, bring it back; if the folder is gone, "
                "nothing has to be done.",
            )
    begun = Begun.at(store, ctx.target.table_id)
    if begun is not None and _is_succeeded(ctx, store, begun):
        return _tidied(ctx, store, entry)
    going = _Going(ctx=ctx, action=action, store=store, readers=FolderReaders(ctx=ctx), entry=entry)
    try:
        entry.follow()
        folder = _agreed_folder(going, None) if begun is None else _rest_of(going, begun)
    except (PreconditionError, RefusedError) as error:
        _give_up(going, error)
        error.hint = f"{error.hint} {how_to_stop(ctx.target.table_id)}".strip()
        raise
    is_first = begun is None
    if begun is None:
        log, unknown = (frozenset(map(signature, files)) for files in (folder.log, folder.unknown))
        begun = Begun(table_id=ctx.target.table_id, log=log, unknown=unknown)
        begun.put(store)
        reach("purge.marked")
    try:
        ctx.require_allowed()
        entry.take()
        if is_first:
            observe_at(ctx, action.requires)  # a table without data has no batch before that of its log
        deleted = _delete(going, folder, begun)
    except LakewardenError as error:
        _give_up(going, error)
        raise
    return Report(
        message=f"deleted {count_of(deleted.files, 'file')} ({about_bytes(deleted.bytes)})",
        files=deleted.files,
        bytes=deleted.bytes,
    )


def _is_folder(ctx: JobContext) -> Callable[[str], bool]:
    return lambda location: open_store(location, ctx.storage).exists("")


def _is_succeeded(ctx: JobContext, store: FileStore, begun: Begun) -> bool:
    """Whether nothing of the table is left and something else lies there: its data was all deleted before its
    log, and of that log no entry is there any more."""
    folder = look_into(store, ctx.target.format, None)
    left = begun.log.intersection(signature(entry) for entry in folder.log)
    return begun.data_deleted and not left and bool(folder.log or folder.unknown)


def _tidied(ctx: JobContext, store: FileStore, entry: GoingEntry) -> Report:
    """Nothing of the table is left to delete: only the marker goes, and the folders if there is no file in them."""
    ctx.require_allowed()
    if ctx.ledger is not None:
        ctx.ledger.note_deleted(ctx.target.table_id)
    entry.remove()
    if not store.exists(""):
        return Report(message="its folder is gone already")
    if Begun.at(store, ctx.target.table_id) is not None:
        store.delete(MARKER)
    folder = look_into(store, ctx.target.format, None)
    if folder.log or folder.unknown:
        return Report(message=_CAME_LATER)
    ctx.engine.delete_empty_folders(ctx.target.location, (*folder.folders, ""))
    return Report(message="its files are deleted")


def _agreed_folder(going: _Going, begun: Begun | None) -> TableFolder:
    ctx, action, store = going.ctx, going.action, going.store
    if not ctx.reader.is_table(ctx.target.location):
        raise RefusedError(
            f"{ctx.target.location} is no longer the table {ctx.target.name}.",
            hint="Look at what is there; lakewarden deletes only what it was asked to.",
        )
    seen = observe_at(ctx, action.requires)
    refuse_needed(ctx.target.name, seen)
    _refuse_others(ctx, action, seen)
    refuse_outer(ctx)
    refuse_shared(ctx.target.name, store, seen)
    _refuse_readers(ctx, going.readers)
    folder = look_into(store, ctx.target.format, ctx.reader)
    _refuse_inner(ctx, folder.inner)
    found = unknown_token(folder.unknown)
    agreed = frozenset[str]() if begun is None else begun.unknown
    if found not in (None, action.unknown) and not agreed.issuperset(map(signature, folder.unknown)):
        raise RefusedError(
            f"{count_of(len(folder.unknown), 'file')} in the folder of {ctx.target.name} are not in its log, "
            f"and nobody agreed to delete them: {folder.unknown[0].path}.",
            hint="Move them away, or undrop it and look again: "
            f"`lakewarden tables drop {ctx.target.name} --purge --dry-run`.",
        )
    return folder


def _rest_of(going: _Going, begun: Begun) -> TableFolder:
    """What a deletion that was interrupted left. The log goes last,
    so without it there is no data of the table any more."""
    ctx = going.ctx
    folder = look_into(going.store, ctx.target.format, None)
    whole = frozenset(signature(entry) for entry in folder.log) >= begun.log
    if whole and ctx.reader.is_table(ctx.target.location):
        return _agreed_folder(going, begun)
    _refuse_inner(ctx, folder.inner)
    _refuse_later(ctx, [one for one in folder.log if signature(one) not in begun.log] or folder.unknown)
    return folder


def _refuse_later(ctx: JobContext, later: Sequence[FileEntry]) -> None:
    """What somebody wrote into the folder since its deletion began is nobody's to delete, nor is what tells of it."""
    if later:
        raise RefusedError(
            f"{later[0].path} came into the folder of {ctx.target.name} while it was deleted; the rest stays.",
            hint="Move it away.",
        )


def _delete(going: _Going, folder: TableFolder, begun: Begun) -> Deleted:
    ctx, store, entry = going.ctx, going.store, going.entry
    data = (*folder.data, *folder.unknown)
    is_log_whole = begun.log.issubset(map(signature, folder.log))

    def start() -> None:
        mark = _mark(ctx, store)
        if not mark.started:
            replace(mark, started=True).put(store)

    def same_head() -> None:
        seen = observe_at(ctx, going.action.requires)
        refuse_needed(ctx.target.name, seen)
        refuse_shared(ctx.target.name, store, seen)

    def same_table(batch: Sequence[FileEntry]) -> Sequence[FileEntry]:
        _mark(ctx, store)
        entry.refuse_names(kept=False)  # what takes long first
        _refuse_readers(ctx, going.readers)
        refuse_outer(ctx)
        _refuse_inner(ctx, inner_tables_at(store, (one.path for one in batch)))
        _refuse_links(ctx, batch)
        same_head()
        return batch

    def same_log(batch: Sequence[FileEntry]) -> Sequence[FileEntry]:
        _mark(ctx, store)
        entry.refuse_names(kept=False)
        _refuse_links(ctx, batch)
        log = look_into(store, ctx.target.format, None).log
        _refuse_later(ctx, [one for one in log if signature(one) not in begun.log])
        if is_log_whole and batch[0] == folder.log[0]:
            same_head()  # for the last time: from now on the log tells nothing any more
        return batch

    delete = partial(
        delete_files, ctx, store, on_allowed=start, on_another=partial(_refuse_another, ctx, folder)
    )
    first = delete(data, same_table, on_batch=lambda: reach("purge.batch"))
    ctx.require_allowed()
    replace(_mark(ctx, store), data_deleted=True).put(store)
    reach("purge.data_deleted")
    second = delete(folder.log, same_log, on_batch=lambda: reach("purge.log_batch"))
    ctx.require_allowed()
    if ctx.ledger is not None:
        ctx.ledger.note_deleted(ctx.target.table_id)
    reach("purge.log_deleted")
    entry.remove()
    store.delete(MARKER)
    reach("purge.unmarked")
    ctx.engine.delete_empty_folders(ctx.target.location, (*folder.folders, ""))
    reach("purge.deleted")
    return Deleted(files=first.files + second.files, bytes=first.bytes + second.bytes)


def _refuse_another(ctx: JobContext, folder: TableFolder, one: FileEntry) -> None:
    if one in folder.unknown:
        raise RefusedError(
            f"{one.path} in the folder of {ctx.target.name} was written to since it was looked at, and nobody "
            "agreed to delete it as it is now; the rest stays.",
            hint=f"Move it away. {how_to_stop(ctx.target.table_id)}",
        )
    raise ConflictError(
        f"{one.path} in the folder of {ctx.target.name} is another file by now; it and the rest stay."
    )


def _mark(ctx: JobContext, store: FileStore) -> Begun:
    """Our mark. A folder that was removed and made anew has lost it."""
    mark = Begun.at(store, ctx.target.table_id)
    if mark is None:
        raise ConflictError(
            f"The mark of the deletion of {ctx.target.name} is gone from its folder: it was made anew meanwhile, "
            "or somebody stopped the deletion. What is there stays."
        )
    return mark


def _refuse_others(ctx: JobContext, action: Purge, seen: Observation) -> None:
    """Nobody agreed to delete what another installation has come to manage since."""
    others = () if ctx.others is None else ctx.others.of(ctx.target.name, ctx.target.location, seen)
    if not set((token_of(others) or "").split(",")) <= {"", *(action.others or "").split(",")}:
        raise RefusedError(
            f"Another installation of lakewarden ({others[0].installation}) {others[0].said}, and nobody agreed to "
            f"delete {ctx.target.name} in spite of that.",
            hint="Let it leave there first, or undrop it and look again: "
            f"`lakewarden tables drop {ctx.target.name} --purge --dry-run`.",
        )


def _refuse_readers(ctx: JobContext, readers: FolderReaders) -> None:
    """Tables that have files under the same parent may be known as readers and name nothing in this folder."""
    places = FilePlaces(ctx.target.location)
    for row in readers.now():
        if any(places.inside(place) for place in readers.places_named(row)):
            raise RefusedError(
                f"{row.name} reads files of {ctx.target.name}: it is a shallow clone of it.",
                hint=f"Purge {row.name} first, or replace it by a copy in full.",
            )


def _refuse_links(ctx: JobContext, batch: Sequence[FileEntry]) -> None:
    """A folder that became a link since it was listed leads to somebody else's files."""
    places = FilePlaces(ctx.target.location)
    folders = {entry.path.rpartition("/")[0] for entry in batch} - {""}
    led = sorted(folder for folder in folders if not places.is_own(folder))
    if led:
        raise ConflictError(
            f"{led[0]} in the folder of {ctx.target.name} became a link meanwhile; the rest stays."
        )


def _refuse_inner(ctx: JobContext, inner: Sequence[str]) -> None:
    if inner:
        raise inner_table(ctx.target.name, inner[0])


def _give_up(going: _Going, error: LakewardenError) -> None:
    """What an attempt leaves behind. Where its owner has stopped the deletion, who looked for the entry maybe before it
    was taken away, the entry gets its name back: nobody else comes to it. Else whoever lost his claim leaves all to
    whoever has it now, and who got no answer to the next attempt; a deletion that was forbidden before its first file
    has not begun."""
    ctx, store = going.ctx, going.store
    if not _is_awaited(ctx):
        going.entry.put_back(for_good=True)
        if Begun.at(store, ctx.target.table_id) is not None:
            store.delete(MARKER)
    elif isinstance(error, (PreconditionError, RefusedError)) and _is_ours(ctx):
        begun = Begun.at(store, ctx.target.table_id)
        if begun is None:
            going.entry.put_back()
        elif not begun.started and going.entry.put_back():
            store.delete(MARKER)


def _is_awaited(ctx: JobContext) -> bool:
    """Whether the table is to be purged still; it is, while nobody can tell."""
    try:
        return ctx.ledger is None or ctx.ledger.awaits_purge(ctx.target.table_id)
    except LakewardenError:
        return True


def _is_ours(ctx: JobContext) -> bool:
    try:
        ctx.still_ours()
        if ctx.guard is not None:
            ctx.guard.confirm()
    except ConflictError:
        return False
    return True
