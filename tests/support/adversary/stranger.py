"""Somebody else: writes real tables with delta-rs and by hand, moves and replaces folders, has clocks of his own.

All times are the world's: what delta-rs stamps with the machine's clock is stamped anew right after the commit.
"""

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, write_deltalake

from support.adversary.reading import LOG, is_table, place_of, rebuilt, versions_of

__all__ = ["AFTERWARDS", "Stranger"]

AFTERWARDS = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
"""delta-rs would clean logs by the machine's clock, not by the world's."""

_SCHEMA = json.dumps(
    {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
)


class Stranger:
    """Writes rows of ever new ids, two per append."""

    def __init__(self) -> None:
        self._next, self._stamped, self._dated = 0, dict[Path, set[int]](), set[str]()

    def rows(self, count: int = 2) -> pa.Table:
        """Rows that nobody has written before."""
        first, self._next = self._next, self._next + count
        return pa.table({"id": pa.array(range(first, first + count), pa.int64())})

    def append(self, folder: Path) -> None:
        write_deltalake(
            str(folder),
            self.rows(),
            mode="append",
            commit_properties=_plainly(),
            post_commithook_properties=AFTERWARDS,
        )

    def overwrite(self, folder: Path) -> None:
        write_deltalake(
            str(folder),
            self.rows(),
            mode="overwrite",
            commit_properties=_plainly(),
            post_commithook_properties=AFTERWARDS,
        )

    def delete(self, folder: Path, odd: int) -> None:
        DeltaTable(folder).delete(
            f"id % 3 = {odd % 3}", commit_properties=_plainly(), post_commithook_properties=AFTERWARDS
        )

    def compact(self, folder: Path) -> None:
        DeltaTable(folder).optimize.compact(
            commit_properties=_plainly(), post_commithook_properties=AFTERWARDS
        )

    def restore(self, folder: Path, version: int) -> None:
        DeltaTable(folder).restore(
            version, commit_properties=_plainly(), post_commithook_properties=AFTERWARDS
        )

    def properties(self, folder: Path, properties: Mapping[str, str]) -> None:
        DeltaTable(folder).alter.set_table_properties(
            dict(properties), commit_properties=_plainly(), post_commithook_properties=AFTERWARDS
        )

    def checkpoint(self, folder: Path) -> None:
        DeltaTable(folder).create_checkpoint()

    def replace(self, folder: Path) -> None:
        """CREATE OR REPLACE TABLE: another UUID, the log goes on."""
        head = versions_of(folder)[-1]
        now = rebuilt(folder, head)
        removed = [] if now is None else [{"remove": _removal(path)} for path in sorted(now.files)]
        self._commit(folder, head + 1, "CREATE OR REPLACE TABLE", [_metadata(), *removed, self._file(folder)])

    def create(self, folder: Path) -> None:
        """A new table of one commit; what lies in the folder stays."""
        self._commit(folder, 0, "WRITE", [_protocol(), _metadata(), self._file(folder)])

    def clone(self, source: Path, folder: Path) -> None:
        """A shallow clone: a table of its own that reads the source's files, by absolute path."""
        now = rebuilt(source, versions_of(source)[-1])
        files = sorted(() if now is None else now.files)
        adds = [{"add": _addition(str(place_of(source, path)), place_of(source, path))} for path in files]
        self._commit(folder, 0, "CLONE", [_protocol(), _metadata(), *adds])

    def add_through_link(self, folder: Path, link: Path) -> None:
        """A file in the table's own folder that the log names by an absolute path through a symbolic link."""
        if not link.exists():
            link.symlink_to(folder)
        head = versions_of(folder)[-1]
        added = self._file(folder)["add"]
        path = place_of(folder, str(added["path"]))
        added["path"] = str(link / path.name)
        self._commit(folder, head + 1, "WRITE", [{"add": added}])

    def vacuum(self, folder: Path) -> None:
        """Somebody deletes at once everything that head does not name: not ours to prevent."""
        head = rebuilt(folder, versions_of(folder)[-1])
        for path in folder.glob("*.parquet"):
            if head is not None and path.name not in head.files:
                path.unlink()

    def clean_log(self, folder: Path) -> None:
        """Somebody writes a checkpoint and deletes every commit before it."""
        head = versions_of(folder)[-1]
        self.checkpoint(folder)
        for version in versions_of(folder):
            if version < head:
                (folder / LOG / f"{version:020d}.json").unlink()

    def spoil_checkpoint(self, folder: Path) -> None:
        """An older checkpoint that gives protocol and metadata, and names of files in which bytes have flipped; the
        newest one, which every reader takes, is sound."""
        self.append(folder)
        self.checkpoint(folder)
        hint = (folder / LOG / "_last_checkpoint").read_bytes()
        version = versions_of(folder)[-1] - 1
        DeltaTable(folder, version=version).create_checkpoint()
        (folder / LOG / "_last_checkpoint").write_bytes(hint)
        newest = folder / LOG / f"{version:020d}.checkpoint.parquet"
        table = pq.read_table(newest)
        adds = [
            None if one is None else {**one, "path": _flipped(one["path"])}
            for one in table["add"].to_pylist()
        ]
        column = pa.array(adds, table.schema.field("add").type)
        pq.write_table(table.set_column(table.schema.get_field_index("add"), "add", column), newest)

    def move(self, folder: Path, to: Path) -> None:
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, to)
        self._stamped[to] = self._stamped.pop(folder, set())

    def copy(self, folder: Path, to: Path) -> None:
        """With the times that its files have."""
        shutil.copytree(folder, to, symlinks=True)
        self._stamped[to] = set(self._stamped.get(folder, ()))

    def remove(self, folder: Path) -> None:
        shutil.rmtree(folder)
        self._stamped.pop(folder, None)

    def stamp(self, folder: Path, now: datetime) -> None:
        """Give commits that are new since the last call, and the files that they add, the world's time."""
        done = self._stamped.setdefault(folder, set())
        for version in versions_of(folder):
            if version not in done:
                self._stamp(folder, version, now)
                done.add(version)

    def known(self, folder: Path) -> bool:
        return is_table(folder)

    def _stamp(self, folder: Path, version: int, now: datetime) -> None:
        """Rewrite one commit so that it was made at a moment, as its own words and the files' times say."""
        path, millis = folder / LOG / f"{version:020d}.json", int(now.timestamp() * 1000)
        lines = []
        for line in path.read_text().splitlines():
            action = json.loads(line)
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = millis
                action["commitInfo"].pop("inCommitTimestamp", None)
            if "remove" in action:
                action["remove"]["deletionTimestamp"] = millis
            if "add" in action:
                action["add"]["modificationTime"] = millis
                added = place_of(folder, action["add"]["path"])
                if added.name not in self._dated and added.exists():
                    self._dated.add(added.name)
                    os.utime(added, (now.timestamp(), now.timestamp()))
            lines.append(json.dumps(action))
        staged = path.with_suffix(".stamping")
        staged.write_text("\n".join(lines) + "\n")
        os.utime(staged, (now.timestamp(), now.timestamp()))
        os.replace(staged, path)

    def _file(self, folder: Path) -> dict[str, dict[str, object]]:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"part-{uuid.uuid4().hex}.parquet"
        pq.write_table(self.rows(), path)
        return {"add": _addition(path.name, path)}

    def _commit(
        self, folder: Path, version: int, operation: str, actions: list[dict[str, dict[str, object]]]
    ) -> None:
        (folder / LOG).mkdir(parents=True, exist_ok=True)
        info = {"commitInfo": {"timestamp": 0, "operation": operation, "operationParameters": {}}}
        text = "\n".join(json.dumps(one) for one in [info, *actions]) + "\n"
        with (folder / LOG / f"{version:020d}.json").open("x") as file:
            file.write(text)


def _plainly() -> CommitProperties:
    return CommitProperties(max_commit_retries=0)


def _protocol() -> dict[str, dict[str, object]]:
    return {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def _metadata() -> dict[str, dict[str, object]]:
    meta = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": _SCHEMA,
    }
    return {"metaData": {**meta, "partitionColumns": [], "configuration": {}, "createdTime": 0}}


def _addition(name: str, path: Path) -> dict[str, object]:
    size = path.stat().st_size
    stats = json.dumps({"numRecords": pq.read_metadata(path).num_rows})
    told = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 0}
    return {**told, "dataChange": True, "stats": stats}


def _removal(path: str) -> dict[str, object]:
    return {"path": path, "deletionTimestamp": 0, "dataChange": True, "partitionValues": {}}


def _flipped(path: str) -> str:
    return path[:8] + ("x" if path[8] != "x" else "y") + path[9:]
