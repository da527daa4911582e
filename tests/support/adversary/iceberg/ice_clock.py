"""The world's time in Iceberg's metadata: what a library stamped with the machine's clock is stamped anew right after
the commit, before anybody reads it.

Iceberg's library takes no metadata whose log is from the future. So a world with Iceberg tables begins years ago, and
whatever a library writes is from the future of that world: that is how its stamps are told from those of the world.
"""

import json
import os
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

__all__ = ["EPOCH", "IceClock"]

EPOCH: Final = timedelta(days=-5000)
"""How far from now a world with Iceberg tables begins."""
_HOUR: Final = 3_600_000


class IceClock:
    """Thread-safe: a worker's thread and whoever waits for it look at once."""

    def __init__(self) -> None:
        self._known = dict[tuple[Path, int], int]()
        self._latest = dict[Path, int]()
        self._done = dict[Path, int]()
        self._lock, self._busy = threading.RLock(), False

    def moves(self, folder: Path, to: Path) -> None:
        """The folder lies elsewhere now."""
        with self._lock:
            self._latest[to] = self._latest.pop(folder, 0)

    def stamp(self, folder: Path, now: datetime, offset: timedelta) -> None:
        """Give what is new in a table's folder the world's time. What this does to files is nobody's step."""
        with self._lock:
            if self._busy:
                return
            self._busy = True
            try:
                self._stamp(folder, now, offset)
            finally:
                self._busy = False

    def _stamp(self, folder: Path, now: datetime, offset: timedelta) -> None:
        for file in sorted((folder / "metadata").glob("*.metadata.json")):
            if self._done.get(file) != os.stat(file).st_ino:
                self._metadata(folder, file, now, round(offset.total_seconds() * 1000))
                self._done[file] = os.stat(file).st_ino
        _date(folder, now, offset)

    def _metadata(self, folder: Path, file: Path, now: datetime, offset: int) -> None:
        told, newest = json.loads(file.read_text()), round(now.timestamp() * 1000) + _HOUR

        def of_the_world(at: int) -> int:
            if at <= newest:
                return at
            key = (folder, at)
            if key not in self._known:
                # Iceberg's own log has to be in order, also while a clock is put back.
                self._latest[folder] = max(at + offset, self._latest.get(folder, 0))
                self._known[key] = self._latest[folder]
            return self._known[key]

        entries: list[dict[str, Any]] = [
            *told.get("snapshots", ()),
            *told.get("metadata-log", ()),
            *told.get("snapshot-log", ()),
        ]
        for entry in sorted(entries, key=lambda one: int(one["timestamp-ms"])):
            entry["timestamp-ms"] = of_the_world(entry["timestamp-ms"])
        told["last-updated-ms"] = of_the_world(told["last-updated-ms"])
        for ref in told.get("refs", {}).values():
            if (
                ref.get("max-ref-age-ms", 0) > -offset
            ):  # it counts from a snapshot of the world to the machine's now
                ref["max-ref-age-ms"] += offset
        staged = file.with_name(f".{file.name}.stamping")
        staged.write_text(json.dumps(told))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # Hadoop's, of what stood there before
        os.replace(staged, file)


def _date(folder: Path, now: datetime, offset: timedelta) -> None:
    """Files that were written now, by the world's clock."""
    newest = now.timestamp() + 3600
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            at = os.stat(path).st_mtime
            if at > newest:
                os.utime(path, (at + offset.total_seconds(),) * 2)
