"""A registry on in-memory stores, and folders that its reader takes for tables."""

from datetime import UTC, datetime
from pathlib import Path

from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import Finding, Severity, TableRow
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from support.builders.callers import actor
from support.builders.commits import changed
from support.builders.tables import FakeReader, observation
from support.fakes.clock import ManualClock
from support.fakes.system_store import FakeSystemStore

__all__ = ["ANA", "BO", "NOW", "ROOT", "folder", "made_registry"]

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ANA = actor("ana")
BO = actor("bo")
ROOT = actor("root", admin=True)


def inspect(row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem) -> tuple[Finding, ...]:
    if isinstance(seen, LogProblem):
        return (Finding(check=seen.check, severity=Severity.ERROR, message=seen.message, since=NOW),)
    return ()


def made_registry(reader: FakeReader) -> Registry:
    """A registry with system tables and nothing else."""
    store = FakeSystemStore()
    store.create(system_rows(store, now=NOW, actor="root"))
    return Registry(
        store=store,
        readers=(reader,),
        metastore=None,
        clock=ManualClock(moment=NOW),
        inspect=inspect,
        storage=lambda _: StorageOptions(),
    )


def folder(reader: FakeReader, path: Path, *, uuid: str | None = None) -> str:
    """A table on disk as far as anybody looks: a folder that exists and that the reader knows."""
    path.mkdir(parents=True)
    location = canonical(str(path))
    seen = observation(location, NOW)
    reader.tables[location] = seen if uuid is None else changed(seen, format_id=uuid)
    return location
