"""Lineage that was lost with the system tables: a plan reads the logs of marked tables again, or says that it cannot
tell."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import LogProblem, Observation, TableReader
from lakewarden.catalog.lineage.recording import rows_from
from lakewarden.catalog.model.rows import LineageRow, Mark, MarkVerdict, Source, TableRow, TableState
from lakewarden.catalog.model.unread_lineage import with_lineage_unread
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.port import LINEAGE, TABLES
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from lakewarden.jobs.rollback.plan.model import Blocked, RollbackPlan, Step
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from lakewarden.jobs.rollback.planning_service import Gatherer
from support.builders.derived import write
from support.fakes.clock import ManualClock
from support.fakes.system_store import FakeSystemStore

pytestmark = pytest.mark.heavy

NOW = datetime(2026, 6, 1, tzinfo=UTC)


class CountingReader(DeltaReader):
    """Counts whose logs are observed."""

    def __init__(self) -> None:
        super().__init__()
        self.observed: list[str] = []

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        self.observed.append(location)
        return super().observe(location, since=since)


class Chain:
    """`t` has a bad load as version 1; `d` was made from it in version 1 and got rows of its own since; `x` was made
    from that. All of it is on record but that `d` was made from `t`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store, self.reader = folder, FakeSystemStore(), CountingReader()
        self.store.create([])
        for name in ("t", "d", "x", "beside"):
            write(folder / name, 1)
        write(folder / "t", 99)
        write(folder / "d", 99, reads={"t": folder / "t"})
        write(folder / "x", 99, reads={"d": folder / "d"})
        write(folder / "d", 2)
        for name in ("t", "d", "x", "beside"):
            self.manage(name)

    def manage(self, name: str) -> None:
        location = canonical(str(self.folder / name))
        seen = self.reader.observe(location)
        assert isinstance(seen, Observation)
        row = TableRow(
            row=len(self.store.rows(TABLES).all()), table_id=name, name=f"db.{name}", location=location, owner="ana",
            source=Source.REGISTER, registered_at=NOW, registered_by="ana", updated_at=NOW, updated_by="ana",
            format_ids=(seen.format_id,),
        )  # fmt: skip
        self.store.edit(TABLES, lambda _: [row], because="test")
        told = rows_from(name, tuple(self.reader.commits(location, after=-1)), format_id=None, at=NOW)
        self.store.append(LINEAGE, [one for one in told if not is_lost(one)], because="test")

    def mark(self, *names: str) -> None:
        rows = (row for row in self.store.rows(TABLES).all() if row.table_id in names)
        self.change(*with_lineage_unread(rows, now=NOW, actor="root"))

    def change(self, *rows: TableRow) -> None:
        self.store.edit(TABLES, lambda _: rows, because="test")

    def row(self, name: str) -> TableRow:
        found = self.store.rows(TABLES).get(name)
        assert found is not None
        return found

    def plan(self, *consents: Consent) -> RollbackPlan:
        readers: tuple[TableReader, ...] = (self.reader,)
        self.reader.observed.clear()
        gatherer = Gatherer(
            store=self.store,
            readers=readers,
            storage=lambda _: StorageOptions(),
            clock=ManualClock(moment=NOW),
        )
        request = RollbackRequest(
            seeds=(BadVersions(table_id="t", versions=(1,)),), cascade=True, consents=Consents.to(*consents)
        )
        return gatherer.gather(request).plan


def is_lost(row: LineageRow) -> bool:
    return row.output_id == "d" and row.output_version == 1


def steps(plan: RollbackPlan) -> dict[str, Step]:
    return {table.name: table.step for table in plan.tables}


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    return Chain(tmp_path)


WHOLE = {"db.t": Step.RESTORE, "db.d": Step.RESTORE, "db.x": Step.RESTORE}


def test_rows_that_were_lost_amid_others_are_read_for_a_plan(chain: Chain) -> None:
    assert steps(chain.plan()) == {"db.t": Step.RESTORE}, "nothing says that anything is lost"
    assert not any(place.endswith(("/d", "/x", "/beside")) for place in chain.reader.observed)
    chain.mark("d")
    assert steps(chain.plan(Consent.COLLATERAL)) == WHOLE
    assert not any(place.endswith("/beside") for place in chain.reader.observed)


def test_a_dropped_table_between_two_managed_ones_is_read_as_well(chain: Chain) -> None:
    chain.mark("d")
    chain.change(replace(chain.row("d"), state=TableState.DROPPED))
    made = chain.plan()
    assert steps(made)["db.x"] is Step.RESTORE and made.applicable
    chain.mark("beside")
    chain.change(replace(chain.row("beside"), state=TableState.DROPPED))
    chain.plan()
    assert not any(place.endswith("/beside") for place in chain.reader.observed), "nothing was made from it"


@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_a_plan_is_not_applied_while_nobody_knows_what_a_table_was_made_from(chain: Chain, how: str) -> None:
    chain.mark("d")
    log = chain.folder / "d" / "_delta_log"
    if how == "damaged":
        (log / f"{1:020d}.json").write_text("{")
    else:
        log.rename(chain.folder / "aside")
    made = chain.plan()
    assert not made.applicable
    found = {table.name: blocker for table, blocker in made.blockers()}
    assert found.keys() == {"db.d", "db.x"}
    assert found["db.d"].why is Blocked.UNREADABLE
    assert found["db.d"].message.startswith("db.d cannot be read, so nobody knows what it was made from: ")
    assert found["db.x"].why is Blocked.UNKNOWN
    assert set(found["db.d"].consents) == {Consent.KEEP_UNKNOWN, Consent.LOSE_UNKNOWN}
    kept = chain.plan(Consent.KEEP_UNKNOWN)
    assert kept.applicable and steps(kept)["db.t"] is Step.RESTORE


@pytest.mark.parametrize("state", [TableState.DROPPED, TableState.PURGED])
def test_what_was_made_from_a_lost_table_is_unknown_until_somebody_says_so(
    chain: Chain, state: TableState
) -> None:
    chain.mark("d")
    chain.change(replace(chain.row("d"), state=state))
    (chain.folder / "d").rename(chain.folder / "lost")
    made = chain.plan()
    assert [(table.name, blocker.why) for table, blocker in made.blockers()] == [("db.x", Blocked.UNKNOWN)]
    write(chain.folder / "d", 5)  # another table: it says nothing of what was there
    assert not chain.plan().applicable
    x = chain.row("x")
    said = Mark(version=1, verdict=MarkVerdict.CLEAN, by="ana", at=NOW, format_id=x.format_ids[0])
    chain.change(replace(x, marks=(said,)))
    assert chain.plan().applicable
