"""Random histories: what the reader says equals a literal replay, and going on equals reading everything."""

import shutil
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation, Tombstone
from lakewarden.catalog.storage.file_store import canonical
from support.builders.delta_logs import LogWriter, add, remove, vector

pytestmark = pytest.mark.heavy

SPELLINGS = ["é.parquet", "%C3%A9.parquet"]
"""One file, two entries: who removes one of them leaves the other in the table, as for Spark and delta-rs."""
NAMES = st.sampled_from(
    [*(f"f{n}.parquet" for n in range(12)), "a%20b.parquet", "day=1%253A2/c.parquet", *SPELLINGS]
)
DAYS = st.sampled_from(["1", "2", "", None])
SIZES = st.sampled_from([0, 1, 100, 1024, 2**27])
ROWS = st.one_of(st.none(), st.integers(0, 1000))
VECTORS = "/vectors/"
CHECKPOINTS = st.sampled_from(["classic", "parts", "v2-parquet", "v2-json"])


class Histories(RuleBasedStateMachine):
    """A table written in every legal way, read after every step by a reader that was there from the start."""

    @initialize(partitioned=st.booleans())
    def create(self, partitioned: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lakewarden-replay-"))
        self.table = LogWriter(root=self.folder, partition_columns=("day",) if partitioned else ()).create()
        self.reader = DeltaReader()
        self.seen: Observation | None = None
        self.limit: datetime | None = None
        self.cleaned = False

    @rule(
        names=st.lists(NAMES, min_size=1, max_size=4, unique=True),
        day=DAYS,
        size=SIZES,
        rows=ROWS,
        change=st.booleans(),
    )
    def write(self, names: list[str], day: str | None, size: int, rows: int | None, change: bool) -> None:
        """New files; those that are there already are replaced or added again (statistics filled, restored)."""
        partition = {"day": day} if self.table.partition_columns else {}
        gone = [
            remove(path, at=self.table.now, size=body["size"], deletion_vector=body.get("deletionVector"))
            for (path, key), body in self.table.live.items()
            if path in names and key is not None
        ]
        files = [add(name, size=size, rows=rows, partition=partition, data_change=change) for name in names]
        self.table.commit(*gone, *files)

    @rule(data=st.data(), told=st.booleans(), optimize=st.booleans())
    def delete(self, data: st.DataObject, told: bool, optimize: bool) -> None:
        if not self.table.live:
            return
        keys = data.draw(st.lists(st.sampled_from(sorted(self.table.live, key=str)), min_size=1, unique=True))
        actions = []
        for key in keys:
            body = self.table.live[key]
            at = self.table.now if told else None
            actions.append(
                remove(
                    key[0],
                    at=at,
                    size=body["size"] if told else None,
                    deletion_vector=body.get("deletionVector"),
                )
            )
        self.table.commit(*actions, operation="OPTIMIZE" if optimize else "DELETE")

    @rule(data=st.data(), deleted=st.integers(1, 5), file=st.sampled_from("uv"), offset=st.integers(1, 3))
    def mark_deleted(self, data: st.DataObject, deleted: int, file: str, offset: int) -> None:
        """A new deletion vector on a live file, in a vector file that others may share."""
        if not self.table.live:
            return
        key = data.draw(st.sampled_from(sorted(self.table.live, key=str)))
        body = dict(self.table.live[key])
        new = vector(file, deleted, offset=offset)
        if body.get("deletionVector", {}).get("offset") == offset:
            return
        gone = remove(
            key[0], at=self.table.now, size=body["size"], deletion_vector=body.get("deletionVector")
        )
        self.table.commit({"add": {**body, "deletionVector": new}}, gone, operation="DELETE")

    @rule(minutes=st.integers(0, 10), completed=st.booleans())
    def vacuum(self, minutes: int, completed: bool) -> None:
        retention = {"defaultRetentionMillis": minutes * 60_000}
        self.table.commit(operation="VACUUM START", operationParameters=retention)
        limit = self.table.now - timedelta(minutes=minutes)
        self.table.commit(
            operation="VACUUM END", operationParameters={"status": "COMPLETED" if completed else "FAILED"}
        )
        if completed and (self.limit is None or limit > self.limit):
            self.limit = limit

    @rule(kind=CHECKPOINTS, forget=st.booleans())
    def checkpoint(self, kind: str, forget: bool) -> None:
        """One a version: a second one would forget what a reader of the first rightly remembers."""
        if any(self.table.log.glob(f"{self.table.head:020d}.checkpoint.*")):
            return
        self.table.checkpoint(kind, forget_before=self.table.now - timedelta(minutes=3) if forget else None)

    @rule(keep=st.integers(0, 3))
    def clean(self, keep: int) -> None:
        """The log before the last checkpoint goes, or all but its last commits."""
        checkpoints = [int(path.name[:20]) for path in self.table.log.glob("*.checkpoint.*")]
        if checkpoints:
            self.table.clean(max(checkpoints) - keep)
            self.cleaned = True

    @rule()
    def look(self) -> None:
        seen = self.reader.observe(canonical(str(self.folder)), since=self.seen)
        assert isinstance(seen, Observation)
        self.seen = seen

    @invariant()
    def what_is_read_is_true(self) -> None:
        location = canonical(str(self.folder))
        full = DeltaReader().observe(location)
        assert isinstance(full, Observation)
        assert self.reader.observe(location, since=self.seen) == full
        self.check_counts(full)
        assert sorted((file.path, file.size_bytes) for file in DeltaReader().files(location)) == sorted(
            (_decoded(one["path"]), one["size"]) for one in self.table.live.values()
        )
        self.check_tombstones(full, list(DeltaReader().tombstones(location)))

    def check_counts(self, full: Observation) -> None:
        live = self.table.live.values()
        assert (full.version, full.files) == (self.table.head, len(live))
        assert full.bytes == sum(one["size"] for one in live)
        assert full.deletion_vectors == sum("deletionVector" in one for one in live)
        assert full.partitions == len({one["partitionValues"].get("day") or None for one in live})
        assert full.files_without_statistics == sum("stats" not in one for one in live)

    def check_tombstones(self, full: Observation, stones: list[Tombstone]) -> None:
        live, removed = (
            {_decoded(path) for path, _ in some} for some in (self.table.live, self.table.removed)
        )
        gone = removed - live
        paths = {one.path for one in stones if not one.path.startswith(VECTORS)}
        if self.cleaned:  # what only the deleted commits told is forgotten
            assert paths <= gone
        else:
            assert paths == gone
        assert full.tombstones == len(paths) if self.limit is None else full.tombstones <= len(paths)
        vectors = [one["deletionVector"] for one in self.table.live.values() if "deletionVector" in one]
        freed = [one.deletion_vector for one in stones if one.deletion_vector]
        freed += [one.path for one in stones if one.path.startswith(VECTORS)]
        assert not {one["pathOrInlineDv"] for one in vectors} & set(freed)
        assert len(freed) == len(set(freed))

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


def _decoded(path: str) -> str:
    return path.replace("%C3%A9", "é").replace("%20", " ").replace("%25", "%")


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
