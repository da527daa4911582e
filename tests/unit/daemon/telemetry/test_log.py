"""Every line is in the format that was asked for, whoever said it; in anybody else's program it goes to `logging`."""

import json
import logging
import sys
import warnings

import pytest
import structlog

from lakewarden.catalog.errors import MetastoreAwayError
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.daemon.telemetry.log import configure, get_log
from support.servers.ports import free_ports

ESCAPE = "\x1b["


def all_say_something() -> None:
    get_log("cycle").info("looked", tables=3)
    logging.getLogger("some.library").warning("it is %s", "slow")
    logging.getLogger("some.library").info("this is its own business")
    warnings.warn("soon gone", FutureWarning, stacklevel=1)
    try:
        raise ValueError("oh")
    except ValueError:
        get_log("cycle").exception("unexpected error")
        logging.getLogger("some.library").exception("it failed")
    with pytest.raises(MetastoreAwayError):
        HiveMetastore(f"thrift://127.0.0.1:{free_ports(1)[0]}").databases()


def test_each_line_in_json_parses_also_those_of_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    configure(level="info", format="json")
    all_say_something()
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in err.splitlines()]
    assert out == ""
    assert [
        (one["level"], one["event"].partition("\n")[0]) for one in lines if "soon" not in one["event"]
    ] == [
        ("info", "looked"),
        ("warning", "it is slow"),
        ("error", "unexpected error"),
        ("error", "it failed"),
    ], "thrift raises what it logs: the one who catches it says so"
    assert all("timestamp" in one for one in lines)
    assert [one["logger"] for one in lines if "part" not in one] == [
        "some.library",
        "py.warnings",
        "some.library",
    ]
    assert [one["exception"].splitlines()[-1] for one in lines if "exception" in one] == [
        "ValueError: oh"
    ] * 2


def test_who_reads_the_source_sees_what_thrift_has_to_say(capsys: pytest.CaptureFixture[str]) -> None:
    configure(level="debug", format="json")
    all_say_something()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert any(one.get("logger", "").startswith("thrift.") for one in lines)
    configure(level="info", format="json")
    all_say_something()
    assert "thrift." not in capsys.readouterr().err


def test_text_in_a_file_has_no_escape_codes(capsys: pytest.CaptureFixture[str]) -> None:
    configure(level="debug", format="text")
    all_say_something()
    err = capsys.readouterr().err
    assert "looked" in err and "it is slow" in err and "ValueError: oh" in err
    assert ESCAPE not in err


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
    ids=["a terminal", "NO_COLOR", "NO_COLOR that is empty", "a dumb terminal"],
)
def test_a_terminal_has_colours_unless_it_does_not_want_them(
    environment: dict[str, str],
    coloured: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(key, value)
    if "NO_COLOR" not in environment:
        monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    configure(level="info", format="auto")
    all_say_something()
    err = capsys.readouterr().err
    assert (ESCAPE in err) is coloured and not err.startswith("{")


def test_in_somebody_elses_program_lines_go_to_logging_and_nothing_to_the_console(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO, "lakewarden")
    get_log("revoke").warning("queued runs stay", because="no answer, 100 % sure")
    get_log("revoke").bind(table="db.t").info("and so on")
    get_log("revoke").debug("not this")
    try:
        raise ValueError("oh")
    except ValueError:
        get_log("cycle").exception("unexpected error")
    assert [(one.name, one.levelname, one.getMessage()) for one in caplog.records] == [
        ("lakewarden.revoke", "WARNING", "queued runs stay (because=no answer, 100 % sure)"),
        ("lakewarden.revoke", "INFO", "and so on (table=db.t)"),
        ("lakewarden.cycle", "ERROR", "unexpected error"),
    ]
    assert caplog.records[-1].exc_info is not None
    assert capsys.readouterr() == ("", "")


def test_a_program_that_uses_structlog_for_itself_hears_of_us_through_logging_all_the_same(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    structlog.configure(processors=[structlog.processors.JSONRenderer()], cache_logger_on_first_use=True)
    get_log("revoke").warning("queued runs stay")
    assert [one.name for one in caplog.records] == ["lakewarden.revoke"]
    assert capsys.readouterr().out == ""
