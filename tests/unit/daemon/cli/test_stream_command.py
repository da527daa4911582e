"""`lakewarden lineage stream`: declare checkpoints, take them back, see what is known of a table's batches."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.model.lineage_record import LineageInput
from support.builders.delta_logs import LogWriter, add
from support.builders.derived import reading, write
from support.builders.stream_files import QUERY, checkpoint, offset
from support.processes.commands import Cli, caller


class Shore:
    """A home with a source and a sink; the stream between them has written three batches."""

    def __init__(self, folder: Path, call: Cli) -> None:
        self.folder, self.call = folder, call
        source, sink = (LogWriter(root=folder / name).create() for name in ("source", "sink"))
        for epoch in range(3):
            source.commit(add(f"a{epoch}"), operationParameters={"mode": "Append"})
            sink.commit(
                add(f"b{epoch}"),
                operation="STREAMING UPDATE",
                operationParameters={"outputMode": "Append", "queryId": QUERY, "epochId": str(epoch)},
            )
        assert call("init").code == 0
        for name in ("source", "sink"):
            assert call("tables", "register", str(folder / name), "--name", f"db.{name}").code == 0
        ends = [[offset(epoch + 2, table=source.table_id)] for epoch in range(3)]
        self.checkpoint = checkpoint(folder / "check points", *ends, query=QUERY)

    def stream(self, *options: str) -> list[dict[str, Any]]:
        said = self.call("lineage", "stream", "db.sink", "-o", "json", *options)
        assert said.code == 0, said
        found: list[dict[str, Any]] = json.loads(said.out)
        return found

    def edges(self) -> list[tuple[str, int, int | None, int | None, str]]:
        said = self.call("lineage", "show", "db.sink", "--versions", "-o", "json")
        return [
            (
                one["input"],
                one["output_version"],
                one["from_version"],
                one["input_version"],
                one["confidence"],
            )
            for one in json.loads(said.out)["edges"]
            if one["output"] == "db.sink"
        ]


@pytest.fixture
def shore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Shore:
    return Shore(tmp_path, caller(tmp_path / "home", monkeypatch, capfdbinary))


def test_a_table_tells_of_the_streams_in_its_log(shore: Shore) -> None:
    assert shore.stream() == [
        {"query_id": QUERY, "checkpoint": None, "starting_version": "", "batches": 3, "known": 0}
    ]
    assert "No stream is known to write it" in shore.call("lineage", "stream", "db.source").err


@pytest.mark.heavy
def test_an_upserted_batch_is_known_by_its_own_record(shore: Shore) -> None:
    write(shore.folder / "upserts", 1)
    record = replace(reading({}), query="another query")
    write(shore.folder / "upserts", 2, said=record)
    assert shore.call("tables", "register", str(shore.folder / "upserts"), "--name", "db.upserts").code == 0
    told = json.loads(shore.call("lineage", "stream", "db.upserts", "-o", "json").out)
    assert [(one["query_id"], one["batches"], one["known"]) for one in told] == [("another query", 1, 1)]
    nobody_knows = LineageInput(location="", format="rdd")
    write(shore.folder / "upserts", 3, said=replace(record, inputs=(nobody_knows,)))
    (counted,) = json.loads(shore.call("lineage", "stream", "db.upserts", "-o", "json").out)
    assert (counted["batches"], counted["known"]) == (2, 1)


@pytest.mark.heavy
def test_a_declaration_makes_the_batches_known_and_removing_it_forgets_nothing(shore: Shore) -> None:
    subprocess.run([sys.executable, "-m", "lakewarden.daemon", "daemon", "--once"], check=True)
    (before,) = shore.stream()
    assert before["known"] == 0
    (declared,) = shore.stream("--checkpoint", str(shore.checkpoint), "--starting-version", "none")
    assert (declared["query_id"], declared["starting_version"], declared["known"]) == (QUERY, "none", 3)
    assert declared["checkpoint"].endswith("/check%20points")
    assert shore.edges() == [
        ("db.source", 3, 2, 3, "stream"),
        ("db.source", 2, 1, 2, "stream"),
        ("db.source", 1, None, 1, "stream"),
    ]
    (removed,) = shore.stream("--checkpoint", str(shore.checkpoint), "--remove")
    assert (removed["checkpoint"], removed["known"]) == (None, 3)


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--checkpoint", "nowhere"], 4, "There is no checkpoint of a streaming query at"),
        (["--checkpoint", "nowhere", "--remove"], 2, "db.sink has no checkpoint at"),
        (["--remove"], 2, "Which checkpoint?"),
        (["--checkpoint", "nowhere", "--starting-version", "latest"], 2, "latest is not a starting version."),
    ],
    ids=["no checkpoint", "not declared", "none named", "latest"],
)
def test_what_makes_no_sense_is_said(shore: Shore, options: list[str], code: int, sentence: str) -> None:
    said = shore.call("lineage", "stream", "db.sink", *options)
    assert said.code == code and sentence in said.err, said


def test_a_scope_has_no_streams(shore: Shore) -> None:
    said = shore.call("lineage", "stream", "db.*", "--checkpoint", str(shore.checkpoint))
    assert said.code == 2 and "db.* is not a table." in said.err, said
