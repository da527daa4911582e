"""How people see a value; programs get it as the system tables have it."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake

from lakewarden.catalog.model.rows import PolicySettings
from lakewarden.catalog.policy.effective import DEFAULTS, POLICY_KEYS, parse_value
from lakewarden.daemon.cli.cells import as_times, cell
from lakewarden.daemon.cli.output import Format, plain, show, show_one
from support.processes.commands import Cli, caller

AT = datetime(2026, 11, 23, 12, 0, 1, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("until", AT, "2026-11-23 12:00:01"),
        ("at", AT.astimezone(timezone(timedelta(hours=2))), "2026-11-23 12:00:01"),
        (
            "noted_at",
            "2026-11-23T12:00:01Z is what somebody wrote",
            "2026-11-23T12:00:01Z is what somebody wrote",
        ),
        ("properties", {"since": AT.isoformat(), "n": None}, "since=2026-11-23 12:00:01"),
        ("details", {"since": AT.isoformat()}, f"since={AT.isoformat()}"),
        ("seen", True, "yes"),
        ("bytes", 1536, "1.5 KiB"),
        ("rows", 1536, "1536"),
        ("share", 0.123456, "0.123"),
        ("findings", ["of", "others"], "of, others"),
        ("message", None, ""),
        ("message", "\x1b[31m", "\\x1b[31m"),
    ],
)
def test_a_value_as_people_see_it(column: str, value: Any, shown: str) -> None:
    assert cell(column, plain(value)) == shown


def test_a_policy_is_shown_in_the_words_it_is_set_in() -> None:
    shown = cell("policy", plain(PolicySettings(vacuum_retention_seconds=604_800, vacuum_max_share=0.25)))
    assert shown == "vacuum.retention 7 days, vacuum.max_share 25%"


@pytest.mark.parametrize("key", [key for key in POLICY_KEYS if key.default is not None], ids=str)
def test_what_is_shown_of_a_policy_can_be_set_again(key: Any) -> None:
    value = getattr(DEFAULTS, key.field)
    name, _, text = cell("policy", {key.field: plain(value)}).partition(" ")
    assert (name, parse_value(name, text)) == (key.key, value)


def test_a_policy_key_of_a_newer_lakewarden_is_shown_as_it_is() -> None:
    assert cell("policy", {"teleport_seconds": 7}) == "teleport_seconds 7"


def test_times_within_a_text_of_ours() -> None:
    assert as_times("from 2026-11-23T12:00:01.5Z to 2026-11-24T00:00:00+00:00") == (
        "from 2026-11-23 12:00:01 to 2026-11-24 00:00:00"
    )


def test_programs_get_iso_times(capsys: pytest.CaptureFixture[str]) -> None:
    iso = "2026-11-23T12:00:01.500000Z"
    for format, read in ((Format.JSON, json.loads), (Format.YAML, yaml.safe_load)):
        show_one({"at": AT, "policy": PolicySettings(vacuum_enabled=True)}, format=format)
        found = read(capsys.readouterr().out)
        assert (found["at"], found["policy"]["vacuum_enabled"]) == (iso, True)
    show_one({"at": AT}, format=Format.CSV)
    assert capsys.readouterr().out == f"at\n{iso}\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("\x1b[31mred\x9b", "\\x1b[31mred\\x9b"),
        ("a\u202eb\u200b", "a\\u202eb\\u200b"),
        ("=HYPERLINK(A1)", "'=HYPERLINK(A1)"),
        ("+1+cmd|x", "'+1+cmd|x"),
        ("-2-3", "'-2-3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("-1.5", "-1.5"),
        ("+1e9", "+1e9"),
        (-1.5, "-1.5"),
        ("two\nlines", '"two\nlines"'),
        (["\x1b"], '"[""\\u001b""]"'),
        ("=\r", "'=\\r"),
    ],
)
def test_csv_is_neither_obeyed_by_a_terminal_nor_computed_by_a_spreadsheet(
    value: Any, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show([{"x": value}], columns=["x"], format=Format.CSV)
    assert capsys.readouterr().out == f"x\n{shown}\n"


def test_the_names_of_columns_are_not_obeyed_either(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"\x1b[2J": 1, "=1+1": "\u202e"}
    for format, shown in (
        (Format.TABLE, "\\X1B[2J  =1+1\n1        \\u202e\n"),
        (Format.CSV, "\\x1b[2J,'=1+1\n1,\\u202e\n"),
    ):
        show([row], columns=list(row), format=format)
        assert capsys.readouterr().out == shown
    show_one(row, format=Format.TABLE)
    assert capsys.readouterr().out == "\\x1b[2J  1\n=1+1     \\u202e\n"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    call = caller(tmp_path / "home", monkeypatch, capfdbinary)
    assert call("init").code == 0
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}))
    return call


def test_registering_one_table_is_told_in_a_sentence_and_some_facts(cli: Cli, tmp_path: Path) -> None:
    said = cli("tables", "register", str(tmp_path / "t"), "--name", "db.t", "--owner", "bo")
    assert said.err == "Registered db.t (active).\n"
    assert [line.split()[0] for line in said.out.splitlines()] == [
        "name",
        "location",
        "owner",
        "version",
        "files",
        "bytes",
    ]
    again = cli("tables", "register", str(tmp_path / "t"), "--name", "db.t", "-o", "json")
    assert again.err == "Already managed: db.t (active).\n"
    assert {"table_id", "state", "policy", "findings", "checked_at"} <= again.json.keys()
    whole = cli("tables", "register", str(tmp_path / "t"), "--name", "db.t", "-o", "wide").out
    assert len(whole.splitlines()) == len(again.json)


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("tables show db.t", True),
        ("tables history db.t", False),
        ("why db.t", False),
        ("jobs plan --explain", False),
        ("sql 'DESCRIBE MANAGED db.t'", False),
        ("sql 'SELECT * FROM lakewarden.tables'", True),
        ("tables list -o wide", True),
        ("sql 'SELECT * FROM lakewarden.audit' -o wide", False),
    ],
)
def test_no_command_shows_people_a_raw_time_or_field_of_a_policy(
    line: str, whole: bool, cli: Cli, tmp_path: Path
) -> None:
    cli("tables", "register", str(tmp_path / "t"), "--name", "db.t")
    cli("tables", "policy", "set", "db.t", "vacuum.retention=9 days", "mode=manage")
    first, _, rest = line.partition(" '")
    statement, _, options = rest.partition("'")
    said = cli(*first.split(), *filter(None, [statement]), *options.split())
    assert said.code == 0
    assert as_times(said.out) == said.out
    assert "vacuum_retention" not in said.out
    assert ("vacuum.retention 9 days" in said.out) is whole
