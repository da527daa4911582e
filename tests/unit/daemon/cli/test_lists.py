"""`--columns`, `--sort` and `-o wide`: what is printed of a list, in every format."""

import json
from collections.abc import Iterator

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.cli.format import Format, ListView, for_people, look_at
from lakewarden.daemon.cli.output import show

ROWS = [
    {"name": "db.b", "bytes": 2048, "owner": None, "version": 10},
    {"name": "db.a", "bytes": None, "owner": "ana", "version": 9},
    {"name": "db.c", "bytes": 1, "owner": "bo", "version": 8},
]


@pytest.fixture(autouse=True)
def plain_again() -> Iterator[None]:
    yield
    for_people()


def printed(
    capsys: pytest.CaptureFixture[str], seen: ListView, format: Format = Format.TABLE
) -> list[list[str]]:
    look_at(seen)
    show(ROWS, columns=["name", "bytes"], format=format)
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_columns_are_those_asked_for_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, ListView(columns=("version", "name")))
    assert lines == [["VERSION", "NAME"], ["10", "db.b"], ["9", "db.a"], ["8", "db.c"]]


def test_programs_get_the_columns_asked_for_too(capsys: pytest.CaptureFixture[str]) -> None:
    look_at(ListView(columns=("version",)))
    show(ROWS, columns=["name", "bytes"], format=Format.JSON)
    assert json.loads(capsys.readouterr().out) == [{"version": 10}, {"version": 9}, {"version": 8}]


@pytest.mark.parametrize(
    ("seen", "names"),
    [
        (ListView(sort="bytes"), ["db.c", "db.b", "db.a"]),
        (ListView(sort="bytes", descending=True), ["db.b", "db.c", "db.a"]),
        (ListView(sort="name"), ["db.a", "db.b", "db.c"]),
        (ListView(sort="version"), ["db.c", "db.a", "db.b"]),
    ],
)
def test_rows_are_sorted_by_value_and_those_without_one_come_last(
    seen: ListView, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert [line[0] for line in printed(capsys, seen)[1:]] == names


def test_a_limit_counts_after_sorting(capsys: pytest.CaptureFixture[str]) -> None:
    look_at(ListView(sort="version"))
    show(ROWS, columns=["name"], format=Format.TABLE, limit=1)
    assert capsys.readouterr().out.split() == ["NAME", "db.c"]


def test_wide_shows_every_column_those_of_the_command_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, ListView(wide=True))[0] == ["NAME", "BYTES", "OWNER", "VERSION"]


@pytest.mark.parametrize("seen", [ListView(columns=("nme",)), ListView(sort="nme")])
def test_a_column_that_there_is_none_of_is_refused_with_the_nearest(seen: ListView) -> None:
    look_at(seen)
    with pytest.raises(UsageError, match="no column 'nme'") as refused:
        show(ROWS, columns=["name"], format=Format.CSV)
    assert refused.value.hint == "Did you mean name?"


def test_a_pipe_gets_each_row_in_one_line_as_long_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"name": "db.t", "message": "word " * 100}], columns=["name", "message"], format=Format.TABLE)
    assert capsys.readouterr().out.splitlines()[1] == "db.t  " + ("word " * 100).rstrip()
