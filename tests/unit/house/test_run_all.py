"""The runner of all tests: a second try tells, it does not hide."""

from collections import Counter
from pathlib import Path

import pytest

import run_all

OPTION = """
def pytest_addoption(parser):
    parser.addoption("--turn")
"""
UNSURE = """
from pathlib import Path

def test_unsure():
    seen = Path(__file__).with_name("seen")
    tried = seen.exists()
    seen.touch()
    assert tried, "only the second time"

def test_sure():
    assert True
"""


@pytest.fixture
def unsure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_all, "TESTS", tmp_path / "tests")
    monkeypatch.setattr(run_all, "FLAKY", tmp_path / "flaky.toml")
    monkeypatch.setattr("sys.argv", ["run_all"])
    (tmp_path / "tests").mkdir()
    (tmp_path / "flaky.toml").write_text("")
    (tmp_path / "tests" / "conftest.py").write_text(OPTION)
    place = tmp_path / "tests" / "test_unsure.py"
    place.write_text(UNSURE)
    return place


def test_what_passes_the_second_time_fails_the_run(unsure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    totals: Counter[str] = Counter()
    assert run_all.run_twice(totals, "unsure", [str(unsure)])
    assert (totals["passed"], totals["failed"]) == (1, 1)
    assert "test_unsure passed the second time: mend it, or name it in flaky.toml" in capsys.readouterr().out


def test_unless_it_is_named_with_a_reason(unsure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = (
        '[[flaky]]\ntest = "tests/test_unsure.py::test_unsure"\nsince = 2026-11-22\nreason '
        '= "a busy machine"\n'
    )
    (unsure.parents[1] / "flaky.toml").write_text(named)
    totals: Counter[str] = Counter()
    assert not run_all.run_twice(totals, "unsure", [str(unsure)])
    assert (totals["passed"], totals["failed"]) == (2, 0)
    assert "as is known (2026-11-22: a busy machine)" in capsys.readouterr().out


def test_a_process_that_dies_is_broken_whatever_comes_of_its_second_try(unsure: Path) -> None:
    dies = "import os, pathlib\nseen = pathlib.Path(__file__).with_name('seen')\n"
    unsure.write_text(dies + "if not seen.exists():\n    seen.touch()\n    os._exit(3)\n" + UNSURE)
    assert run_all.run_twice(Counter(), "unsure", [str(unsure)])


def test_every_file_is_run_once_and_those_that_share_are_there() -> None:
    tests = Path(__file__).parents[2]
    files = [path for room in run_all.ROOMS for path in tests.glob(f"{room}/test_*.py")]
    run = [path for _, paths in run_all.groups(files) for path in paths]
    assert sorted(run) == sorted(map(str, files))
    assert {name for group in run_all.SHARING for name in group} <= {path.stem for path in files}
    assert {*run_all.LONGEST, *run_all.COMPILING} <= {path.stem for path in files}


def test_two_that_are_busy_run_at_once_or_one_of_them_and_two_that_wait_or_four_of_these() -> None:
    names = [name for name, _ in run_all.groups(run_all.TESTS.glob("integration/test_*.py"))]
    (cared,) = [name for name in names if name.startswith("test_vacuum, ")]
    assert run_all.places(cared) == run_all.places("unit jobs") == run_all.places("test_yarn")
    busy, waits = run_all.places(cared), run_all.places("test_daemon_crash")
    assert {run_all.places(name) for name in names} == {busy, waits}
    at_once = [(2, 0), (1, 2), (0, 4)]
    assert all(
        run_all.PLACES - waits < busy * many + waits * others <= run_all.PLACES for many, others in at_once
    )
