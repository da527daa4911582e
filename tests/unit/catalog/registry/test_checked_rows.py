"""What validation has to judge is judged before rows are compared and set;
what becomes another one meanwhile, again."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ConflictError, RefusedError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import Finding, PolicySettings, TableRow
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.registry.governance import set_policy
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.system.port import TABLES
from support.builders.registries import ANA, ROOT, folder, made_registry
from support.builders.tables import FakeReader


@dataclass
class Checks:
    """Validation that notes what it was asked about, and during which something else happens."""

    registry: Registry
    meanwhile: list[int] = field(default_factory=list)
    """Retentions of `*` in days that an admin sets, one during each check."""
    asked: list[tuple[TableRow, EffectivePolicy]] = field(default_factory=list)
    editing: bool = False

    def __call__(
        self, row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem
    ) -> tuple[Finding, ...]:
        assert not self.editing, "a check inside compare-and-set"
        self.asked.append((row, policy))
        if self.meanwhile:
            set_policy(self.registry, "*", {"vacuum.retention": 86_400 * self.meanwhile.pop(0)}, actor=ROOT)
        return ()


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def plain(reader: FakeReader) -> Registry:
    return made_registry(reader)


def checked(plain: Registry, checks: Checks, monkeypatch: pytest.MonkeyPatch) -> Registry:
    edit = type(plain.store).edit

    def watched(store: object, *arguments: object, **named: object) -> object:
        checks.editing = True
        try:
            return edit(store, *arguments, **named)  # type: ignore[arg-type]  # passed on as they came
        finally:
            checks.editing = False

    monkeypatch.setattr(type(plain.store), "edit", watched)
    return replace(plain, inspect=checks)


def test_a_registration_checks_once_and_outside_of_the_edit(
    plain: Registry, reader: FakeReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = Checks(plain)
    done = register(checked(plain, checks, monkeypatch), folder(reader, tmp_path / "t"), actor=ANA)
    assert [row for row, _ in checks.asked] == [done.row]


def test_a_policy_that_changes_meanwhile_is_what_counts(
    plain: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    checks = Checks(plain, meanwhile=[20])
    done = register(replace(plain, inspect=checks), folder(reader, tmp_path / "t"), actor=ANA)
    assert [policy.vacuum_retention_seconds for _, policy in checks.asked] == [7 * 86_400, 20 * 86_400]
    assert done.created and plain.store.rows(TABLES).get(done.row.table_id) == done.row


def test_who_is_overtaken_again_and_again_is_told_and_nothing_is_written(
    plain: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    checks = Checks(plain, meanwhile=list(range(8, 40)))
    with pytest.raises(ConflictError, match="kept changing"):
        register(replace(plain, inspect=checks), folder(reader, tmp_path / "t"), actor=ANA)
    assert not plain.store.rows(TABLES).find(location=f"file://{tmp_path}/t")


def test_a_table_that_comes_to_have_a_twin_while_it_is_checked_is_seen_as_its_copy(
    plain: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    first, second = (folder(reader, tmp_path / name, uuid="same") for name in ("a", "b"))

    def meanwhile(
        row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem
    ) -> tuple[Finding, ...]:
        if row.location == second and not plain.store.rows(TABLES).find(location=first):
            register(plain, first, actor=ROOT)
        return ()

    with pytest.raises(RefusedError, match="carries the same table UUID"):
        register(replace(plain, inspect=meanwhile), second, actor=ANA)
    assert not plain.store.rows(TABLES).find(location=second)


def test_a_row_is_written_as_it_was_checked(plain: Registry, reader: FakeReader, tmp_path: Path) -> None:
    set_policy(plain, "*", {"vacuum.retention": 9 * 86_400}, actor=ROOT)
    done = register(plain, folder(reader, tmp_path / "t"), actor=ANA)
    assert done.row.policy == PolicySettings() and done.row.updated_at == plain.clock.now()
