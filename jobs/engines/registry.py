"""Which engines are there? Ours, one line each, and those that distributions installed beside us offer."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import formats, reader_of, readers
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.model.rows import DELTA, Action, TableFormat
from lakewarden.catalog.plugins import loaded, offered
from lakewarden.jobs.actions.registry import SPECS
from lakewarden.jobs.engines.spec import EngineSpec
from lakewarden.jobs.runs.catalog_heads import entries_of
from lakewarden.jobs.runs.port import Engine
from lakewarden.jobs.runs.worker_config import WorkerConfig

__all__ = [
    "GROUP",
    "InstalledTools",
    "engine_formats",
    "engine_spec",
    "lacking",
    "no_engine",
    "require_engine",
    "unable",
]

GROUP: Final = "lakewarden.engines"
"""The entry-point group: an `EngineSpec` by the name of the format it works on."""
_OURS: Final = {
    DELTA: "lakewarden.jobs.engines.delta.engine:DELTA_ENGINE",
    "iceberg": "lakewarden.jobs.engines.iceberg.engine:ICEBERG_ENGINE",
}
_IN_PART: Final = frozenset({"iceberg"})
"""Formats of ours whose engine does only what is done to tables of all formats."""


@cache
def engine_formats() -> tuple[TableFormat, ...]:
    """The formats that have an engine here; nothing is loaded for that."""
    return tuple(offered(GROUP, _OURS))


def engine_spec(format_: TableFormat) -> EngineSpec:
    """The engine of a format. Raises `RefusedError` where there is none, `PreconditionError` if it is broken."""
    require_engine(format_)
    return loaded(offered(GROUP, _OURS)[format_], EngineSpec)


def require_engine(format_: TableFormat, action: Action | None = None) -> None:
    """Return if a format has an engine here, which does that action; nothing is loaded for it. Raises
    `RefusedError`."""
    because = no_engine(format_, action)
    if because is None:
        return
    if format_ in engine_formats():
        raise RefusedError(f"{because}.", hint="See docs/iceberg.md for what it does with them.")
    raise RefusedError(
        f"N{because[1:]}.", hint="Install the package that it came with, everywhere workers run."
    )


def no_engine(format_: TableFormat | None, action: Action | None = None) -> str | None:
    """Why an action (None: any) is never done to tables of a format here, as half a sentence; None if it is."""
    wanted = format_ or DELTA
    if wanted not in engine_formats():
        return f"no engine for the table format {wanted} is installed here"
    if action is None:
        return None
    known, spec = formats().get(wanted), SPECS[action]
    if known is not None and action in lacking(wanted):
        return f"{known.label} tables have no {spec.cares_for}"
    if known is None or wanted not in _IN_PART or spec.of_all_formats:
        return None
    return (
        f"lakewarden vacuums, compacts, purges and rolls back {known.label} tables, cares for their metadata and "
        "statistics, and sets their retention; it does not do anything else to them yet"
    )


def lacking(format_: TableFormat | None) -> frozenset[Action]:
    """The actions that care for what tables of a format do not have."""
    known = formats().get(format_ or DELTA)
    if known is None:
        return frozenset()
    return frozenset(
        action for action, spec in SPECS.items() if spec.cares_for is not None and action not in known.upkeep
    )


def unable(format_: TableFormat | None) -> Mapping[Action, str]:
    """The actions that are never done to tables of a format here, and why."""
    reasons = {action: no_engine(format_, action) for action in Action}
    return {action: because for action, because in reasons.items() if because is not None}


class InstalledTools:
    """`Tools` from what is installed. An engine is made when the first table of its format needs it, and lives as
    long as its worker; those of `made` are there already."""

    def __init__(self, config: WorkerConfig, made: Mapping[TableFormat, Engine] | None = None) -> None:
        self._config, self._made = config, dict(made or {})
        self._entries = entries_of(config)
        heads = None if self._entries is None else self._entries.heads
        self._readers: Sequence[TableReader] = readers(config.storage.at, heads)
        self._runtimes = engine_formats()

    @property
    def runtimes(self) -> Sequence[str]:
        return self._runtimes

    @property
    def entries(self) -> TakenEntries | None:
        return self._entries

    @property
    def readers(self) -> Sequence[TableReader]:
        return self._readers

    def reader(self, format_: TableFormat | None) -> TableReader:
        return reader_of(self._readers, format_)

    def engine(self, format_: TableFormat | None) -> Engine:
        wanted = format_ or DELTA
        if wanted not in self._made:
            self._made[wanted] = engine_spec(wanted).engine(self._config)
        return self._made[wanted]

    def interrupt(self) -> None:
        for engine in tuple(self._made.values()):
            engine.interrupt()

    @property
    def broken(self) -> bool:
        """Whether one of the engines has stopped answering: the worker has to end."""
        return any(engine.broken for engine in self._made.values())

    def close(self) -> None:
        """End the engines that still answer."""
        for engine in self._made.values():
            if not engine.broken:
                engine.close()
