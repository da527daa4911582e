"""The pages for who owns tables, runs the platform or is woken at night, and those about a laptop and a service:
every command on them, in order, by a shell, from a fresh home."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from support.cases import mostly_long
from support.processes.scripts import typed
from support.reference.page_blocks import code

VERSIONS = 25


@pytest.mark.long
@pytest.mark.parametrize(
    ("page", "fewest"),
    mostly_long(
        [("owners", 18), ("platform", 12), ("woken", 7), ("deploy/laptop", 8), ("deploy/systemd", 9)],
        [("woken", 7)],
    ),
)
def test_every_command_of_the_page_does_what_it_says(page: str, fewest: int, tmp_path: Path) -> None:
    blocks = code(page, "bash")
    assert sum(block.count("lakewarden ") for block in blocks) >= fewest
    for number in range(VERSIONS):
        rows = pa.table({"id": pa.array([number], pa.int64())})
        write_deltalake(tmp_path / "events", rows, mode="append")
    typed(f"lakewarden init\nlakewarden tables register {tmp_path / 'events'} --name shop.events", tmp_path)
    for block in blocks:
        typed(block, tmp_path)
