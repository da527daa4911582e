"""Three tables, each made from the one before it, of which lineage has lost a row."""

from datetime import UTC, datetime
from pathlib import Path

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.lineage.recording import rows_from
from lakewarden.catalog.model.rows import LineageRow, Source, TableRow
from lakewarden.catalog.model.unread_lineage import with_lineage_unread
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.port import LINEAGE, TABLES
from support.builders.derived import write
from support.fakes.system_store import FakeSystemStore

__all__ = ["CHAINED_AT", "Chain", "CountingReader"]

CHAINED_AT = datetime(2026, 6, 1, tzinfo=UTC)


class CountingReader(DeltaReader):
    """Counts whose logs are observed."""

    def __init__(self) -> None:
        super().__init__()
        self.observed: list[str] = []

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        self.observed.append(location)
        return super().observe(location, since=since)


class Chain:
    """`t` has a bad load as version 1; `d` was made from it in version 1 and got rows of its own since; `x` was made
    from that. All of it is on record but that `d` was made from `t`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store, self.reader = folder, FakeSystemStore(), CountingReader()
        self.store.create([])
        for name in ("t", "d", "x", "beside"):
            write(folder / name, 1)
        write(folder / "t", 99)
        write(folder / "d", 99, reads={"t": folder / "t"})
        write(folder / "x", 99, reads={"d": folder / "d"})
        write(folder / "d", 2)
        for name in ("t", "d", "x", "beside"):
            self.manage(name)

    def manage(self, name: str) -> None:
        location = canonical(str(self.folder / name))
        seen = self.reader.observe(location)
        assert isinstance(seen, Observation)
        row = TableRow(
            row=len(self.store.rows(TABLES).all()), table_id=name, name=f"db.{name}", location=location, owner="ana",
            source=Source.REGISTER, registered_at=CHAINED_AT, registered_by="ana",
            updated_at=CHAINED_AT, updated_by="ana", format_ids=(seen.format_id,),
        )  # fmt: skip
        self.store.edit(TABLES, lambda _: [row], because="test")
        told = rows_from(name, tuple(self.reader.commits(location, after=-1)), format_id=None, at=CHAINED_AT)
        self.store.append(LINEAGE, [one for one in told if not _is_lost(one)], because="test")

    def mark(self, *names: str) -> None:
        rows = (row for row in self.store.rows(TABLES).all() if row.table_id in names)
        self.change(*with_lineage_unread(rows, now=CHAINED_AT, actor="root"))

    def change(self, *rows: TableRow) -> None:
        self.store.edit(TABLES, lambda _: rows, because="test")

    def row(self, name: str) -> TableRow:
        found = self.store.rows(TABLES).get(name)
        assert found is not None
        return found


def _is_lost(row: LineageRow) -> bool:
    return row.output_id == "d" and row.output_version == 1
