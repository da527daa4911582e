"""Results: kept in memory or in a file, read page by page, refused when they are too large."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.catalog.errors import RefusedError
from lakewarden.daemon.gateway.results import From, ResultReader, Store, gathered, result_of
from lakewarden.daemon.gateway.sharing.space import Space
from lakewarden.daemon.gateway.wire_types import ResultColumn

NUMBERS = (ResultColumn(name="n", type="bigint"),)

SPACE = Space(memory=2**40, disk=2**40)


def store(folder: Path, *, memory: int = 1_000_000, limit: int = 1_000_000) -> Store:
    return Store(folder=folder / "spilled", memory=memory, limit=limit, account=SPACE.account("ana"))


def batches(sizes: Sequence[int]) -> list[pa.RecordBatch]:
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    return [
        pa.record_batch({"c0": pa.array(range(end - size, end), pa.int64())})
        for size, end in zip(sizes, ends, strict=True)
    ]


def rest(result: ResultReader, most: int) -> list[int]:
    found: list[int] = []
    while (page := result.page(From.NEXT, most)[1]).num_rows:
        assert page.num_rows <= most
        found += page.column(0).to_pylist()
    return found


@pytest.mark.parametrize("memory", [1_000_000, 1], ids=["in memory", "in a file"])
@given(sizes=st.lists(st.integers(0, 7), max_size=6), most=st.integers(1, 9))
def test_pages_hold_every_row_once_in_the_order_in_which_they_came(
    memory: int, sizes: list[int], most: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = batches(sizes)
    result = gathered(NUMBERS, made, store(tmp_path_factory.mktemp("r"), memory=memory))
    expected = [row for one in made for row in one.column(0).to_pylist()]
    assert result.rows == len(expected)
    assert rest(result, most) == expected
    assert result.page(From.FIRST, 1_000)[1].num_rows == min(len(expected), 1_000)
    result.close()


def test_a_page_may_be_read_again(tmp_path: Path) -> None:
    result = gathered(NUMBERS, batches([10]), store(tmp_path))
    assert [result.page(From.NEXT, 4)[0], result.page(From.NEXT, 4)[0]] == [0, 4]
    assert result.page(From.PRIOR, 4)[1].column(0).to_pylist() == [0, 1, 2, 3]
    assert result.page(From.NEXT, 4)[0] == 4


def test_a_spilled_result_leaves_no_file_however_it_ends(tmp_path: Path) -> None:
    kept = gathered(NUMBERS, batches([10]), store(tmp_path, memory=1))
    assert len(list((tmp_path / "spilled").iterdir())) == 1
    kept.close()
    with pytest.raises(RefusedError, match=r"larger than .*"):
        gathered(NUMBERS, batches([10, 1_000]), store(tmp_path, memory=1, limit=1_000))
    assert list((tmp_path / "spilled").iterdir()) == []
    assert kept.page(From.NEXT, 5)[1].num_rows == 0


def test_wide_rows_come_in_pages_that_are_not_too_large(tmp_path: Path) -> None:
    wide = pa.record_batch({"c0": pa.array(["x" * 1_000_000] * 40)})
    result = gathered(
        (ResultColumn(name="s", type="string"),), [wide], store(tmp_path, memory=1, limit=10**9)
    )
    pages = []
    while (page := result.page(From.NEXT, 1_000)[1]).num_rows:
        pages.append(page.num_rows)
    assert sum(pages) == 40
    assert max(pages) < 20


def test_what_is_not_plain_becomes_text_as_spark_writes_it(tmp_path: Path) -> None:
    table = pa.table(
        {
            "t": pa.array([datetime(2020, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC), None]),
            "d": pa.array([date(2020, 1, 2), None]),
            "n": pa.array([Decimal("1.50"), None]),
            "s": pa.array([{"a": 1, "b": None}, None], pa.struct({"a": pa.int32(), "b": pa.string()})),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
            "l": pa.array([[1, None], None]),
        }
    )
    result = result_of(table, store(tmp_path))
    assert [column.type for column in result.columns] == [
        "timestamp", "date", "decimal(3,2)", "struct<a:int,b:string>", "map<string,int>", "array<bigint>",
    ]  # fmt: skip
    (row, empty) = result.page(From.NEXT, 9)[1].to_pylist()
    assert list(row.values()) == [
        "2020-01-02 03:04:05.600000", "2020-01-02", "1.50", '{"a":1,"b":null}', '{"k":1}', "[1,null]",
    ]  # fmt: skip
    assert set(empty.values()) == {None}
