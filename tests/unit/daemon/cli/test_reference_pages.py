"""What is generated is current: `make docs` would change nothing."""

from pathlib import Path

import pytest

from lakewarden.daemon.cli.reference import pages

FOLDER = Path(__file__).parents[4] / "docs" / "reference"


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_generated_page_is_current(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name]
