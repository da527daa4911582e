"""How many distinct values a table has, told from a sample of its files."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.jobs.engines.delta.sample import distinct_in_table

FILES, SAMPLED, ROWS_PER_FILE = 200, 20, 200
DRAW = random.Random(1)


def estimate(value: Callable[[int, int], object]) -> tuple[int, int]:
    """(estimated, true) number of distinct values of a column whose value in a file's row is `value(file, row)`."""
    files = [{value(number, row) for row in range(ROWS_PER_FILE)} for number in range(FILES)]
    sample = DRAW.sample(files, SAMPLED)
    guess = distinct_in_table(
        seen=len(set().union(*sample)),
        incidences=sum(map(len, sample)),
        sampled_files=SAMPLED,
        all_files=FILES,
        rows=FILES * ROWS_PER_FILE,
    )
    return guess, len(set().union(*files))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda file, row: (file, row), id="unique"),
        pytest.param(lambda file, row: file, id="one value per file"),
        pytest.param(lambda file, row: row % 3, id="few values, all everywhere"),
        pytest.param(lambda file, row: DRAW.randrange(100), id="a hundred at random"),
        pytest.param(lambda file, row: DRAW.randrange(10_000), id="many at random"),
        pytest.param(lambda file, row: (file // 10, DRAW.randrange(50)), id="in runs of ten files"),
    ],
)
def test_the_estimate_is_within_a_factor_of_two(value: Callable[[int, int], object]) -> None:
    guess, truth = estimate(value)
    assert truth / 2 <= guess <= truth * 2


@given(
    st.floats(0, 1e6), st.floats(0, 1e7), st.integers(0, 100), st.integers(1, 10_000), st.integers(0, 10**9)
)
def test_whatever_is_said_the_answer_is_possible(
    seen: float, incidences: float, sampled: int, files: int, rows: int
) -> None:
    guess = distinct_in_table(
        seen=seen, incidences=incidences, sampled_files=sampled, all_files=files, rows=rows
    )
    assert 0 <= guess <= rows


def test_with_every_file_read_nothing_is_guessed() -> None:
    assert distinct_in_table(seen=17, incidences=40, sampled_files=5, all_files=5, rows=100) == 17
