"""Lineage that was lost with the system tables: a plan reads the logs of marked tables again, or says that it cannot
tell."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.port import Commit, LogProblem, Observation, ProbeResult, TableReader
from lakewarden.catalog.model.rows import Mark, MarkVerdict, TableState
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from lakewarden.jobs.rollback.plan.model import Blocked, RollbackPlan, Step
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from lakewarden.jobs.rollback.planning_service import Gatherer
from support.builders.chained_tables import CHAINED_AT, Chain, CountingReader
from support.builders.derived import write
from support.fakes.clock import ManualClock

pytestmark = pytest.mark.heavy


class BlindReader(CountingReader):
    """Of `d` it knows that it is there, as of an Iceberg table whose metadata cannot be read, and nothing else."""

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        if location.endswith("/d"):
            return LogProblem(check="log_readable", message="its metadata is damaged")
        return super().observe(location, since=since)

    def probe(self, location: str, **words: Any) -> ProbeResult:
        return (
            ProbeResult(exists=True, moved=True)
            if location.endswith("/d")
            else super().probe(location, **words)
        )

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        if location.endswith("/d"):
            raise UnreadableError("its metadata is damaged")
        return super().commits(location, after=after, upto=upto)


def planned(chain: Chain, *consents: Consent) -> RollbackPlan:
    readers: tuple[TableReader, ...] = (chain.reader,)
    chain.reader.observed.clear()
    gatherer = Gatherer(
        store=chain.store,
        readers=readers,
        storage=lambda _: StorageOptions(),
        clock=ManualClock(moment=CHAINED_AT),
    )
    request = RollbackRequest(
        seeds=(BadVersions(table_id="t", versions=(1,)),), cascade=True, consents=Consents.to(*consents)
    )
    return gatherer.gather(request).plan


def steps(plan: RollbackPlan) -> dict[str, Step]:
    return {table.name: table.step for table in plan.tables}


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    return Chain(tmp_path)


WHOLE = {"db.t": Step.RESTORE, "db.d": Step.RESTORE, "db.x": Step.RESTORE}


def test_rows_that_were_lost_amid_others_are_read_for_a_plan(chain: Chain) -> None:
    assert steps(planned(chain)) == {"db.t": Step.RESTORE}, "nothing says that anything is lost"
    assert not any(place.endswith(("/d", "/x", "/beside")) for place in chain.reader.observed)
    chain.mark("d")
    assert steps(planned(chain, Consent.COLLATERAL)) == WHOLE
    assert not any(place.endswith("/beside") for place in chain.reader.observed)


def test_a_dropped_table_between_two_managed_ones_is_read_as_well(chain: Chain) -> None:
    chain.mark("d")
    chain.change(replace(chain.row("d"), state=TableState.DROPPED))
    made = planned(chain)
    assert steps(made)["db.x"] is Step.RESTORE and made.applicable
    chain.mark("beside")
    chain.change(replace(chain.row("beside"), state=TableState.DROPPED))
    planned(chain)
    assert not any(place.endswith("/beside") for place in chain.reader.observed), "nothing was made from it"


@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_a_plan_is_not_applied_while_nobody_knows_what_a_table_was_made_from(chain: Chain, how: str) -> None:
    chain.mark("d")
    log = chain.folder / "d" / "_delta_log"
    if how == "damaged":
        (log / f"{1:020d}.json").write_text("{")
    else:
        log.rename(chain.folder / "aside")
    made = planned(chain)
    assert not made.applicable
    found = {table.name: blocker for table, blocker in made.blockers()}
    assert found.keys() == {"db.d", "db.x"}
    assert found["db.d"].why is Blocked.UNREADABLE
    assert found["db.d"].message.startswith("db.d cannot be read, so nobody knows what it was made from: ")
    assert found["db.x"].why is Blocked.UNKNOWN
    assert set(found["db.d"].consents) == {Consent.KEEP_UNKNOWN, Consent.LOSE_UNKNOWN}
    kept = planned(chain, Consent.KEEP_UNKNOWN)
    assert kept.applicable and steps(kept)["db.t"] is Step.RESTORE


def test_what_was_made_from_a_table_that_tells_no_version_is_followed(chain: Chain) -> None:
    """Whatever was read of it may hold anything, also versions after all that are known of it."""
    chain.reader = BlindReader()
    chain.store.edit(LINEAGE, lambda _: (), delete=lambda rows: rows.find(output_id="d"), because="test")
    chain.mark("d")
    found = {table.name: blocker.why for table, blocker in planned(chain).blockers()}
    assert found == {"db.d": Blocked.UNREADABLE, "db.x": Blocked.UNKNOWN}
    lost = planned(chain, Consent.LOSE_UNKNOWN, Consent.SKIP_UNREACHABLE, Consent.COLLATERAL)
    assert steps(lost)["db.x"] is Step.RESTORE


@pytest.mark.parametrize("state", [TableState.DROPPED, TableState.PURGED])
def test_what_was_made_from_a_lost_table_is_unknown_until_somebody_says_so(
    chain: Chain, state: TableState
) -> None:
    chain.mark("d")
    chain.change(replace(chain.row("d"), state=state))
    (chain.folder / "d").rename(chain.folder / "lost")
    made = planned(chain)
    assert [(table.name, blocker.why) for table, blocker in made.blockers()] == [("db.x", Blocked.UNKNOWN)]
    write(chain.folder / "d", 5)  # another table: it says nothing of what was there
    assert not planned(chain).applicable
    x = chain.row("x")
    said = Mark(version=1, verdict=MarkVerdict.CLEAN, by="ana", at=CHAINED_AT, format_id=x.format_ids[0])
    chain.change(replace(x, marks=(said,)))
    assert planned(chain).applicable
