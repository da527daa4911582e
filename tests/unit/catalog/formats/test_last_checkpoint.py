"""What is said when the log sends its readers to a checkpoint: only that one which is gone is a problem."""

from pathlib import Path

import pytest

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.storage.file_store import canonical
from support.builders.delta_logs import LogWriter, add


@pytest.fixture
def table(tmp_path: Path) -> LogWriter:
    """Six versions, and a checkpoint of version 2."""
    made = LogWriter(root=tmp_path / "t").create()
    for number in range(1, 6):
        made.commit(add(f"{number}.parquet"))
        if number == 2:
            made.checkpoint("classic")
    return made


def observed(table: LogWriter) -> Observation | LogProblem:
    return DeltaReader().observe(canonical(str(table.root)))


@pytest.mark.parametrize(
    ("hint", "lost"),
    [
        pytest.param('{"version":4,"size":7}', 4, id="an older one is there"),
        pytest.param('{"version":99,"size":7}', 99, id="beyond head"),
        pytest.param('{"version":2,"size":7}', None, id="it is there"),
        pytest.param('{"version":1,"size":7}', None, id="a later one is there"),
        pytest.param('{"vers', None, id="makes no sense"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="no hint"),
    ],
)
def test_a_hint_at_what_is_gone_is_found(table: LogWriter, hint: str | None, lost: int | None) -> None:
    path = table.log / "_last_checkpoint"
    path.unlink() if hint is None else path.write_text(hint)
    seen = observed(table)
    assert isinstance(seen, Observation) and (seen.version, seen.files) == (5, 5)
    assert [one.check for one in seen.warnings] == ([] if lost is None else ["last_checkpoint"])
    assert lost is None or f"a checkpoint of version {lost}," in seen.warnings[0].message


def test_a_log_that_nothing_rebuilds_is_an_error(table: LogWriter) -> None:
    for version in range(3):
        (table.log / f"{version:020d}.json").unlink()
    (table.log / f"{2:020d}.checkpoint.parquet").unlink()
    seen = observed(table)
    assert isinstance(seen, LogProblem) and seen.check == "log_contiguous"
