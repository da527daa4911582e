"""The fleet's policies as a file: out, compared, in; all of it or nothing; with an entry in the audit for each."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.errors import (
    ConflictError,
    LakewardenError,
    NotAllowedError,
    NotFoundError,
    RefusedError,
    UsageError,
)
from lakewarden.catalog.model.rows import PolicySettings, TableRow
from lakewarden.catalog.policy.access import Actor, Caller
from lakewarden.catalog.policy.differences import Difference
from lakewarden.catalog.registry.governance import set_policy
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.system.port import AUDIT, TABLES, Rows
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.policies import apply_policies, compared, exported, foresee_policies
from lakewarden.daemon.usecases.policy_files import as_text, read_policies
from support.builders.callers import actor

DAY = 86_400
ANA, ROOT = actor("ana"), actor("root", admin=True)


def made(folder: Path) -> Services:
    """An installation with two tables of Ana's."""
    services = Services(load_settings(home=folder / "home", environment={}))
    initialise(services, services.user)
    for name in ("one", "two"):
        write_deltalake(str(folder / name), pa.table({"id": [1]}))
        register(services.registry, str(folder / name), actor=Actor(ANA), name=f"db.{name}")
    return services


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return made(tmp_path)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Services:
    """One that nothing succeeds on."""
    services = made(tmp_path_factory.mktemp("policies"))
    apply_policies(services, ROOT, read_policies("'*': {vacuum.retention: 40 days}"))
    return services


FILE = """
"*":
  vacuum.retention: 40 days
db.*:
  mode: manage
db.one:
  rollback.promise: 7 days
  compaction.enabled: no
"""


def entries(services: Services) -> list[tuple[str, str, bool]]:
    return sorted((row.actor, row.on, row.allowed) for row in services.store.rows(AUDIT).all())


def test_what_is_applied_is_exported_and_applied_again_changes_nothing(services: Services) -> None:
    wanted = read_policies(FILE)
    version = services.store.rows(TABLES).version
    planned = foresee_policies(services, ROOT, wanted)
    assert services.store.rows(TABLES).version == version and entries(services) == []
    done = apply_policies(services, ROOT, wanted)
    assert done == planned
    assert {(one.name, one.key, one.now, one.wanted) for one in done} == {
        (name, key, None, value) for name, values in wanted.items() for key, value in values.items()
    }
    assert services.store.rows(TABLES).version == version + 1, "one commit"
    assert entries(services) == [("root", "*", True), ("root", "db.*", True), ("root", "db.one", True)]
    assert exported(services) == wanted
    assert read_policies(as_text(exported(services))) == wanted
    assert compared(services, wanted) == apply_policies(services, ROOT, wanted) == ()
    assert services.store.rows(TABLES).version == version + 1 and len(entries(services)) == 3
    numbers = sorted(row.row for row in services.store.rows(TABLES).all())
    assert numbers == list(range(len(numbers)))


def test_what_a_file_leaves_out_of_a_table_is_set_no_more_and_other_tables_stay(services: Services) -> None:
    apply_policies(services, ROOT, read_policies(FILE))
    file = read_policies("db.one: {compaction.enabled: no}\n'*':")
    assert compared(services, file) == (
        Difference(name="db.one", key="rollback.promise", now=7 * DAY, wanted=None),
        Difference(name="*", key="vacuum.retention", now=40 * DAY, wanted=None),
    )
    apply_policies(services, ROOT, file)
    assert as_text(exported(services)) == "db.*:\n  mode: manage\ndb.one:\n  compaction.enabled: 'no'\n"


@pytest.mark.parametrize(
    ("line", "caller", "error", "sentence"),
    [
        ("db.thre: {mode: manage}", ROOT, NotFoundError, "db.thre is not a managed table."),
        ("lakewarden.tables: {mode: manage}", ROOT, RefusedError, "is lakewarden's own"),
        ("lakewarden.*: {}", ROOT, RefusedError, "is lakewarden's own"),
        (
            "db.two: {compaction.target: 1 KiB}",
            ANA,
            NotAllowedError,
            "db.two: compaction.target = 1 KiB is below the floor",
        ),
        ("db.two: {rollback.promise: 50 days}", ROOT, UsageError, "is shorter than rollback.promise"),
        ("db.*: {mode: manage}", ANA, NotAllowedError, "db.*: ana may not change the policy of db.*"),
    ],
)
def test_a_file_with_one_wrong_line_changes_nothing(
    unchanged: Services, line: str, caller: Caller, error: type[LakewardenError], sentence: str
) -> None:
    version, before = unchanged.store.rows(TABLES).version, entries(unchanged)
    wanted = read_policies(f"db.one: {{mode: manage}}\n{line}\n")
    for do in (foresee_policies, apply_policies):
        with pytest.raises(error) as refused:
            do(unchanged, caller, wanted)
        assert sentence in str(refused.value)
    assert unchanged.store.rows(TABLES).version == version
    assert sorted([*before, (caller.name, "policies of 2 names", False)]) == entries(unchanged)


KEPT = """
db.one: {rollback.promise: 5 days, vacuum.retention: 9 days}
db.two: {vacuum.retention: 9 days}
"""


def promised(services: Services, *, by_file: bool) -> None:
    """A promise of 20 days for db.*."""
    if by_file:
        apply_policies(services, ROOT, read_policies("db.*: {rollback.promise: 20 days}"))
    else:
        set_policy(services.registry, "db.*", {"rollback.promise": 20 * DAY}, actor=ROOT)


@pytest.mark.parametrize("by_file", [True, False], ids=["file", "command"])
def test_a_scopes_promise_is_refused_for_the_tables_that_it_reaches_and_nobody_named(
    services: Services, by_file: bool
) -> None:
    apply_policies(services, ROOT, read_policies(KEPT))
    version = services.store.rows(TABLES).version
    with pytest.raises(UsageError) as refused:
        promised(services, by_file=by_file)
    assert str(refused.value) == (
        "db.*: at db.two vacuum.retention = 9 days is shorter than rollback.promise = 20 days."
    )
    assert services.store.rows(TABLES).version == version


def test_a_scopes_change_may_come_with_what_its_tables_need_for_it(services: Services) -> None:
    apply_policies(services, ROOT, read_policies(KEPT))
    file = read_policies("db.*: {rollback.promise: 20 days}\ndb.two: {vacuum.retention: 30 days}")
    assert len(apply_policies(services, ROOT, file)) == 2


def test_what_was_so_before_a_scopes_change_keeps_nobody_from_it(services: Services) -> None:
    def out_of_step(rows: Rows[TableRow]) -> list[TableRow]:
        """As an older lakewarden may have left it."""
        [row] = rows.find(name="db.two")
        policy = PolicySettings(vacuum_retention_seconds=9 * DAY, rollback_promise_seconds=20 * DAY)
        return [replace(row, policy=policy)]

    services.store.edit(TABLES, out_of_step, because="before")
    assert len(apply_policies(services, ROOT, read_policies("db.*: {vacuum.retention: 15 days}"))) == 1


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = services.store.edit

    def bo_is_faster(*args: Any, **more: Any) -> Any:
        monkeypatch.undo()
        set_policy(services.registry, "db.one", {"vacuum.retention": 90 * DAY}, actor=ROOT)
        return edit(*args, **more)

    monkeypatch.setattr(services.store, "edit", bo_is_faster)
    with pytest.raises(ConflictError) as refused:
        apply_policies(services, ROOT, read_policies("db.one: {mode: manage}\ndb.two: {mode: manage}"))
    assert str(refused.value) == (
        "Somebody else changed the policy of db.one meanwhile: vacuum.retention is now 90 days. "
        "Nothing was applied."
    )
    assert exported(services) == {"db.one": {"vacuum.retention": 90 * DAY}}


def test_owners_apply_files_on_their_own_tables(services: Services) -> None:
    found = apply_policies(services, ANA, read_policies("db.one: {mode: manage}\ndb.two: {mode: manage}"))
    assert [one.name for one in found] == ["db.one", "db.two"]
    with pytest.raises(NotFoundError) as refused:
        compared(services, read_policies("db.tow: {mode: manage}"))
    assert refused.value.hint == "Did you mean db.two?"
