"""What people and programs read of a comparison of rows; and what becomes of one whose process ends badly."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ExecutionError, PreconditionError
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.rollbacks.row_diff import compare_rows
from lakewarden.jobs.runs.row_diff import (
    ColumnDifference,
    DiffRequest,
    KeyCounts,
    RowDiff,
    Sample,
    SampleRow,
    as_lines,
    decode_diff,
    encode_diff,
    json_of,
)

ASKED = DiffRequest(name="db.t", location="file:///w/t", head=7, target=4, keys=("id",))
BAD = SampleRow(values=(("id", "1"), ("name", None)), times=2)
GOOD = SampleRow(values=(("id", "1"), ("name", "a\x1b[2Jb")), times=1)
DIFF = RowDiff(
    request=ASKED,
    rows_head=1200,
    rows_target=1199,
    goes=12,
    comes=11,
    keys=KeyCounts(goes=1, comes=0, changes=11),
    columns=(
        ColumnDifference(name="price", head="double", target=None, values=4),
        ColumnDifference(name="old", head=None, target="string", values=1),
        ColumnDifference(name="n", head="bigint", target="int"),
    ),
    samples=(Sample(key=(("id", "1"),), goes=(BAD,), comes=(GOOD,)),),
)


def test_people_read_counts_first_then_columns_then_rows_that_go_and_come_back() -> None:
    assert list(as_lines(DIFF)) == [
        "Rows of db.t: 1,200 rows in version 7, 1,199 in version 4; 12 go, 11 come back",
        "  keys (id): 1 go, 0 come back, 11 change",
        "  column price (double) goes with 4 values",
        "  column old (string) comes back with 1 value",
        "  column n is bigint now and becomes int",
        "  - 2 times id=1, name=null",
        "  + id=1, name=a\\x1b[2Jb",
        "  and 20 more rows",
    ]
    wide = replace(DIFF, samples=(Sample(goes=(SampleRow(values=(("x", "y" * 500),), times=1),)),))
    assert max(map(len, as_lines(wide))) == 110


def test_programs_get_the_same_as_fields_and_so_does_another_process() -> None:
    assert json_of(DIFF) == {
        "name": "db.t",
        "from": 7,
        "to": 4,
        "key": ["id"],
        "rows_from": 1200,
        "rows_to": 1199,
        "goes": 12,
        "comes_back": 11,
        "keys": {"goes": 1, "comes_back": 0, "changes": 11},
        "columns": [
            {"name": "price", "from": "double", "to": None, "values": 4},
            {"name": "old", "from": None, "to": "string", "values": 1},
            {"name": "n", "from": "bigint", "to": "int", "values": None},
        ],
        "samples": [
            {
                "key": {"id": "1"},
                "goes": [{"row": {"id": "1", "name": None}, "times": 2}],
                "comes_back": [{"row": {"id": "1", "name": "a\x1b[2Jb"}, "times": 1}],
            }
        ],
    }
    assert decode_diff(encode_diff(DIFF)) == DIFF


def answered(home: Path, program: str) -> tuple[RowDiff, ...]:
    services = Services(load_settings(home=home))
    return compare_rows(services, [ASKED], tell=lambda _: None, command=(sys.executable, "-c", program))


def test_the_process_is_asked_on_its_input_and_answers_on_its_output(tmp_path: Path) -> None:
    program = (
        "import sys; sys.stdin.readline(); asked = sys.stdin.readline()\n"
        f"assert '\"head\": 7' in asked; print({encode_diff(DIFF).decode()!r})"
    )
    assert answered(tmp_path, program) == (DIFF,)


def test_what_the_process_says_went_wrong_is_the_error_of_the_command(tmp_path: Path) -> None:
    told = '{"error": "PreconditionError", "message": "db.t has no column x.", "hint": "Look."}'
    with pytest.raises(PreconditionError, match=r"db\.t has no column x\.") as raised:
        answered(tmp_path, f"print({told!r})")
    assert raised.value.hint == "Look."
    with pytest.raises(ExecutionError, match="Spark ended before the rows were compared") as ended:
        answered(tmp_path, "import sys; sys.exit('no Java')")
    assert "row-diff.log" in ended.value.hint
    assert (tmp_path / "logs" / "row-diff.log").read_text().strip() == "no Java"
