"""Known holes, opened again: each takes one fix out of the product at a named seam,
so that the adversary has to find it.

A seam is `module:name` or `module:Class.name`. One that is renamed breaks `opened`, and a test, rather than
silently opening nothing.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

__all__ = ["HOLES", "Hole", "opened", "owner_of"]


@dataclass(frozen=True, kw_only=True)
class Hole:
    """A fix to be taken out: `seams`, each with what stands there instead. `shows` is part of what the
    finding says, `themes` are those in which it is looked for."""

    name: str
    words: str
    seams: tuple[tuple[str, Callable[..., Any]], ...]
    themes: tuple[str, ...]
    shows: str = ""


def _nothing(*arguments: Any, **named: Any) -> None:
    return None


def _none(*arguments: Any, **named: Any) -> tuple[Any, ...]:
    return ()


def _all_of_it(self: Any, batch: Any) -> tuple[Any, ...]:
    return tuple(batch)


def _as_spelled(self: Any, path: str) -> str:
    return path if path.startswith("/") else f"{self._root}/{path}"


def _whatever_differs(_: Any, properties: Any, wanted: Any, *, lowers: Any) -> tuple[Any, ...]:
    return tuple((name, value) for name, value in wanted if properties.get(name) != value)


def _followed(row: Any, location: str, *, told: bool) -> Any:
    return replace(row, location=location, aliases=(*row.aliases, row.location))


def _as_renamed(rows: Any, before: Any, name: str) -> Any:
    return replace(before, name=name, aliases=(*before.aliases, before.name))


def _sound(log: Any, listing: Any, checkpoint: Any) -> Any:
    return SimpleNamespace(usable=True, problem=None)


def _just_dropped(row: Any, owed: Any, now: Any) -> Any:
    return replace(row, state="dropped", state_reason="dropped from management")


def _at_head(place: Any, version: int) -> Any:
    return importlib.import_module("deltalake").DeltaTable(place.location)


HOLES: Final = (
    Hole(
        name="1.1",
        words="undrop, hold, pause and policy do not stop what was queued before",
        seams=(
            ("lakewarden.jobs.runs.guard:refusal", _nothing),
            ("lakewarden.daemon.cli.commands.tables:take_back_runs", _nothing),
            ("lakewarden.daemon.cli.commands.governance:take_back_runs", _nothing),
            ("lakewarden.daemon.cli.commands.pause:take_back_runs", _nothing),
        ),
        themes=("cleaning", "leaving"),
    ),
    Hole(
        name="1.2",
        words="a table made anew at the place, at the same version, is taken for the one that was dropped",
        seams=(
            ("lakewarden.jobs.runs.head:require_at", _nothing),
            ("lakewarden.jobs.executors.purge:unknown_token", _nothing),
        ),
        themes=("leaving",),
    ),
    Hole(
        name="1.2 files",
        words="a purge takes files that nobody agreed to delete",
        seams=(("lakewarden.jobs.executors.purge:unknown_token", _nothing),),
        themes=("leaving",),
        shows="which is not the table's",
    ),
    Hole(
        name="1.3",
        words="a refused registration moves the row of a table that waits to be purged to its rescued folder",
        seams=(("lakewarden.catalog.registry.registration:moved_to", _followed),),
        themes=("leaving",),
    ),
    Hole(
        name="1.5",
        words="a rename escapes the hold or the pause of a namespace",
        seams=(("lakewarden.catalog.registry.removal:_carried", _as_renamed),),
        themes=("escaping",),
        shows="forbidden",
    ),
    Hole(
        name="1.4",
        words="a worker that stood still deletes what was restored meanwhile",
        seams=(
            ("lakewarden.jobs.deletion.unneeded:Unneeded.still", _all_of_it),
            ("lakewarden.jobs.worker.heartbeat:Heartbeat.still_ours", _nothing),
            ("lakewarden.jobs.worker.heartbeat:Heartbeat.confirm", _nothing),
        ),
        themes=("sleeping",),
    ),
    Hole(
        name="1.6",
        words="a restore goes over what was appended after its version was looked at",
        seams=(("lakewarden.jobs.engines.delta.rs_restore:open_version", _at_head),),
        themes=("overtaking",),
        shows="rows",
    ),
    Hole(
        name="2.1",
        words="a listing takes the files of an unmanaged table that lies in the folder",
        seams=(("lakewarden.jobs.deletion.unneeded:inner_tables_at", _none),),
        themes=("cleaning",),
    ),
    Hole(
        name="2.2",
        words="a longer retention that an owner set is lowered unasked",
        seams=(
            (
                "lakewarden.catalog.policy.retention_properties:RetentionProperties.still_to_set",
                _whatever_differs,
            ),
        ),
        themes=("keeping",),
        shows="retention",
    ),
    Hole(
        name="2.3",
        words="the source's vacuum takes the files of a shallow clone that is managed",
        seams=(("lakewarden.jobs.deletion.folder_readers:FolderReaders.now", _none),),
        themes=("sharing",),
    ),
    Hole(
        name="2.4",
        words="a listing takes a live file that the log names through a symbolic link",
        seams=(("lakewarden.jobs.deletion.file_places:FilePlaces.of", _as_spelled),),
        themes=("sharing",),
    ),
    Hole(
        name="2.5",
        words="a log goes before a checkpoint of which only protocol and metadata were read",
        seams=(("lakewarden.jobs.engines.delta.log_cleanup:judge", _sound),),
        themes=("rotting",),
        shows="promised",
    ),
    Hole(
        name="2.7",
        words="a table that was dropped keeps the retention that was set on it for us",
        seams=(("lakewarden.catalog.registry.removal:dropped", _just_dropped),),
        themes=("parting",),
        shows="leaving",
    ),
)


def owner_of(seam: str) -> tuple[Any, str]:
    """The module or class that a seam is in, and its name there. Raises `AttributeError` for one that is gone."""
    module, _, path = seam.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for one in outer:
        owner = getattr(owner, one)
    getattr(owner, name)
    return owner, name


@contextmanager
def opened(hole: Hole) -> Iterator[None]:
    """The product without this fix, for as long as the block runs."""
    with ExitStack() as stack:
        for seam, instead in hole.seams:
            owner, name = owner_of(seam)
            stack.enter_context(patch.object(owner, name, instead))
        yield
