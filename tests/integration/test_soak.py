"""Daemons and workers killed and frozen at random while users append:
what `python -m bench.crashes` does, for a minute.

`LAKEWARDEN_KILLS` sets the number of kills; docs/operations.md has the figures of a soak of more than 200.
"""

import os
from pathlib import Path

import pytest

from support.crashes.soak import Soak

pytestmark = [pytest.mark.crash, pytest.mark.heavy]
KILLS = int(os.environ.get("LAKEWARDEN_KILLS", "14"))


@pytest.mark.long
def test_random_kills_of_daemons_and_workers_double_and_lose_nothing(tmp_path: Path) -> None:
    soak = Soak(folder=tmp_path / "soak", kills=KILLS, seed=7)
    toll = soak.run()
    print(toll)
    assert toll.wrong == (), soak.house.log()
    assert toll.kills_daemon > 0 and toll.kills_worker > 0 and toll.runs > 0 and toll.appends > 0
