"""A plan that is made again while it is carried out asks for the same: the version that a person named, too."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lakewarden.catalog.lineage.versions import Version
from lakewarden.jobs.rollback.journal.stored_plan import frozen_request
from lakewarden.jobs.rollback.plan.consents import Agreement, Consent, Consents
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step
from lakewarden.jobs.rollback.plan.request import RollbackRequest, Seed, ToVersion, ToVersionAsPlanned
from support.builders.tables_by_hand import facts, history, plan

TO_1 = ToVersion(table_id="a", version=1)
CREATED = ("create", "append")
COLLATERAL = Consents.to(Consent.COLLATERAL)


def made(*lines: str, seed: Seed = TO_1, **asked: object) -> RollbackPlan:
    request = RollbackRequest(seeds=(seed,), consents=COLLATERAL)
    return plan(replace(request, **asked), {"a": history(*lines)})  # type: ignore[arg-type]  # real fields


def again(first: RollbackPlan, *lines: str, **more: tuple[Version, ...]) -> RollbackPlan:
    tables: Mapping[str, tuple[Version, ...]] = {"a": history(*lines), **more}
    return plan(frozen_request(first), tables)


def way(found: RollbackPlan) -> list[tuple[Step, int | None]]:
    return [(one.step, one.to_version) for one in found.tables if one.step is not Step.NONE]


@pytest.mark.parametrize(
    "since",
    [
        pytest.param(("ADD COLUMNS", "append"), id="columns-came-first"),
        pytest.param(("ADD COLUMNS",), id="nothing-but-columns"),
        pytest.param(("RESTORE 0",), id="nothing-but-a-restore"),
        pytest.param(("RESTORE 0", "append"), id="rows-upon-a-restore"),
    ],
)
def test_the_named_version_is_gone_back_to_also_when_it_is_planned_again(since: tuple[str, ...]) -> None:
    first = made(*CREATED, *since)
    assert way(first) == [(Step.RESTORE, 1)]
    assert way(again(first, *CREATED, *since)) == [(Step.RESTORE, 1)]
    written_since = again(first, *CREATED, *since, "append")
    assert way(written_since) == [(Step.RESTORE, 1)]
    ((_, blocker),) = written_since.blockers()
    assert blocker.versions == (len(since) + 2,)


@pytest.mark.parametrize("since", [("ADD COLUMNS", "append"), ("RESTORE 0",)])
@pytest.mark.parametrize("later", [(), ("append",), ("ADD COLUMNS",), ("OPTIMIZE",)])
def test_a_table_that_is_back_stays_with_what_others_wrote_upon_it(
    since: tuple[str, ...], later: tuple[str, ...]
) -> None:
    first = made(*CREATED, *since)
    assert way(again(first, *CREATED, *since, "RESTORE 1", *later)) == []


def test_an_overwrite_in_between_heals_and_stays() -> None:
    first = made(*CREATED, "ADD COLUMNS", "append")
    assert way(again(first, *CREATED, "ADD COLUMNS", "append", "overwrite")) == []


def test_columns_that_somebody_adds_in_between_are_asked_for() -> None:
    first = made(*CREATED, "ADD COLUMNS", "append")
    assert first.request.consents == Consents()
    later = again(first, *CREATED, "ADD COLUMNS", "append", "ADD COLUMNS")
    ((_, blocker),) = later.blockers()
    assert blocker.message == "1 schema change of db.a would be lost."
    assert blocker.versions == (4,)


def test_columns_stay_where_only_files_are_taken_out() -> None:
    known = facts("a", intact=frozenset({3}))
    request = RollbackRequest(seeds=(TO_1,), undo=frozenset({"a"}))
    lines = (*CREATED, "ADD COLUMNS", "append")
    first = plan(request, {"a": history(*lines)}, known)
    assert way(first) == [(Step.REMOVE_FILES, 3)]
    assert way(again(first, *lines, "remove files <- a@2")) == []
    assert way(again(first, *lines, "merge <- self")) == [(Step.RESTORE, 1)]


def test_a_consent_from_resume_counts_beside_the_named_version() -> None:
    first = made(*CREATED, "ADD COLUMNS", "append")
    later = Agreement(consent=Consent.COLLATERAL, table_id="a", version=4)
    request = frozen_request(first, Consents(named=frozenset({later})))
    found = plan(request, {"a": history(*CREATED, "ADD COLUMNS", "append", "append")})
    assert found.applicable and way(found) == [(Step.RESTORE, 1)]


def test_what_a_plan_takes_from_a_table_is_not_counted_out() -> None:
    first = made(*CREATED, "append")
    far = replace(first, tables=tuple(replace(one, from_version=10**15) for one in first.tables))
    [seed] = frozen_request(far).seeds
    assert isinstance(seed, ToVersionAsPlanned) and (seed.version, seed.head, seed.leaves) == (
        1,
        10**15,
        None,
    )
