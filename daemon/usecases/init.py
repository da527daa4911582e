"""`init`: the system tables, row 0 first, and their entries in the metastore where there is one."""

from contextlib import suppress
from dataclasses import dataclass

from lakewarden.catalog.errors import NotFoundError, PreconditionError, UnavailableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.private_files import private_folder
from lakewarden.catalog.storage.file_store import open_store
from lakewarden.catalog.system.handles import has_log
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import SYSTEM_TABLES
from lakewarden.catalog.system.recovery.set_aside import note_beginning
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.system_entries import enlist_system_tables, refuse_entries_of_others

__all__ = ["Initialised", "initialise"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Initialised:
    """Whether the tables were made now, and what there is to say about the metastore (None: it knows them)."""

    created: bool
    metastore_note: str | None


def initialise(services: Services, admin: str, *, take_over: bool = False) -> Initialised:
    """Create the system tables if absent, with their first admin, and enlist them in the metastore.
    Interrupted, it is simply run again.

    Raises `RefusedError`, having made nothing, where another installation has its system tables in the metastore under
    these names; `take_over` makes the entries ours."""
    if not take_over:
        with suppress(UnavailableError):  # which is said after the work
            refuse_entries_of_others(services)
    created = not services.store.exists()
    if created:
        _refuse_lost(services)
        _note_beginnings(services)
    private_folder(services.settings.home)
    services.store.create(system_rows(services.store, now=services.clock.now(), actor=admin))
    reach("init.created")
    if created:
        with suppress(UnavailableError):  # else whoever asks it next says that these are others
            services.history.accept()
    return Initialised(created=created, metastore_note=_enlist(services, take_over=take_over))


def _refuse_lost(services: Services) -> None:
    """Nobody gets an empty `lakewarden.tables` in place of one that was lost."""
    for table in SYSTEM_TABLES[1:]:
        try:
            used = services.store.rows(table).version > 0
        except NotFoundError:
            continue
        if used:
            raise PreconditionError(
                f"lakewarden.tables is gone, while lakewarden.{table.name} has a history: "
                "it was lost, not never made.",
                hint="`lakewarden system repair --backup FOLDER` brings it back from a backup.",
            )


def _note_beginnings(services: Services) -> None:
    """Nobody can tell whether there were others here: single files of theirs must not be mixed in from a backup."""
    for table in SYSTEM_TABLES:
        files = open_store(services.store.location(table), services.store.storage())
        if not has_log(files):
            note_beginning(files, services.clock.now())


def _enlist(services: Services, *, take_over: bool) -> str | None:
    try:
        enlist_system_tables(services, take_over=take_over)
    except UnavailableError as error:
        return (
            f"{error} Run `lakewarden init` again once it answers: "
            "Spark reads the system tables by name then."
        )
    return None
