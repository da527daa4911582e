"""A table that Spark alone commits to, where Spark stays out, or that nobody here commits to: no rollback begins that
would meet it half-way."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from lakewarden.jobs.rollback.planning_service import Gatherer
from support.builders.callers import actor
from support.builders.derived import write
from support.fakes.clock import ManualClock
from support.fakes.engine import FakeEngine

NOW = datetime(2026, 6, 1, tzinfo=UTC)
TRACKED = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata", "rowTracking"]}


def planned(
    folder: Path,
    protocol: dict[str, object] | None,
    *consents: Consent,
    retention: dict[str, str] | None = None,
) -> RollbackPlan:
    """The plan that takes back version 1 of `db.source` and what `db.derived` read of it, where Spark stays out of
    everything; the protocol is what a commit of `db.derived` upgrades it to. It had `retention` before it read, and has
    it no more."""
    clock, reader = ManualClock(moment=NOW), DeltaReader()
    store = DeltaSystemStore(canonical(str(folder / "system")), StorageOptions(), actor="test")
    store.create(system_rows(store, now=NOW, actor="root"))
    registry = Registry(
        store=store,
        readers=(reader,),
        metastore=None,
        clock=clock,
        inspect=lambda row, policy, seen: (),
        storage=lambda _: StorageOptions(),
    )
    source, derived = folder / "source", folder / "derived"
    write(source, 1)
    write(source, 99)
    write(derived, 1)
    ana = actor("ana")
    read = register(registry, str(source), actor=ana, name="db.source").row.table_id
    if retention is not None:
        DeltaTable(str(derived)).alter.set_table_properties(retention)
    write(derived, 99, reads={read: source})
    if retention is not None:
        FakeEngine(clock).unset_properties(
            canonical(str(derived)), requires=Head(2), names=list(retention), run_id="owner"
        )
    if protocol is not None:
        commit = derived / "_delta_log" / f"{2:020}.json"
        told = {"timestamp": 1_780_000_000_000, "operation": "UPGRADE PROTOCOL", "operationParameters": {}}
        commit.write_text(
            "".join(json.dumps(one) + "\n" for one in ({"commitInfo": told}, {"protocol": protocol}))
        )
    register(registry, str(derived), actor=ana, name="db.derived")
    gatherer = Gatherer(
        store=store,
        readers=[reader],
        storage=lambda _: StorageOptions(),
        clock=clock,
        no_spark=lambda location: f"it would write to {location.rpartition('/')[2]} without a condition",
    )
    request = RollbackRequest(seeds=(BadVersions(table_id=read, versions=(1,)),), cascade=True)
    request = replace(request, consents=Consents.to(*consents))
    return gatherer.gather(request).plan


@pytest.mark.heavy
def test_a_rollback_that_would_need_spark_where_it_stays_out_cannot_be_applied(tmp_path: Path) -> None:
    made = planned(tmp_path, TRACKED)
    ((where, blocker),) = made.blockers()
    assert where.name == "db.derived" and not made.applicable
    assert blocker.message == (
        "Only Spark commits to db.derived for us, and it stays out: "
        "it would write to derived without a condition."
    )


@pytest.mark.heavy
def test_a_rollback_of_what_may_only_be_observed_cannot_be_applied_unless_somebody_agrees_to_leave_it(
    tmp_path: Path,
) -> None:
    features = TRACKED | {"writerFeatures": ["unheardOf"]}
    made = planned(tmp_path / "asking", features)
    ((where, blocker),) = made.blockers()
    assert (where.name, blocker.consents) == ("db.derived", (Consent.SKIP_UNREACHABLE,))
    assert blocker.message == "db.derived uses unheardOf, which lakewarden does not act on."
    left = planned(tmp_path / "agreed", features, Consent.SKIP_UNREACHABLE)
    steps = {one.name: one.step for one in left.tables}
    assert left.applicable and steps == {"db.source": Step.RESTORE, "db.derived": Step.NONE}


@pytest.mark.heavy
@pytest.mark.parametrize("protocol", [None, TRACKED | {"writerFeatures": ["appendOnly", "invariants"]}])
def test_what_is_restored_without_spark_does_not_ask_for_it(
    tmp_path: Path, protocol: dict[str, object] | None
) -> None:
    made = planned(tmp_path, protocol)
    assert made.applicable and {one.name for one in made.tables} == {"db.source", "db.derived"}


@pytest.mark.heavy
def test_what_takes_spark_to_keep_a_retention_as_it_is_cannot_be_applied_where_it_stays_out(
    tmp_path: Path,
) -> None:
    """Its owner has taken away what the target had: nothing but Spark takes it away again."""
    retention = {"delta.deletedFileRetentionDuration": "interval 1 hours"}
    made = planned(tmp_path, None, retention=retention)
    ((where, blocker),) = made.blockers()
    assert where.name == "db.derived" and not made.applicable
    assert blocker.message == (
        "Only Spark takes delta.deletedFileRetentionDuration away again, which version 1 of db.derived "
        "has and its head has not, and it stays out: it would write to derived without a condition."
    )
