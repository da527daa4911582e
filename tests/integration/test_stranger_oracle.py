"""Plans say what a stranger who has read only the documentation expects of them (support/stranger_oracle)."""

from pathlib import Path

import pytest

from support.stranger_oracle.game import Table
from support.stranger_oracle.hunt import hunt

WORLDS = range(1, 9)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder: Path = tmp_path_factory.mktemp("stranger")
    return Table(folder)


@pytest.mark.long
def test_plans_about_random_tables_say_what_the_documentation_promises(table: Table) -> None:
    tally = hunt(table, WORLDS)
    assert not tally.found, "\n".join(line for found in tally.found for line in found.told())
    assert tally.worlds == len(WORLDS)
    assert tally.restored > 0, "no plan took a table back: the worlds say nothing"
