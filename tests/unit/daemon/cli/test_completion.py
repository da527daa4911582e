"""What shells are told may come next: from the commands there are and an installation's names, without libraries."""

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from lakewarden.catalog.model.rows import RowKind
from lakewarden.catalog.policy.keys import POLICY_KEYS
from lakewarden.catalog.registry.governance import set_policy
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.cli.completion.answer import VARIABLE
from lakewarden.daemon.cli.completion.cached_names import (
    cache_of,
    keep_names,
    names_of,
    read_names,
    write_names,
)
from lakewarden.daemon.cli.completion.candidates import candidates, value_of
from lakewarden.daemon.cli.completion.generate import tree_as_text
from lakewarden.daemon.cli.completion.look_up import look_up
from lakewarden.daemon.cli.completion.tree import FILE, ValueKind, read_tree
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.init import initialise
from support.builders.callers import actor
from support.builders.states import request

TREE = read_tree(FILE.read_text(encoding="utf-8"))
NAMES = {
    ValueKind.TABLE: ["db.orders", "db.ostriches", "web.events"],
    ValueKind.SCOPE: ["*", "db.*"],
    ValueKind.RUN: ["3f2a00", "9b"],
    ValueKind.ROLLBACK: ["r-1"],
    ValueKind.PROFILE: ["production"],
}


def after(*words: str) -> list[str]:
    """What may stand in the last place."""
    found = candidates(TREE, lambda kind: NAMES.get(kind, ()), words[:-1], words[-1])
    return [one.word for one in found]


def test_the_file_of_commands_is_as_make_docs_writes_it() -> None:
    assert FILE.read_text(encoding="utf-8") == tree_as_text()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("ta",), ["tables"]),
        (("tables", "pol"), ["policy"]),
        (("tables", "policy", "s"), ["show", "set"]),
        (("why", "db.o"), ["db.orders", "db.ostriches"]),
        (("why", "db.orders", ""), []),
        (("pause", "d"), ["db.orders", "db.ostriches", "db.*"]),
        (("tables", "register", "d"), []),
        (("jobs", "logs", "-f", "3"), ["3f2a00"]),
        (("jobs", "run", "db.orders", "comp"), ["compact"]),
        (("jobs", "list", "-o", "j"), ["json"]),
        (("jobs", "list", "--limit", "3", "we"), ["web.events"]),
        (("tables", "list", "--sto"), ["--stopped"]),
        (("tables", "list", "--stopped", "h"), ["held"]),
        (("tables", "list", "--stopped", "=", "h"), ["held"]),
        (("--home", "=", "/x", "wh"), ["why"]),
        (("jobs", "logs", "--home=/x", "9"), ["9b"]),
        (("rollback", "undo", ""), ["r-1"]),
        (("--profile", "pro"), ["production"]),
        (("status", "--profile", ""), ["production"]),
        (("daemon", "--set", "sweep.int"), ["sweep.interval="]),
        (("tables", "policy", "set", "db.orders", "vacuum.ret"), ["vacuum.retention="]),
        (("tables", "policy", "set", "db.orders", "mode=manage", "vacuum.ret"), ["vacuum.retention="]),
        (("nonsense", ""), []),
        (("jobs", "logs", "--", "--"), []),
    ],
    ids=" ".join,
)
def test_what_may_come_next(words: Sequence[str], found: list[str]) -> None:
    assert after(*words) == found


def test_every_policy_key_is_offered() -> None:
    assert after("tables", "policy", "set", "db.orders", "") == [f"{key.key}=" for key in POLICY_KEYS]


def test_names_are_asked_for_only_where_one_may_stand() -> None:
    def nobody(kind: str) -> Sequence[str]:
        raise AssertionError(kind)

    assert candidates(TREE, nobody, ["tables", "policy", "set", "db.t"], "mo")[0].word == "mode="
    assert candidates(TREE, nobody, [], "tab")[0].help.startswith("Register, convert")


def test_the_home_on_the_line_is_found_in_each_spelling() -> None:
    assert value_of(["why", "--home", "/a"], "--home") == "/a"
    assert value_of(["--home=/a", "why", "--home", "=", "/b"], "--home") == "/b"
    assert value_of(["why", "--home"], "--home") is None


@pytest.fixture
def services(tmp_path: Path) -> Services:
    made = Services(load_settings(home=tmp_path / "home", environment={}))
    initialise(made, made.user)
    made.queue.enqueue([request(run_id="a1b2")])
    return made


def test_tables_scopes_runs_and_rollbacks_are_looked_up(services: Services) -> None:
    set_policy(services.registry, "db.*", {"vacuum.retention": 9 * 86_400}, actor=actor("root", admin=True))
    found = look_up(services)
    held = services.store.rows(TABLES).find(kind=RowKind.TABLE)
    assert list(found[ValueKind.TABLE]) == sorted(row.name for row in held), "lakewarden's own, too"
    assert found[ValueKind.SCOPE] == ["*"], "of tables that are there"
    assert (found[ValueKind.RUN], found[ValueKind.ROLLBACK]) == (["a1b2"], [])


def at_a_glance(services: Services) -> Services:
    return Services(services.settings, as_it_is=True)


def test_a_look_up_makes_no_database(services: Services) -> None:
    database = Path(services.settings.database_url.removeprefix("sqlite:///"))
    services.queue.enqueue([request(run_id="c3d4")])
    for file in database.parent.glob(f"{database.name}*"):
        file.unlink()
    found = look_up(at_a_glance(services))
    assert (found[ValueKind.RUN], found[ValueKind.SCOPE]) == ([], ["*"])
    assert not list(database.parent.glob(f"{database.name}*"))


def test_a_look_up_upgrades_no_database(services: Services) -> None:
    database = services.settings.database_url.removeprefix("sqlite:///")
    assert look_up(at_a_glance(services))[ValueKind.RUN] == ["a1b2"]
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE lakewarden_meta SET schema_version = schema_version - 1")
        ((before,),) = connection.execute("SELECT schema_version FROM lakewarden_meta").fetchall()
    assert look_up(at_a_glance(services))[ValueKind.RUN] == []
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT schema_version FROM lakewarden_meta").fetchall() == [(before,)]


def test_a_file_of_names_is_one_homes_and_one_persons(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "names"
    write_names(cache, home, {ValueKind.TABLE: ["db.t", "db.$(rm)", "a b", "größe.t"], ValueKind.RUN: []})
    assert read_names(cache, home) == {ValueKind.TABLE: ["db.t", "größe.t"]}, "one word to every shell"
    assert read_names(cache, tmp_path / "other") is None
    assert cache.stat().st_mode & 0o077 == 0


def test_a_cache_that_cannot_be_written_offers_no_names(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {"XDG_CACHE_HOME": str(tmp_path / "file")}
    begun = time.monotonic()
    assert (names_of(tmp_path, environment, patience=60.0), time.monotonic() - begun < 30) == ({}, True)


def test_an_installation_that_does_not_answer_leaves_the_names_that_are_known(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "names"
    keep_names(cache, home)
    assert read_names(cache, home) == {}, "nobody waits for it again"
    write_names(cache, home, {ValueKind.TABLE: ["db.t"]})
    os.utime(cache, (0, 0))
    keep_names(cache, home)
    assert (read_names(cache, home), cache.stat().st_mtime > 0) == ({ValueKind.TABLE: ["db.t"]}, True)


def test_a_relative_home_is_another_one_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        home = tmp_path / folder / "h"
        cache = cache_of(home, environment)
        cache.parent.mkdir(exist_ok=True)
        write_names(cache, home, {ValueKind.TABLE: [f"only.in_{folder}"]})
        monkeypatch.chdir(tmp_path / folder)
        assert names_of(Path("h"), environment) == {ValueKind.TABLE: [f"only.in_{folder}"]}


def environment_of(services: Services, folder: Path) -> dict[str, str]:
    """With a command `lakewarden` on the path, and a cache of its own."""
    program = folder / "bin" / "lakewarden"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m lakewarden.daemon "$@"\n')
    program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "LAKEWARDEN_HOME": str(services.settings.home),
    }


BASH = """
source <(lakewarden completion bash)
compopt() { echo -n "($1 $2)"; }
completed() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _lakewarden_completion lakewarden
    echo "${COMPREPLY[*]}"
}
cd "$HERE"
completed lakewarden tab
for try in $(seq 30); do  # a machine that is busy gives up waiting for names, and has them the next time
    [ -n "$(completed lakewarden why lakewarden.heal)" ] && break
done
completed lakewarden why lakewarden.heal
completed lakewarden pause ''
completed lakewarden jobs logs a
completed lakewarden why nothing.like.it
completed lakewarden tables policy set db.t vacuum.ret
"""


@pytest.mark.heavy
def test_names_of_a_home_are_waited_for_the_first_time(services: Services, tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    known = names_of(services.settings.home, environment, patience=120)
    assert "lakewarden.health" in known[ValueKind.TABLE]


@pytest.mark.heavy
def test_a_real_bash_completes_names_of_a_home(services: Services, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a_file").touch()
    environment = environment_of(services, tmp_path) | {"HERE": str(tmp_path / "here")}
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    commands, tables, scopes, runs, nothing, key = done.stdout.splitlines()
    assert (commands, tables, runs, nothing) == ("tables", "lakewarden.health", "a1b2", "")
    assert key == "(-o nospace)vacuum.retention=", "its value is of the same word"
    assert scopes.split()[-1] == "\\*", "a star stays one, and is no pattern for files"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({VARIABLE: "complete_zsh"}, "_arguments '*: :((\"lakewarden.health\"))'"),
        (
            {VARIABLE: "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
            "lakewarden.health\n",
        ),
    ],
    ids=["zsh", "fish"],
)
def test_zsh_and_fish_get_what_their_scripts_evaluate_and_no_library_is_loaded_for_it(
    more: dict[str, str], said: str, services: Services, tmp_path: Path
) -> None:
    environment = (
        environment_of(services, tmp_path) | more | {"_TYPER_COMPLETE_ARGS": "lakewarden why lakewarden.he"}
    )
    cache = cache_of(services.settings.home, environment)
    cache.parent.mkdir(parents=True)
    write_names(cache, services.settings.home, look_up(services))
    program = (
        "import sys\n"
        "from lakewarden.daemon import __main__\n"
        "try:\n    __main__.main()\nfinally:\n"
        "    print(*sorted({'typer', 'pyarrow', 'deltalake', 'sqlalchemy', 'yaml'} & sys.modules.keys()), "
        "file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr.strip()) == (said, "")


@pytest.mark.heavy
def test_names_that_are_old_are_looked_up_anew_in_the_background(services: Services, tmp_path: Path) -> None:
    environment = environment_of(services, tmp_path)
    home = services.settings.home
    cache = cache_of(home, environment)
    cache.parent.mkdir(parents=True)
    write_names(cache, home, {ValueKind.RUN: ["gone"]})
    os.utime(cache, (time.time() - 60, time.time() - 60))
    assert names_of(home, environment) == {ValueKind.RUN: ["gone"]}, "at once, what is known"
    until = time.monotonic() + 60
    while read_names(cache, home) == {ValueKind.RUN: ["gone"]}:
        assert time.monotonic() < until
        time.sleep(0.05)
    known = read_names(cache, home)
    assert known is not None and known[ValueKind.RUN] == ["a1b2"]


@pytest.mark.heavy
def test_a_look_up_runs_nothing_of_the_folder_that_the_shell_is_in(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = tmp_path / "here" / "lakewarden" / "__init__.py"
    foreign.parent.mkdir(parents=True)
    foreign.write_text(f"open({str(tmp_path / 'was run')!r}, 'w').close()")
    monkeypatch.chdir(tmp_path / "here")
    known = names_of(services.settings.home, environment_of(services, tmp_path), patience=60.0)
    assert (known.get(ValueKind.RUN), (tmp_path / "was run").exists()) == (["a1b2"], False)
