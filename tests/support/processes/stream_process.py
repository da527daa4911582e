"""A daemon's clerk for streams in a process of its own, to be killed: `python stream_process.py FOLDER`."""

import sys
from pathlib import Path

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.streams.session_notes import StreamNotes
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.daemon.control.stream_recorder import StreamClerk
from lakewarden.daemon.fleet.fleet_cache import FleetCache


def main(folder: Path) -> None:
    """Record what is noted in the system tables at `folder`/system."""
    clock, system = SystemClock(), canonical(str(folder / "system"))
    store = DeltaSystemStore(system, StorageOptions(), actor="test")
    cache = FleetCache(store, clock)
    cache.refresh()
    clerk = StreamClerk(
        store=store,
        notes=StreamNotes(system, StorageOptions(), clock=clock),
        harvest=StreamHarvest(store=store, storage=lambda _: StorageOptions(), readers=[DeltaReader()]),
        cache=cache,
        readers=(DeltaReader(),),
        clock=clock,
    )
    clerk.record(store.raise_fence("two", at_least=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
