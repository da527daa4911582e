"""Somebody else who writes Iceberg tables by Iceberg's own library in Java, and by Spark: in Hadoop's layout, and
by their names in a catalog."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from support.adversary.iceberg.ice_catalog import CATALOG, NAMESPACE, Pointers
from support.adversary.iceberg.ice_reading import IceShot, IceView, files_of, head_file, read_view, whole_of
from support.adversary.stranger import Stranger

__all__ = ["IceStranger"]

_SCHEMA: Final = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])


class IceStranger:
    """Writes rows of ever new ids, two per append. `spark` is a session with Iceberg's library."""

    def __init__(self, spark: Any, rows: Stranger, pointers: Pointers | None) -> None:
        self._spark, self._rows, self._pointers = spark, rows, pointers
        self._jvm = spark._jvm
        self._tables = self._jvm.org.apache.iceberg.hadoop.HadoopTables(
            spark._jsparkSession.sessionState().newHadoopConf()
        )

    def create(self, folder: Path, properties: Mapping[str, str]) -> None:
        iceberg = self._jvm.org.apache.iceberg
        column = iceberg.types.Types.NestedField.optional(1, "id", iceberg.types.Types.LongType.get())
        fields = self._jvm.java.util.ArrayList([column])
        schema = iceberg.Schema(fields)
        spec, told = iceberg.PartitionSpec.unpartitioned(), {"format-version": "2", **properties}
        if is_named(folder):
            name = iceberg.catalog.TableIdentifier.parse(f"{NAMESPACE}.{_entry(folder)}")
            self._catalog().createTable(name, schema, spec, f"file:{folder}", told)
        else:
            self._tables.create(schema, spec, told, f"file:{folder}")

    def append(self, folder: Path, *, branch: str = "main", told: Mapping[str, str] | None = None) -> None:
        table = self.table(folder)
        self._commit(table.newAppend().appendFile(self._file(folder, table)), branch, told)

    def overwrite(self, folder: Path, *, told: Mapping[str, str] | None = None) -> None:
        """All rows go, two come."""
        table = self.table(folder)
        true = self._jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()
        made = table.newOverwrite().overwriteByRowFilter(true).addFile(self._file(folder, table))
        self._commit(made, "main", told)

    def delete_rows(self, folder: Path, odd: int) -> bool:
        """Copy on write: each file of main in which some rows go is written anew."""
        view = self._view(folder)
        if view.main is None:
            return False
        table, change = self.table(folder), None
        for path in sorted(files_of(view.shots[view.main])):
            ids = pq.read_table(path, columns=["id"], partitioning=None)["id"].to_pylist()
            stay = [one for one in ids if one % 3 != odd % 3]
            if len(stay) == len(ids):
                continue
            change = change or table.newOverwrite()
            change = change.deleteFile(self._told(table, Path(path), len(ids)))
            if stay:
                change = change.addFile(self._file(folder, table, stay))
        if change is None:
            return False
        self._commit(change, "main", None)
        return True

    def tag(self, folder: Path, name: str, shot: int) -> None:
        self.table(folder).manageSnapshots().createTag(name, shot).commit()

    def branch(self, folder: Path, name: str, shot: int) -> None:
        self.table(folder).manageSnapshots().createBranch(name, shot).commit()
        self.append(folder, branch=name)

    def drop_ref(self, folder: Path, name: str, kind: str) -> None:
        manage = self.table(folder).manageSnapshots()
        (manage.removeTag(name) if kind == "tag" else manage.removeBranch(name)).commit()

    def set_main(self, folder: Path, shot: int) -> None:
        self.table(folder).manageSnapshots().setCurrentSnapshot(shot).commit()

    def properties(self, folder: Path, properties: Mapping[str, str]) -> None:
        change = self.table(folder).updateProperties()
        for key, value in properties.items():
            change = change.set(key, value)
        change.commit()

    def add_column(self, folder: Path, name: str) -> None:
        kind = self._jvm.org.apache.iceberg.types.Types.LongType.get()
        self.table(folder).updateSchema().addColumn(name, kind).commit()

    def expire(self, folder: Path, going: Iterable[int]) -> frozenset[str]:
        """Snapshots leave the metadata, and the files that only they have are deleted; which those were."""
        before = self._view(folder)
        operations = self.table(folder).operations()
        base, gone = operations.current(), self._jvm.java.util.ArrayList()
        for one in base.snapshots():
            if one.snapshotId() in set(going):
                gone.add(one)
        builder = self._jvm.org.apache.iceberg.TableMetadata.buildFrom(base).removeSnapshots(gone)
        operations.commit(base, builder.build())
        after = self._view(folder)
        stay = _all_files(after.shots.values())
        lost = _all_files(one for one in before.shots.values() if one.id not in after.shots) - stay
        for path in lost:
            Path(path).unlink(missing_ok=True)
        return lost

    def put_back(self, folder: Path, file: Path) -> None:
        """Somebody makes an older metadata file head's again, by hand."""
        if self._pointers is not None and is_named(folder):
            self._pointers.point(_entry(folder), file)
            return
        head = head_file(folder)
        assert head is not None, "there is a table"
        number = int(head.name[1:].partition(".")[0]) + 1
        (folder / "metadata" / f"v{number}.metadata.json").write_bytes(file.read_bytes())
        (folder / "metadata" / "version-hint.text").write_text(str(number))
        (folder / "metadata" / ".version-hint.text.crc").unlink(missing_ok=True)

    def orphan(self, folder: Path) -> Path:
        """A data file of a write that never came to its commit."""
        path = self._path(folder)
        pq.write_table(self._rows.rows(), path)
        return path

    def share(self, folder: Path, elsewhere: Path) -> Path:
        """A table of another UUID with a data file in this folder, and a copy of its metadata file there; the file."""
        self.create(elsewhere, {})
        table = self.table(elsewhere)
        path = self._path(folder)
        pq.write_table(self._rows.rows().cast(_SCHEMA), path)
        table.newAppend().appendFile(self._told(table, path, 2)).commit()
        head = head_file(elsewhere)
        assert head is not None, "it was made"
        told = folder / "metadata" / f"00001-{uuid.uuid4()}.metadata.json"
        told.write_bytes(head.read_bytes())
        return path

    def table(self, folder: Path) -> Any:
        if not is_named(folder):
            return self._tables.load(f"file:{folder}")
        names = self._jvm.org.apache.iceberg.catalog.TableIdentifier
        return self._catalog().loadTable(names.parse(f"{NAMESPACE}.{_entry(folder)}"))

    def by_spark(self, folder: Path, statement: str) -> None:
        """A statement of Spark's, with `{table}` for the table, in the catalog whose warehouse is around the lake."""
        table = f"adversary.`{folder.parent.name}`.`{folder.name}`"
        if is_named(folder):
            table = f"{CATALOG}.{NAMESPACE}.{_entry(folder)}"
        self._spark.sql(statement.format(table=table)).collect()

    def new_id(self) -> int:
        """A row that nobody has written before."""
        made: int = self._rows.rows(1)["id"][0].as_py()
        return made

    def _view(self, folder: Path) -> IceView:
        if self._pointers is not None and is_named(folder):
            head = self._pointers.file_of(_entry(folder))
        else:
            head = head_file(folder)
        assert head is not None, "there is a table"
        return read_view(head)

    def _catalog(self) -> Any:
        spark3 = self._jvm.org.apache.iceberg.spark.Spark3Util
        return spark3.loadIcebergCatalog(self._spark._jsparkSession, CATALOG)

    def _commit(self, change: Any, branch: str, told: Mapping[str, str] | None) -> None:
        if branch != "main":
            change = change.toBranch(branch)
        for key, value in (told or {}).items():
            change = change.set(key, value)
        change.commit()

    def _file(self, folder: Path, table: Any, ids: Sequence[int] | None = None) -> Any:
        path = self._path(folder)
        rows = self._rows.rows() if ids is None else pa.table({"id": pa.array(ids, pa.int64())})
        pq.write_table(rows.cast(_SCHEMA), path)
        return self._told(table, path, rows.num_rows)

    def _told(self, table: Any, path: Path, rows: int) -> Any:
        builder = self._jvm.org.apache.iceberg.DataFiles.builder(table.spec())
        builder = builder.withPath(f"file:{path}").withFormat("parquet")
        return builder.withFileSizeInBytes(path.stat().st_size).withRecordCount(rows).build()

    def _path(self, folder: Path) -> Path:
        (folder / "data").mkdir(parents=True, exist_ok=True)
        return folder / "data" / f"{uuid.uuid4().hex}.parquet"


def is_named(folder: Path) -> bool:
    """Whether the catalog keeps the head of the table at a folder."""
    return folder.name.endswith("-named")


def _entry(folder: Path) -> str:
    return folder.name.replace("-", "_")


def _all_files(shots: Iterable[IceShot]) -> frozenset[str]:
    found = frozenset[str]()
    for one in shots:
        found |= whole_of(one)
    return found
