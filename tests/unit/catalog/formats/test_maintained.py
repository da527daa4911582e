"""Which installations look after a table, as its log says: by the marks of both engines, not by anybody's words."""

import json
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.engines.delta.rs_metadata import marks
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import stamp
from support.builders.delta_logs import LogWriter, add


@pytest.fixture
def table(tmp_path: Path) -> LogWriter:
    return LogWriter(root=tmp_path / "t").create()


def observed(table: LogWriter, since: Observation | None = None) -> Observation:
    seen = DeltaReader().observe(canonical(str(table.root)), since=since)
    assert isinstance(seen, Observation)
    return seen


def maintained(seen: Observation) -> list[tuple[str, int]]:
    return [(one.installation, one.version) for one in seen.maintained]


def test_the_latest_commit_of_each_installation_is_known_by_the_marks_of_both_engines(
    table: LogWriter,
) -> None:
    table.commit(operation="OPTIMIZE", **marks("run-1", "one"))
    table.commit(operation="OPTIMIZE", userMetadata=stamp("run-2", "compact", "two"))
    table.commit(add("a"), **marks("run-3", None), userMetadata=stamp("run-3", "compact"))
    early = observed(table)
    assert maintained(early) == [("two", 2), ("one", 1)]
    table.commit(operation="OPTIMIZE", **marks("run-4", "one"))
    assert maintained(observed(table)) == maintained(observed(table, early)) == [("one", 4), ("two", 2)]


def test_what_is_behind_a_checkpoint_counts_as_long_as_it_is_in_the_log(table: LogWriter) -> None:
    table.commit(operation="OPTIMIZE", **marks("run-1", "one"))
    table.commit(add("a"))
    table.checkpoint()
    table.commit(add("b"))
    assert maintained(observed(table)) == [("one", 1)]
    table.clean(2)
    assert maintained(observed(table)) == []


@pytest.mark.parametrize(
    "info",
    [
        {"lakewarden.installation": 7},
        {"lakewarden.installation": ""},
        {"lakewarden.installation": "x" * 65},
        {"userMetadata": '{"lakewarden": {"installation": ["one"]}}'},
        {"userMetadata": '{"lakewarden": "installation"'},
        {"userMetadata": json.dumps({"installation": "one"})},
    ],
    ids=["a number", "nothing", "too long", "a list", "no JSON", "somebody else's"],
)
def test_anybody_may_write_anything_there(table: LogWriter, info: dict[str, Any]) -> None:
    table.commit(add("a"), **info)
    assert maintained(observed(table)) == []


def test_no_log_makes_the_list_of_installations_long(table: LogWriter) -> None:
    for number in range(20):
        table.commit(operation="OPTIMIZE", **marks("run", f"one-{number}"))
    assert maintained(observed(table))[0] == ("one-19", 20) and len(observed(table).maintained) == 8
