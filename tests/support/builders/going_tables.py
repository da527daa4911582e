"""Iceberg tables that are to be purged, each with its head where the kind says: in its folder, in a real Hive
metastore, or in a database. Commands are given on a home; a worker without a JVM does the runs."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import update

from lakewarden.catalog.formats.iceberg.observation import ICEBERG
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.port import METADATA_FILE, Entry
from lakewarden.catalog.model.pending_purge import MARKER
from lakewarden.catalog.model.rows import Action, Outcome, TableState
from lakewarden.catalog.registry.removal import purged
from lakewarden.catalog.state.models import RUN
from lakewarden.catalog.state.port import Result, RunRequest
from lakewarden.catalog.storage.file_store import local_path
from lakewarden.daemon.control.run_recorder import DAEMON
from lakewarden.daemon.workers.lost_runs import Reaper
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.actions.registry import encode, required_version
from lakewarden.jobs.runs.properties_ledger import StoredLedger
from lakewarden.jobs.runs.standings import StoredStandings
from lakewarden.jobs.worker.runner import Runner
from support.builders.estate import Estate
from support.builders.iceberg_tables import IcebergWriter
from support.builders.sql_catalogs import CataloguedWriter, Pointed, SqliteCatalog
from support.fakes.clock import ManualClock, one_clock
from support.fakes.engine import FakeEngine
from support.fakes.tools import OneFormat
from support.servers.s3 import S3Server

__all__ = ["KINDS", "GoingEstate", "GoingTable", "HivePointer", "going_table", "listed"]

KINDS = ("hadoop", "metastore", "sql", "rest", "sql_s3", "rest_s3")


class _Folders(FakeEngine):
    """Empty folders are taken away in the same way for every format."""

    @property
    def format(self) -> str:
        return ICEBERG

    def delete_empty_folders(self, location: str, folders: Sequence[str]) -> int:
        return 0 if local_path(location) is None else super().delete_empty_folders(location, folders)


@dataclass(frozen=True, kw_only=True)
class HivePointer:
    """`Pointed` in a Hive metastore."""

    metastore: HiveMetastore

    def point(self, entry: str, file: str | None) -> None:
        database, table = entry.split(".")
        if file is None:
            self.metastore.drop(database, table)
            return
        parameters = {"table_type": "ICEBERG", "EXTERNAL": "TRUE", METADATA_FILE: file}
        before = self.metastore.get(database, table)
        if before is not None:
            after = replace(before, parameters={**before.parameters, **parameters})
            self.metastore.replace(after, expected=before)
            return
        self.metastore.create_database(database)
        place = file.rpartition("/metadata/")[0]
        made = Entry(
            database=database, table=table, location=place, provider=None, table_type="EXTERNAL_TABLE",
            parameters=parameters,
        )  # fmt: skip
        self.metastore.create(made)


@dataclass(kw_only=True)
class GoingTable:
    """A table with files of every kind. `name` is how it is managed, `where` how it is registered."""

    writer: IcebergWriter
    where: str
    name: str

    def append(self, name: str) -> None:
        """A file of ten rows, by somebody else."""
        self.writer.root.mkdir(parents=True, exist_ok=True)
        path = self.writer.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": pa.array(range(10), pa.int32())}), path)
        self.writer.commit(add=((name, path.stat().st_size),))

    @property
    def root(self) -> Path:
        return self.writer.root

    @property
    def is_catalogued(self) -> bool:
        return isinstance(self.writer, CataloguedWriter)

    def point(self, entry: str, file: str | None) -> None:
        """An entry of its catalog, set by somebody else."""
        assert isinstance(self.writer, CataloguedWriter)
        self.writer.catalog.point(entry, file)

    @property
    def entry(self) -> str:
        assert isinstance(self.writer, CataloguedWriter)
        return self.writer.entry

    @property
    def head(self) -> str:
        """Its metadata file, as the catalog has it."""
        assert isinstance(self.writer, CataloguedWriter)
        return self.writer.named

    def fill(self) -> None:
        """Three snapshots: appends, a file that went, deletes by position; statistics, a tag, and a branch that
        somebody left a snapshot on."""
        writer = self.writer
        self.append("data/a.parquet")
        self.append("data/day=1/b.parquet")
        first = writer.current
        (writer.metadata / "stats-1.stats").write_bytes(b"PFA1")
        places = pa.table({"file_path": [f"{writer.place}/data/day=1/b.parquet"] * 3, "pos": [0, 1, 2]})
        pq.write_table(places, writer.root / "data" / "d.parquet")
        deletes = writer.delete("data/d.parquet", content=1, of="data/day=1/b.parquet")
        size = (writer.root / "data" / "d.parquet").stat().st_size
        writer.commit(
            remove=("data/a.parquet",), deletes=(replace(deletes, size=size),), operation="overwrite"
        )
        head = writer.current
        self.append("data/on_a_branch.parquet")
        writer.more = {
            "statistics": [
                {"snapshot-id": head, "statistics-path": f"{writer.place}/metadata/stats-1.stats"}
            ],
            "refs": {
                "main": {"snapshot-id": head, "type": "branch"},
                "theirs": {"snapshot-id": writer.current, "type": "branch"},
                "q1": {"snapshot-id": first, "type": "tag"},
            },
        }
        writer.move_main(head)


@dataclass
class GoingEstate(Estate):
    """A home whose worker works on Iceberg tables."""

    def order(self, table: GoingTable, *more: str) -> None:
        """Have it purged, as its dry run says."""
        version = self.dry_run(table)["version"]
        self.must("tables", "drop", table.name, "--purge", "--at-version", str(version), *more, "--yes")

    def dry_run(self, table: GoingTable) -> dict[str, Any]:
        found: dict[str, Any] = self.must(
            "tables", "drop", table.name, "--purge", "--dry-run", "-o", "json"
        ).json
        return found

    def attempt(self, table: GoingTable) -> Result:
        """One run of the purge by a new worker, and what the daemon makes of it."""
        row, services = self.row(table.name), self.services
        action = self.purge(table.name)
        assert isinstance(action, Purge)
        request = RunRequest(
            run_id=uuid.uuid4().hex,
            table_id=row.table_id,
            name=row.name,
            location=row.location or "",
            runtime=ICEBERG,
            action=Action.PURGE,
            payload=encode(action),
            because="it is due",
            requires_version=required_version(action),
        )
        assert services.queue.enqueue([request])
        clock = ManualClock(datetime.now().astimezone() + self.ahead)
        services.heads.forget()
        reader = IcebergReader(services.storage, services.heads)
        done = Runner(
            worker="w-1",
            queue=services.queue,
            tools=OneFormat(reader, _Folders(clock), services.entries),
            metastore=services.metastore,
            clock=clock,
            storage=services.storage,
            lease=timedelta(minutes=1),
            heartbeat=timedelta(seconds=1),
            longest_run=timedelta(days=1),
            clocks=one_clock(clock),
            standings=StoredStandings(services.store),
            ledger=StoredLedger(services.store),
        ).run_next()
        assert done is not None
        if done.result.outcome is Outcome.SUCCEEDED:
            purged(services.registry, row.table_id, actor=DAEMON)
        return done.result

    def give_up(self) -> None:
        """The daemon's finding that a worker died."""
        services = self.services
        with services._database.transaction() as connection:
            connection.execute(update(RUN).values(lease_until=1))
        [run] = services.queue.expired()
        services.heads.forget()
        reaper = Reaper(
            queue=services.queue,
            run_log=services.run_log,
            registry=services.registry,
            clock=services.clock,
            attempts=1,
            pause=timedelta(0),
        )
        assert reaper.finish(run)

    def entries(self, table: GoingTable) -> tuple[list[str], bool]:
        """The entries that name a file in the table's folder, without ours; and whether ours is there."""
        if not table.is_catalogued:
            return [], False
        services = self.services
        row = self.row(table.name)
        named = services.entries.naming(row.location or "", row.table_id, kept=False)
        return list(named), services.entries.is_taken(row.location or "", row.table_id)

    def is_over(self, table: GoingTable) -> bool:
        """Nothing of it is left anywhere, and its row says so."""
        return (
            not table.root.exists()
            and self.is_state(table.name, TableState.PURGED)
            and self.entries(table) == ([], False)
        )


def listed(root: Path) -> dict[str, bytes]:
    """All files below a folder, but for the mark of a deletion."""
    found = (path for path in sorted(root.rglob("*")) if path.is_file() and path.name != MARKER)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def going_table(
    kind: str,
    folder: Path,
    uri: str,
    database: str,
    *,
    server: Pointed | None = None,
    s3: S3Server | None = None,
) -> GoingTable:
    """A table of one of the `KINDS`, not written yet. `server` keeps those of the kinds `rest`, `s3` the files of those
    on S3; what is written into its folder is there as an object."""
    root, told = folder / "lake" / "t", None
    if kind == "hadoop":
        return GoingTable(writer=IcebergWriter(root=root), where=str(root), name="db.t")
    if kind.endswith("_s3"):
        assert s3 is not None
        root, told = s3.folder / folder.name / "t", s3.at(f"{folder.name}/t")
    if kind.startswith(("sql", "rest")):
        is_rest = kind.startswith("rest")
        catalog = server if is_rest else SqliteCatalog(file=folder / "catalog.db")
        assert catalog is not None
        writer = CataloguedWriter(root=root, told=told, catalog=catalog, entry="shop.t")
        return GoingTable(writer=writer, where=f"{'web' if is_rest else 'prod'}.shop.t", name="shop.t")
    entry = f"{database}.t"
    pointer = HivePointer(metastore=HiveMetastore(uri))
    return GoingTable(
        writer=CataloguedWriter(root=root, catalog=pointer, entry=entry), where=entry, name=entry
    )
