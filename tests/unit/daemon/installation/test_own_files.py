"""What an installation keeps on a disk is its user's alone, whatever the umask and whatever was there before."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lakewarden.catalog.private_files import private_folder, tighten
from lakewarden.catalog.state.db import open_database
from lakewarden.daemon.gateway.results import Store
from lakewarden.daemon.gateway.sharing.space import Space
from lakewarden.daemon.installation.own_files import tighten_home
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.installation.tokens import Tokens
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.telemetry.failed_cycles import Troubles
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.workers.pool import worker_launcher

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=[0o000, 0o022], ids=["umask 000", "umask 022"], autouse=True)
def lax(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def loose(folder: Path) -> dict[str, str]:
    """What others may do with what, of a folder and everything in it, that they should not."""
    paths = [folder, *folder.rglob("*")]
    modes = {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in paths}
    return {name: oct(mode) for name, mode in modes.items() if mode & 0o077}


def test_a_home_is_made_for_its_user_alone(tmp_path: Path) -> None:
    home = tmp_path / "above" / "home"
    initialise(Services(load_settings(home=home, environment={})), "ana")
    assert home.stat().st_mode & 0o777 == 0o700


def test_the_database_is(tmp_path: Path) -> None:
    private_folder(tmp_path / "home")
    database = open_database(f"sqlite:///{tmp_path}/home/state.db")
    with database.transaction():
        assert {path.name for path in (tmp_path / "home").iterdir()} >= {"state.db", "state.db-wal"}
        assert loose(tmp_path / "home") == {}
    database.close()


def test_an_older_database_is_tightened_when_it_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    open_database(f"sqlite:///{file}").incarnation()
    file.chmod(0o644)
    open_database(f"sqlite:///{file}").incarnation()
    assert file.stat().st_mode & 0o777 == 0o600


def test_tokens_and_their_lock_are(tmp_path: Path) -> None:
    private_folder(tmp_path / "home")
    (tmp_path / "home" / "tokens.lock").touch(0o666)
    Tokens(tmp_path / "home" / "tokens.json").create("ana", by="root", now=NOW, expires_at=None)
    assert {path.name for path in (tmp_path / "home").iterdir()} == {"tokens.json", "tokens.lock"}
    assert loose(tmp_path / "home") == {}


def test_what_the_gateway_spools_is(tmp_path: Path) -> None:
    account = Space(memory=1_000_000, disk=1_000_000, percent=100).account("ana")
    store = Store(folder=tmp_path / "gateway", memory=1, limit=1_000_000, account=account)
    store.add(pa.record_batch({"x": [1]}))
    assert len(list((tmp_path / "gateway").iterdir())) == 1
    assert loose(tmp_path / "gateway") == {}
    store.close()


def test_what_workers_and_failing_cycles_say_is(tmp_path: Path) -> None:
    worker_launcher(config=lambda _: "", logs=tmp_path / "logs", environment={}, command=("true",))(
        "one"
    ).wait()
    private_folder(tmp_path / "home")
    Troubles(tmp_path / "home").failed("The metastore does not answer.", NOW, wholly=True)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["failing-cycles.json"]
    assert loose(tmp_path / "logs") == loose(tmp_path / "home") == {}


def test_what_was_left_open_is_tightened_when_a_process_starts(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path / "home", environment={})
    for folder in ("home", "home/logs", "home/gateway"):
        (tmp_path / folder).mkdir(mode=0o755)
    for file in ("state.db", "tokens.json", "tokens.lock", "logs/worker.log", "gateway/result.arrow"):
        (tmp_path / "home" / file).touch(0o664)
    tighten_home(settings)
    assert loose(tmp_path / "home") == {}


def test_a_home_that_is_not_there_yet_is_not_made(tmp_path: Path) -> None:
    tighten_home(load_settings(home=tmp_path / "home", environment={}))
    assert not (tmp_path / "home").exists()


def test_a_folder_for_everybody_stays_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    tighten(tmp_path)
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777
