"""What the runs of the suite name is there."""

from support.distribution import LONGEST, TESTS, flaky_tests


def test_files_that_begin_first_are_there() -> None:
    there = {
        path.stem
        for folder in ("contract", "integration", "security")
        for path in (TESTS / folder).glob("test_*.py")
    }
    assert set(LONGEST) <= there


def test_what_may_be_run_a_second_time_is_there() -> None:
    files = {test.partition("::")[0] for test in flaky_tests()}
    assert {one for one in files if not (TESTS.parent / one).is_file()} == set()
