"""Admins are recorded by `init`, and the caller is the process's real user: no variable makes anybody another."""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.errors import UnavailableError, UnreadableError, UsageError
from lakewarden.catalog.model.rows import Action, TableRow
from lakewarden.catalog.policy.access import Role
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.state.port import RunRequest, RunState
from lakewarden.catalog.system.port import AUDIT, TABLES
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation import admins
from lakewarden.daemon.installation.admins import admins_of, distrust, roles_of
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.init import initialise
from support.builders.callers import actor
from support.fakes.system_store import FakeSystemStore
from support.processes import as_user
from support.processes.commands import command

ME = pwd.getpwuid(os.getuid()).pw_name


def services(home: Path) -> Services:
    return Services(load_settings(home=home, environment={}))


def is_admin(home: Path, name: str) -> bool:
    opened = services(home)
    return Role.ADMIN in roles_of(name, opened.store, opened.settings)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that ana made."""
    initialise(services(tmp_path), "ana")
    return tmp_path


@pytest.mark.heavy
@pytest.mark.parametrize(
    "variables", [{"LOGNAME": "ana"}, {"USER": "ana", "LNAME": "ana", "USERNAME": "ana"}]
)
def test_the_caller_is_the_processes_user_whatever_variables_say(
    home: Path, variables: Mapping[str, str]
) -> None:
    said = command(home, "tables", "hold", "*", "--reason", "x", settings=variables)
    assert said.returncode == 5
    assert f"{ME} may not hold *" in said.stderr


def test_the_one_who_ran_init_is_admin_and_nobody_else_is(home: Path) -> None:
    assert is_admin(home, "ana")
    assert not is_admin(home, "bo")
    initialise(services(home), "bo")
    assert not is_admin(home, "bo"), "a second init changes nothing"


def test_a_user_without_a_name_is_called_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 987_654)
    assert real_user() == "uid-987654"


def test_in_an_older_home_the_owner_of_row_0_is_admin(home: Path) -> None:
    store = services(home).store
    (zero,) = store.rows(TABLES).find(row=0)
    old: TableRow = replace(zero, properties={}, owner="carl")
    store.edit(TABLES, lambda _: [old], because="test")
    assert is_admin(home, "carl")
    assert not is_admin(home, "ana")


@pytest.mark.parametrize("way", ["environment", "flag"])
def test_nobody_becomes_admin_by_a_variable_or_a_flag(home: Path, way: str) -> None:
    with pytest.raises(UsageError, match="settings file only"):
        if way == "flag":
            load_settings(home=home, environment={}, flags={"admins": "bo"})
        else:
            load_settings(home=home, environment={"LAKEWARDEN_ADMINS": "bo"})


def _settings_file(home: Path, mode: int = 0o644) -> None:
    file = home / "lakewarden.toml"
    file.write_text('admins = ["bo"]\n')
    file.chmod(mode)


def _owned_by(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Files of this process belong to `name`, as far as the product can tell."""
    monkeypatch.setattr(admins, "_ROOT", -1)
    monkeypatch.setattr(admins, "name_of", lambda uid: name)


def test_an_admins_settings_file_names_more(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _settings_file(home)
    _owned_by(monkeypatch, "ana")
    opened = services(home)
    assert admins_of(opened.store, opened.settings) == {"ana", "bo"}


@pytest.mark.parametrize(
    ("owner", "mode", "why"),
    [
        pytest.param("bo", 0o644, "belongs to bo, who is no admin", id="a file of one's own"),
        pytest.param("ana", 0o664, "others than its owner may write", id="a group may write it"),
        pytest.param("ana", 0o646, "others than its owner may write", id="everybody may write it"),
    ],
)
def test_a_settings_file_that_others_may_write_makes_nobody_admin(
    home: Path, monkeypatch: pytest.MonkeyPatch, owner: str, mode: int, why: str
) -> None:
    _settings_file(home, mode)
    _owned_by(monkeypatch, owner)
    opened = services(home)
    assert admins_of(opened.store, opened.settings) == {"ana"}
    assert why in (distrust(opened.settings, frozenset({"ana"})) or "")


def test_whoever_has_a_home_of_system_tables_that_do_not_answer_for_now_is_no_admin(tmp_path: Path) -> None:
    class Away(FakeSystemStore):
        def exists(self) -> bool:
            raise UnavailableError("The storage does not answer.")

    class Damaged(FakeSystemStore):
        def exists(self) -> bool:
            raise UnreadableError("Row 0 is unreadable.")

    settings = load_settings(home=tmp_path, environment={})
    assert admins_of(Away(), settings) == frozenset()
    assert admins_of(Damaged(), settings) == {real_user()}, "somebody has to mend them"


@pytest.mark.heavy
def test_only_an_admin_backs_up_the_system_tables(home: Path, tmp_path: Path) -> None:
    said = command(home, "system", "backup", str(tmp_path / "copy"))
    assert said.returncode == 5, said.stderr
    assert f"{ME} may not change the system tables" in said.stderr
    assert not (tmp_path / "copy").exists()


@pytest.mark.heavy
def test_only_an_admin_mends_the_system_tables(home: Path) -> None:
    shutil.rmtree(home / "system" / "runs")
    said = command(home, "system", "repair", "--accept-loss", "--yes")
    assert said.returncode == 5, said.stderr
    assert f"{ME} may not change the system tables" in said.stderr
    assert not (home / "system" / "runs").exists()


@pytest.mark.heavy
def test_only_an_owner_or_an_admin_cancels_a_run(home: Path, tmp_path: Path) -> None:
    opened = services(home)
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2, 3]}))
    row = register(opened.registry, str(tmp_path / "t"), actor=actor("ana", admin=True), owner="carl").row
    request = RunRequest(
        run_id="r1",
        table_id=row.table_id,
        name=row.name,
        location=row.location or "",
        action=Action.VACUUM,
        payload="{}",
        because="a test",
        requires_version=0,
        rank=1.0,
    )
    opened.queue.enqueue([request])
    said = command(home, "jobs", "cancel", request.run_id)
    assert said.returncode == 5, said.stderr
    assert f"{ME} may not order work on {row.name} (owner: carl)" in said.stderr
    (run,) = opened.queue.unfinished()
    assert run.state is RunState.QUEUED
    assert [one.allowed for one in opened.store.rows(AUDIT).all() if "cancel" in one.on] == [False]


@pytest.mark.heavy
def test_tests_act_as_others_by_a_program_of_their_own(home: Path) -> None:
    environment = {
        **os.environ,
        "LAKEWARDEN_HOME": str(home),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    for name, code in (("ana", 0), ("bo", 5)):
        said = subprocess.run(
            [sys.executable, as_user.__file__, name, "tables", "hold", "db.*", "--reason", "x"],
            env=environment,
            capture_output=True,
            check=False,
        )
        assert said.returncode == code, said
