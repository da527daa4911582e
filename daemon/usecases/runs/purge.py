"""What a purge would delete, whether it may take files along that the log does not name, and its beginning."""

from collections.abc import Callable
from typing import Any

from lakewarden.catalog.errors import ConsentError, LakewardenError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import DELTA, Action, TableRow, TableState
from lakewarden.catalog.policy.access import Actor
from lakewarden.catalog.registry.other_installations import token_of
from lakewarden.catalog.registry.removal import begin_purge, check_drop, stop_purge, undrop
from lakewarden.catalog.storage.file_store import open_store
from lakewarden.catalog.units import count_of
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.lineage.last_commits import record_lineage
from lakewarden.jobs.deletion.going_table import refuse_names, refuse_needed
from lakewarden.jobs.deletion.table_folder import TableFolder, inner_table, look_into, unknown_token
from lakewarden.jobs.deletion.unneeded import refuse_shared
from lakewarden.jobs.engines.registry import require_engine
from lakewarden.jobs.runs.host_clock import HostClock

__all__ = [
    "foresee_purge",
    "give_name_back",
    "purge_table",
    "require_consent",
    "stop_deletion",
    "undrop_table",
]

_SHOWN = 10


def foresee_purge(services: Services, row: TableRow) -> dict[str, Any]:
    """The head, what it holds, its branches and tags, and what else lies in the folder: `all_files` would go, the log's
    among them; `unknown_files` are in no log, `unknown_token` names exactly those in a consent, `inner_tables` stand in
    the way; `other_installations` manage or hold the table, and `other_installations_token` names them. Sizes in bytes.
    Raises like `require_engine`, and `RefusedError` for what no consent helps against."""
    require_engine(row.format or DELTA, Action.PURGE)
    location = row.location or ""
    reader = services.registry.reader_at(location, row.name)
    seen = reader.observe(location)
    _refuse(services, row, seen)
    folder = _look(services, row)
    files, references = (*folder.data, *folder.log, *folder.unknown), reader.references(location)
    others = services.others.of(row.name, location, seen)
    counts = {key: getattr(seen, key, None) for key in ("version", "files", "bytes", "tombstones")}
    return {
        "name": row.name,
        "location": location,
        **counts,
        **({"references": references} if references else {}),
        "all_files": len(files),
        "all_bytes": sum(entry.size_bytes for entry in files),
        "unknown_files": len(folder.unknown),
        "unknown_bytes": sum(entry.size_bytes for entry in folder.unknown),
        "unknown_shown": [entry.path for entry in folder.unknown[:_SHOWN]],
        "unknown_token": unknown_token(folder.unknown),
        "inner_tables": list(folder.inner),
        "other_installations": [f"{one.installation} {one.said}" for one in others],
        "other_installations_token": token_of(others),
    }


def purge_table(
    services: Services,
    row: TableRow,
    version: int,
    *,
    token: str | None,
    others: str | None = None,
    actor: Actor,
) -> TableRow:
    """Drop a table whose files go after the grace period; `version`, `token` and `others` are what the dry run showed.
    Raises like `require_consent` and `begin_purge`, `PreconditionError` where this host's clock is wrong."""
    require_consent(services, row, token, others=others, actor=actor)
    clock, database = (
        services.clock,
        services.leases.now,
    )  # the grace is counted from now, and ends by a worker's clock
    HostClock(own=clock, database=database, host="this host").require_agreeing()
    record_lineage(services, row, actor=actor)
    return begin_purge(
        services.registry,
        row.table_id,
        actor=actor,
        expected_version=version,
        grace=services.settings.purge_grace,
        unknown=token,
        others=others,
    )


def stop_deletion(
    services: Services, row: TableRow, *, actor: Actor, tell: Callable[[str], None]
) -> TableRow:
    """`stop_purge`, and the entry that a run took away in a catalog gets its name back. `tell` hears of one that
    cannot: the deletion is stopped all the same."""
    stopped = stop_purge(services.registry, row.table_id, actor=actor)
    services.heads.forget()
    if stopped.state is not TableState.PURGED:
        give_name_back(services, stopped, tell=tell)
        return stopped
    try:
        services.entries.remove(stopped.location or "", stopped.table_id)
    except LakewardenError as error:
        tell(f"The entry that a catalog had of {row.name} is still there, by a name of ours: {error}")
    return stopped


def undrop_table(services: Services, where: str, *, actor: Actor, tell: Callable[[str], None]) -> TableRow:
    """`undrop`, of a table that has its name in its catalog again. `tell` hears of a name that cannot be given back."""
    give_name_back(services, services.registry.resolve(where, gone=True), tell=tell)
    row = undrop(services.registry, where, actor=actor)
    give_name_back(services, row, tell=tell)  # a worker may have come to it meanwhile
    return row


def give_name_back(services: Services, row: TableRow, *, tell: Callable[[str], None]) -> None:
    """An entry that was taken away for a deletion that is stopped, whenever that was, gets its name back. `tell` hears
    why it cannot."""
    try:
        services.entries.give_back(row)
    except LakewardenError as error:
        tell(f"The entry that a catalog has of {row.name} may still be called by a name of ours: {error}")


def require_consent(
    services: Services, row: TableRow, token: str | None, *, others: str | None = None, actor: Actor
) -> None:
    """Raise `ConsentError` unless `token` names exactly the unknown files (None if there are none) and `others` exactly
    the other installations that manage or hold the table, `RefusedError` if another table lies in the folder; before
    that, what no consent helps against."""
    require_engine(row.format or DELTA, Action.PURGE)
    check_drop(services.registry, row, actor=actor, purge=True)
    location = row.location or ""
    _refuse(services, row, services.registry.reader_at(location, row.name).observe(location))
    _require_consent_to_others(services, row, others)
    folder = _look(services, row)
    if folder.inner:
        raise inner_table(row.name, folder.inner[0])
    unknown = folder.unknown
    found = unknown_token(unknown)
    if found == token:
        return
    if found is None:
        raise ConsentError(
            f"There are no unknown files in the folder of {row.name} any more.",
            hint="Repeat the command without --unknown-files.",
        )
    were = "" if token is None else ", and they are not those of the dry run"
    raise ConsentError(
        f"{count_of(len(unknown), 'file')} in the folder of {row.name} "
        f"{'is' if len(unknown) == 1 else 'are'} in no log{were}: {unknown[0].path}.",
        hint="Look at them with `--purge --dry-run`; then move them away, "
        "or add the --unknown-files TOKEN that it shows.",
    )


def _require_consent_to_others(services: Services, row: TableRow, agreed: str | None) -> None:
    location = row.location or ""
    seen = services.registry.reader_at(location, row.name).observe(location)
    found = services.others.of(row.name, location, seen)
    if token_of(found) == agreed:
        return
    if not found:
        raise ConsentError(
            f"No other installation manages or holds {row.name} any more.",
            hint="Repeat the command without --other-installations.",
        )
    told = "; ".join(f"{one.installation} {one.said}" for one in found)
    raise ConsentError(
        f"Another installation of lakewarden has to do with {row.name}: {told}.",
        hint="Let the table leave there first (`lakewarden tables drop`), or agree to delete it all the same: "
        f"--other-installations {token_of(found)}.",
    )


def _refuse(services: Services, row: TableRow, seen: Observation | LogProblem) -> None:
    """What no consent helps against: others may need files of the table, or call it by another name."""
    refuse_names(services.entries, row.format, row.location or "", row.table_id, row.name)
    refuse_needed(row.name, seen)
    if isinstance(seen, Observation):
        location = row.location or ""
        refuse_shared(row.name, open_store(location, services.storage(location)), seen)


def _look(services: Services, row: TableRow) -> TableFolder:
    location = row.location or ""
    reader = services.registry.reader_at(location, row.name)
    return look_into(open_store(location, services.storage(location)), row.format, reader)
