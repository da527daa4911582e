"""What piles up in Iceberg tables is counted, shown, and cleaned up: deletes of every kind, manifests, metadata."""

from pathlib import Path

import pytest

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.port import CommitKind
from lakewarden.catalog.model.table_deletes import DeleteKind
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from support.builders.equality_deletes import delete_by_equality
from support.builders.spark_iceberg import Make, SparkIceberg
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here
from support.processes.commands import caller
from support.servers.metastores import without_system_tables

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
MERGE_ON_READ = "'format-version'='{}', 'write.delete.mode'='merge-on-read'"


def merge_on_read(make: Make, version: int = 2, catalog: str = "by_name", **how: str) -> SparkIceberg:
    """Forty rows, each fourth of them deleted beside its file."""
    table = make(catalog, properties=MERGE_ON_READ.format(version), **how)
    table.append(*range(20))
    table.append(*range(20, 40))
    table.sql(f"DELETE FROM {table} WHERE id % 4 = 1")
    return table


@pytest.mark.parametrize(("version", "kind"), [(2, DeleteKind.POSITION), (3, DeleteKind.VECTOR)])
def test_deletes_are_counted_by_kind(make: Make, version: int, kind: DeleteKind) -> None:
    table = merge_on_read(make, version)
    seen = table.seen
    assert [(one.kind, one.rows) for one in seen.deletes] == [(kind, 10)]
    assert (seen.stored_rows, seen.backlog.snapshots, seen.backlog.manifests) == (40, 3, 3)
    ((size,),) = table.sql(
        f"SELECT sum(size) FROM (SELECT DISTINCT file_path, file_size_in_bytes AS size FROM {table}.delete_files)"
    )
    assert seen.deletes[0].bytes == size


def test_what_has_piled_up_is_shown_to_people_and_programs(
    make: Make,
    metastore: EmbeddedMetastore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    table = merge_on_read(make, name="events")
    delete_by_equality(table, 2, 3, 1000)
    monkeypatch.setenv("LAKEWARDEN_METASTORE_URI", without_system_tables(metastore.uri))
    cli, name = caller(tmp_path / "home", monkeypatch, capfdbinary), f"{table.database}.events"
    assert cli("init").code == 0
    assert cli("tables", "register", name, "--owner", "ana").code == 0
    deletes = cli("tables", "show", name, "-o", "json").json["deletes"]
    assert {one["kind"]: one["rows"] for one in deletes} == {"position": 10, "equality": 3}
    shown = cli("tables", "show", name).out
    assert "equality: 3 in 1 files" in shown and "position: 10 in " in shown
    assert "snapshots=4" in shown
    asked = "SELECT backlog.snapshots AS n, size(deletes) AS kinds FROM lakewarden.health WHERE name = '{}'"
    assert cli("sql", asked.format(name), "-o", "json").json == [{"n": 4, "kinds": 2}]
    assert cli("tables", "list", "-o", "json").json[-1]["stored_rows"] == 40


LEFT = [one for one in range(40) if one % 4 != 1]
NEVER = 1000
"""No table of these tests has so many small files."""


def equality(make: Make, partitioned_by: str = "") -> SparkIceberg:
    table = make("by_name", partitioned_by=partitioned_by)
    table.append(*range(20))
    table.append(*range(20, 40))
    partition = "part=a" if partitioned_by else None
    delete_by_equality(table, *range(1, 40, 4), partition=partition)
    return table


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "how", mostly_long(["position", "vector", "equality", "in partitions"], ["position", "in partitions"])
)
def test_deletes_of_every_kind_are_applied_and_leave_nothing(make: Make, how: str) -> None:
    table = {
        "position": lambda: merge_on_read(make),
        "vector": lambda: merge_on_read(make, 3),
        "equality": lambda: equality(make),
        "in partitions": lambda: equality(make, "part"),
    }[how]()
    assert table.rows() == LEFT and table.seen.deletes
    before = table.seen.version
    report = table.compact("run-7", purge=True, least=NEVER)
    after = table.seen
    assert (table.rows(), after.deletes, after.rows) == (LEFT, (), len(LEFT)), report.message
    assert report.committed_version == after.version
    ours = list(table.reader.commits(table.location, after=before))
    assert {(one.kind, one.run_id) for one in ours} == {(CommitKind.MAINTENANCE, "run-7")}
    assert table.compact(purge=True, least=NEVER).skipped
    table.vacuum()
    assert (table.unnamed(), table.missing(), table.rows()) == (set(), set(), LEFT)


def many_positions(make: Make, catalog: str = "by_name") -> SparkIceberg:
    """Three delete files by position, one of each statement."""
    of_partition = f"{MERGE_ON_READ.format(2)}, 'write.delete.granularity'='partition'"
    table = make(catalog, properties=of_partition)
    table.append(*range(20))
    for number in range(3):
        table.sql(f"DELETE FROM {table} WHERE id = {number}")
    return table


def data_files(table: SparkIceberg) -> set[str]:
    return {one.path for one in table.reader.files(table.location) if one.deletes is None}


def test_delete_files_by_position_become_few_and_no_data_is_rewritten(make: Make) -> None:
    table = many_positions(make)
    data, before = data_files(table), table.seen
    assert before.deletes[0].files == 3
    report = table.compact("run-7", join=True, least=NEVER)
    after = table.seen
    assert (data_files(table), table.rows()) == (data, list(range(3, 20)))
    assert after.deletes[0].files < 3 and after.deletes[0].rows == 3, report.message
    last = table.reader.newest(table.location, count=1)[0]
    assert (last.kind, last.run_id, last.parent) == (CommitKind.MAINTENANCE, "run-7", before.version)


@pytest.mark.parametrize(
    "point",
    mostly_long(
        ["iceberg.branched", "iceberg.rewritten", "iceberg.deletes_rewritten"], ["iceberg.deletes_rewritten"]
    ),
)
def test_deletes_by_others_that_come_meanwhile_count(
    make: Make, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An equality delete and an append beside a rewrite bring deleted rows back where the rewrite is published."""
    table = many_positions(make)

    def listener(reached: str) -> None:
        if reached == point:
            delete_by_equality(table, 5, 6)
            table.append(1000)

    monkeypatch.setattr(failpoints, "listener", listener)
    with pytest.raises(ConflictError):
        table.compact(purge=point != "iceberg.deletes_rewritten", join=True, least=NEVER)
    monkeypatch.undo()
    assert table.rows() == [3, 4, *range(7, 20), 1000]
    table.compact(purge=True, least=NEVER)
    assert (table.rows(), table.seen.deletes) == ([3, 4, *range(7, 20), 1000], ())
    table.vacuum()
    assert table.missing() == set()
    assert {one for one in table.unnamed() if one.endswith(".parquet")} == set()


@pytest.mark.parametrize(
    "point",
    mostly_long(
        points_of("test_a_run_that_is_killed_while_it_applies_deletes_is_made_again"),
        ["iceberg.deletes_rewritten"],
    ),
)
def test_a_run_that_is_killed_while_it_applies_deletes_is_made_again(make: Make, point: str) -> None:
    table = many_positions(make, "by_path")
    killed_here(point, lambda: table.compact(purge=True, least=NEVER))
    assert (table.rows(), table.missing()) == (list(range(3, 20)), set())
    table.append(9999)
    table.compact("run-2", purge=True, join=True, least=NEVER)
    assert (table.rows(), table.seen.deletes) == ([*range(3, 20), 9999], ())
    table.vacuum(full=True)
    assert (table.unnamed(), table.missing(), table.rows()) == (set(), set(), [*range(3, 20), 9999])
