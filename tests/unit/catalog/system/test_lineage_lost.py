"""A repair that takes lineage away says so in the rows of all tables before it does: where it is killed, that stays."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog import failpoints
from lakewarden.catalog.model.rows import RowKind, Source, TableState
from lakewarden.catalog.model.unread_lineage import is_lineage_unread
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import LINEAGE, SYSTEM_TABLES, TABLES
from lakewarden.catalog.system.recovery.repair import repair
from lakewarden.catalog.system.recovery.repair_plan import plan_repair
from lakewarden.catalog.system.recovery.verify import verify
from lakewarden.catalog.system.schema import SCHEMA_VERSION, VERSION_PROPERTY
from lakewarden.catalog.system.store import DeltaSystemStore
from support.builders.system_samples import NOW, sample, table_row
from support.crashes.killed import Killed

pytestmark = pytest.mark.heavy


class LostLineage:
    """A home with managed tables, one of which was purged, and the lineage of each in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "system"
        store = self.opened()
        store.create(system_rows(store, now=NOW, actor="tests"))
        purged = replace(table_row(41), state=TableState.PURGED)
        store.edit(TABLES, lambda _: [table_row(40), purged], because="register")
        store.append(
            LINEAGE, [replace(sample(LINEAGE, 1), output_id=table_row(40).table_id)], because="sweep"
        )
        store.append(
            LINEAGE, [replace(sample(LINEAGE, 2), output_id=table_row(41).table_id)], because="sweep"
        )

    def opened(self) -> DeltaSystemStore:
        return DeltaSystemStore(canonical(str(self.folder)), StorageOptions(), actor="tests")

    def repair(self) -> None:
        store = self.opened()
        plan = plan_repair(verify(store), None)
        assert plan.beyond == ()
        repair(store, plan, source=None, consent=True, now=NOW, note=Note(actor="tests", because="repair"))

    def lose_file(self) -> None:
        next((self.folder / "lineage").rglob("*.parquet")).unlink()

    def lose_table(self) -> None:
        shutil.rmtree(self.folder / "lineage")

    def lose_own_row(self) -> None:
        self.opened().edit(TABLES, lambda _: (), delete=lambda rows: rows.find(row=3), because="by accident")

    def age(self) -> None:
        """As an older lakewarden left them."""
        for table in SYSTEM_TABLES:
            handle = DeltaTable(str(self.folder / table.name))
            handle.alter.set_table_properties(
                {VERSION_PROPERTY: str(SCHEMA_VERSION - 1)}, raise_if_not_exists=False
            )

    def marked(self) -> set[str]:
        rows = self.opened().rows(TABLES).find(kind=RowKind.TABLE)
        ours = [row for row in rows if row.source is not Source.SELF]
        assert len(ours) == 2
        return {row.table_id for row in ours if is_lineage_unread(row.properties)}


def killed_at(number: int, do: Callable[[], None], monkeypatch: pytest.MonkeyPatch, point: str = "") -> bool:
    """Do it until the failpoint of this number among those named so is reached. False: it came to its end."""
    left = number

    def listener(reached: str) -> None:
        nonlocal left
        left -= reached.startswith(point)
        if left < 0:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "listener", listener)
        try:
            do()
        except Killed:
            return True
    return False


EVERYBODY = {table_row(40).table_id, table_row(41).table_id}
Loss = Callable[[LostLineage], None]


@pytest.mark.parametrize(
    ("lost", "beside", "point"),
    [
        (LostLineage.lose_file, LostLineage.lose_own_row, "system.repaired"),
        (LostLineage.lose_table, LostLineage.age, "system.create.lineage"),
    ],
    ids=["no row", "older"],
)
def test_lineage_that_is_given_up_is_read_again_though_tables_itself_is_mended_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: Loss, beside: Loss, point: str
) -> None:
    home = LostLineage(tmp_path)
    beside(home)
    lost(home)
    assert killed_at(0, home.repair, monkeypatch, point)
    home.repair()
    assert verify(home.opened()) == () and home.marked() == EVERYBODY


@pytest.mark.long
@pytest.mark.parametrize("beside", [LostLineage.lose_own_row, LostLineage.age], ids=["no row", "older"])
@pytest.mark.parametrize("lost", [LostLineage.lose_file, LostLineage.lose_table], ids=["a file", "all"])
def test_lineage_that_is_given_up_is_read_again_wherever_a_repair_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: Loss, beside: Loss
) -> None:
    home, kills, kept = LostLineage(tmp_path / "first"), 0, tmp_path / "kept"
    beside(home)
    lost(home)
    shutil.copytree(home.folder, kept)
    while killed_at(kills, home.repair, monkeypatch):
        home.repair()
        assert verify(home.opened()) == () and home.marked() == EVERYBODY, f"after kill {kills}"
        shutil.rmtree(home.folder)
        shutil.copytree(kept, home.folder)
        kills += 1
    assert home.marked() == EVERYBODY and kills > 1


def test_a_repair_that_loses_no_lineage_marks_nothing(tmp_path: Path) -> None:
    home = LostLineage(tmp_path)
    home.lose_own_row()
    home.repair()
    assert home.marked() == set()
