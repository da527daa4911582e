"""What commands print: a terminal gets no control character out of anybody's names,
programs get every value as it is."""

import json

import pytest

from lakewarden.daemon.cli.output import Format, note, show, show_one

ROW = {"name": "db.t", "location": "file:///a\x1b[2Jb\nc\u202ed", "owner": "Zo\u00eb \U0001f600"}


def test_a_table_escapes_what_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    show([ROW], columns=["name", "location", "owner"], format=Format.TABLE)
    show_one(ROW, format=Format.TABLE)
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\u202e" not in said
    assert said.count(r"file:///a\x1b[2Jb\nc\u202ed") == 2
    assert said.count("Zo\u00eb \U0001f600") == 2, "letters stay what they are"


def test_a_remark_keeps_its_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    note("two\nlines of \x1b]0;somebody\x07")
    assert capsys.readouterr().err == "two\nlines of \\x1b]0;somebody\\x07\n"


def test_programs_get_every_value_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    show_one(ROW, format=Format.JSON)
    assert json.loads(capsys.readouterr().out) == ROW
