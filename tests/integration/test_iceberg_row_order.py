"""In which order compactions of Iceberg tables write rows: as their owner wants."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.engines.iceberg.java_tables import opened
from lakewarden.jobs.engines.iceberg.row_order import ORDER
from support.builders.spark_iceberg import Make, SparkIceberg

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
PAIRS = [(one, other) for other in (3, 0, 2, 1) for one in (2, 0, 3, 1)]


def scattered(make: Make, order: str | None, **how: str) -> SparkIceberg:
    """The rows of `PAIRS` in four files."""
    table = make("by_name", **how)
    table.sql(f"ALTER TABLE {table} ADD COLUMN other BIGINT")
    for start in range(0, 16, 4):
        values = ", ".join(f"({one}, 'a', NULL, {other})" for one, other in PAIRS[start : start + 4])
        table.sql(f"INSERT INTO {table} VALUES {values}")
    if order is not None:
        table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{ORDER}'='{order}')")
    return table


def stored(table: SparkIceberg) -> list[tuple[int, int]]:
    """The rows of its one file, as they lie there."""
    ((path,),) = table.sql(f"SELECT file_path FROM {table}.files")
    rows = pq.read_table(Path(str(path).removeprefix("file:"))).to_pylist()
    return [(row["id"], row["other"]) for row in rows]


def z(pair: tuple[int, int]) -> int:
    """The bits of both, interleaved."""
    one, other = pair
    return sum(((one >> bit & 1) << (2 * bit + 1)) | ((other >> bit & 1) << (2 * bit)) for bit in range(2))


def test_rows_are_sorted_as_the_table_is_once_its_owner_wants_it(make: Make) -> None:
    table = scattered(make, None)
    # WRITE LOCALLY ORDERED BY, where the session has the statements of Iceberg.
    order = opened(table.spark, table.heads, table.location).table.replaceSortOrder()
    iceberg = table.spark._jvm.org.apache.iceberg  # type: ignore[union-attr]  # Java's
    ref, nulls = iceberg.expressions.Expressions.ref, iceberg.NullOrder.NULLS_LAST
    order.desc(ref("other"), nulls).asc(ref("id"), nulls).commit()
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{ORDER}'='table')")
    before = table.seen.files
    report = table.compact("run-7")
    assert stored(table) == sorted(PAIRS, key=lambda pair: (-pair[1], pair[0])), report.message
    last = table.reader.newest(table.location, count=1)[0]
    assert (last.run_id, report.files) == ("run-7", before)
    assert table.compact().skipped


def test_rows_are_laid_out_by_the_z_order_of_columns(make: Make) -> None:
    table = scattered(make, "id, other")
    table.compact()
    assert stored(table) == sorted(PAIRS, key=z)


NEVER = {
    "id, nope": "names a column nope, which the table does not have",
    "table": "says `table`, and the table is not sorted by anything",
    "id, part": "names part, which is one value in each partition",
    "id, price": r"names price \(decimal\(9, 2\)\), which has no z-order",
    "seen, id": r"names seen \(timestamp\), which has no z-order",
    "place.x, id": r"names place.x \(int\), which has no z-order",
}


def test_an_order_that_the_table_cannot_have_is_one_sentence(make: Make) -> None:
    table = scattered(make, None, partitioned_by="part")
    table.sql(
        f"ALTER TABLE {table} ADD COLUMNS price DECIMAL(9, 2), seen TIMESTAMP_NTZ, place STRUCT<x: INT>"
    )
    for order, said in NEVER.items():
        table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{ORDER}'='{order}')")
        before = (table.seen.head, table.files())
        with pytest.raises(PreconditionError, match=said):
            table.compact()
        assert (table.seen.head, table.files()) == before
