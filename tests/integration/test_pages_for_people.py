"""The pages for who owns tables, runs the platform or is woken at night, and those about a laptop and a service:
every command on them, in order, by a shell, from a fresh home."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.daemon.callers import real_user

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VERSIONS = 25


def shell(script: str, folder: Path) -> str:
    """What a shell says of a script that ends at the first command which fails."""
    names = {name: value for name, value in os.environ.items() if not name.startswith("LAKEWARDEN_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    home = {
        "PATH": path,
        "USER": real_user(),
        "LAKEWARDEN_HOME": str(folder / "home"),
        "LAKEWARDEN_HTTP_PORT": "0",  # another test's daemon may have the usual one
    }
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", script],
        cwd=folder,
        env=names | home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, (script, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize(
    ("page", "fewest"),
    [("owners", 18), ("platform", 12), ("woken", 7), ("deploy/laptop", 8), ("deploy/systemd", 9)],
)
def test_every_command_of_the_page_does_what_it_says(page: str, fewest: int, tmp_path: Path) -> None:
    blocks = BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert sum(block.count("lakewarden ") for block in blocks) >= fewest
    for number in range(VERSIONS):
        rows = pa.table({"id": pa.array([number], pa.int64())})
        write_deltalake(tmp_path / "events", rows, mode="append")
    shell(f"lakewarden init\nlakewarden tables register {tmp_path / 'events'} --name shop.events", tmp_path)
    for block in blocks:
        shell(block, tmp_path)
