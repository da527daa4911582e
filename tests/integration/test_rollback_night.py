"""`lakewarden rollback` as somebody uses it who was woken by it: real tables, the whole text, the command to paste."""

import shlex
from pathlib import Path
from threading import Timer

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.errors import ExitCode
from support.builders.derived import ids, write
from support.processes import slow_worker
from support.processes.commands import Cli, Said, registered

DATA = pa.table({"id": pa.array([7], pa.int64())})


class Lake:
    """A source with a bad load, `daily` made from it by ana with good rows after it,
    `odd` with a commit of a stranger."""

    def __init__(self, folder: Path, call: Cli) -> None:
        self.call = call
        self.source, self.daily, self.odd = (folder / "lake" / name for name in ("source", "daily", "odd"))
        write(self.source, 1)
        self.reads = {self.register(self.source): self.source}
        for place in (self.daily, self.odd):
            write(place, 1, reads=self.reads)
        write(self.source, 99)
        for place in (self.daily, self.odd):
            write(place, 99, reads=self.reads)
            self.register(place, "--owner", "bo")
        write(self.daily, 5, 6)

    def register(self, place: Path, *options: str) -> str:
        return registered(self.call, place, *options)

    def plan(self, *options: str) -> Said:
        return self.call("rollback", "plan", "db.source", "--to-version", "0", "--cascade", *options)


@pytest.fixture
def lake(tmp_path: Path, cli: Cli) -> Lake:
    return Lake(tmp_path, cli)


def test_each_commit_is_told_with_its_writer_and_the_version_it_read(lake: Lake) -> None:
    daily = next(one for one in lake.plan("-o", "json").json["tables"] if one["name"] == "db.daily")
    assert daily["owner"] == "bo"
    tainted, lost = daily["commits"]
    assert (tainted["version"], tainted["role"], tainted["user"], tainted["operation"]) == (
        1,
        "tainted",
        "ana",
        "append",
    )
    assert tainted["engine"].startswith("delta-rs") and tainted["at"].endswith("Z") and tainted["rows"] == 1
    (read,) = tainted["reads"]
    assert (read["name"], read["versions"], read["confidence"]) == ("db.source", [1], "committed")
    assert (lost["version"], lost["role"], lost["rows"], lost["reads"]) == (2, "lost", 2, [])


def test_what_a_stranger_wrote_is_told_with_the_engine_that_its_commit_names(lake: Lake) -> None:
    write_deltalake(str(lake.odd), DATA, mode="append")
    odd = next(one for one in lake.plan("-o", "json").json["tables"] if one["name"] == "db.odd")
    stranger = odd["commits"][-1]
    assert (stranger["version"], stranger["role"], stranger["user"]) == (2, "unknown", None)
    assert stranger["engine"].startswith("delta-rs") and stranger["reads"] == []
    assert "nobody recorded what it read" in lake.plan().out


def test_pasting_the_next_commands_one_after_the_other_rolls_back(lake: Lake) -> None:
    planned = lake.plan()
    assert planned.code == 4 and planned.out.startswith("Plan ")
    again = lake.call(*pasted(planned))
    assert again.code == 0 and "it can be applied" in again.out, again
    applied = lake.call(*pasted(again))
    assert applied.code == 0, applied
    assert [ids(one) for one in (lake.source, lake.daily, lake.odd)] == [[1], [1, 5, 6], [1]]


def test_a_plan_is_shown_again_with_all_that_was_known_of_it(lake: Lake) -> None:
    planned = lake.plan("--consent", "collateral")
    listed = lake.call("rollback", "list", "-o", "json").json
    assert lake.call("rollback", "show", listed[0]["hash"]).out == planned.out
    assert "read version 1 of db.source (committed)" in planned.out


def test_a_home_that_was_given_is_part_of_the_next_command(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAKEWARDEN_HOME")
    said = lake.plan("--home", str(tmp_path / "home"), "-o", "json")
    assert f" --home {shlex.quote(str(tmp_path / 'home'))}" in said.json["next"]


@pytest.mark.long
def test_waiting_may_end_before_the_rollback_and_the_command_that_goes_on_is_told(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    monkeypatch.setenv("WORKER_PROGRAM", slow_worker.__file__)
    monkeypatch.setenv("HOLD", str(hold))
    made = lake.plan("--consent", "collateral", "-o", "json").json["hash"]
    Timer(4.0, hold.unlink).start()  # after the waiting has ended
    applied = lake.call("rollback", "apply", made, "--timeout", "3 s")
    assert applied.code == ExitCode.PARTLY, applied
    assert f"Rollback {made}: 0 of 3 steps done; " in applied.err
    assert f"Error: Rollback {made} is not finished after 3 seconds: 0 of 3 steps done" in applied.err
    assert f"`lakewarden rollback resume {made}` goes on with it" in applied.err
    resumed = lake.call("rollback", "resume", made)
    assert resumed.code == 0 and f"Rollback {made} is done" in resumed.err, resumed
    assert [ids(one) for one in (lake.source, lake.daily, lake.odd)] == [[1], [1], [1]]


@pytest.mark.parametrize("timeout", ["soon", "0 s", "999999999999 days"])
def test_a_time_to_wait_that_is_none_is_refused(lake: Lake, timeout: str) -> None:
    said = lake.call("rollback", "apply", "abc", "--timeout", timeout)
    assert said.code == ExitCode.USAGE and f"'{timeout}' is not a time to wait." in said.err


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--diff", "db.alone"), 1, "db.alone is not in the plan."),
        (("--diff", "db.daily", "--samples", "1001"), 2, "1,001 samples are not between 0 and 1,000."),
        (
            ("--diff", "db.daily", "--key", "db.odd=id"),
            2,
            "--key db.odd=id is about a table that is not compared.",
        ),
        (("--diff", "db.daily", "--key", "id,,day"), 2, "'id,,day' names no column."),
        (
            ("--diff", "db.source", "--remove-files", "db.source"),
            4,
            "db.source only loses the files of some versions",
        ),
    ],
    ids=["another table", "too many samples", "key of another table", "no column", "files taken out"],
)
def test_a_comparison_that_cannot_be_made_is_refused_before_spark_starts(
    lake: Lake, tmp_path: Path, options: tuple[str, ...], code: int, sentence: str
) -> None:
    write(tmp_path / "lake" / "alone", 1)
    lake.register(tmp_path / "lake" / "alone")
    said = lake.plan(*options)
    assert said.code == code and sentence in said.err, said


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.heavy
def test_the_rows_that_go_and_come_back_are_compared_by_spark(lake: Lake) -> None:
    said = lake.plan(
        "--diff", "db.daily", "--diff", "db.source", "--key", "db.source=id", "--consent", "collateral"
    )
    assert said.code == 0, said
    assert "Rows of db.daily: 4 rows in version 2, 1 in version 0; 3 go, 0 come back" in said.out
    assert "  keys (id): 1 go, 0 come back, 0 change\n  - id=99" in said.out
    told = lake.plan("--diff", "db.daily", "--samples", "1", "-o", "json").json["diffs"]
    assert [(one["goes"], len(one["samples"][0]["goes"])) for one in told] == [(3, 1)]


def pasted(said: Said) -> list[str]:
    """The first command that the output offers, as a shell would take it."""
    line = next(line for line in said.out.splitlines() if line.startswith("  lakewarden "))
    return shlex.split(line)[1:]
