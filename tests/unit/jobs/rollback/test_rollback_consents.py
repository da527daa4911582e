"""A consent covers what was listed when it was given, and nothing that comes later."""

from dataclasses import replace

import pytest

from lakewarden.catalog.errors import ConsentError, UsageError
from lakewarden.jobs.rollback.journal.stored_plan import StoredPlan as Stored
from lakewarden.jobs.rollback.journal.stored_plan import (
    decode_plan,
    encode_plan,
    frozen_request,
)
from lakewarden.jobs.rollback.plan.consents import (
    NO_CONSENTS,
    Agreement,
    Consent,
    Consents,
    by_words,
    flags_of,
    parse_consent,
)
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step, TablePlan
from lakewarden.jobs.rollback.plan.request import RollbackRequest, ToVersion
from lakewarden.jobs.rollback.report.refusal import refuse_blocked
from support.builders.tables_by_hand import facts, history, plan

BAD_LOAD = RollbackRequest(seeds=(ToVersion(table_id="a", version=1),), cascade=True)
A = history("create", "append", "append")
B = history("create", "append <- a@2", "append")
B_WRITTEN_SINCE = (*B, replace(B[2], version=3, parent=2))
UNKNOWN = history("create", "append <- a@1", "append ?")


def agreed(*kinds: Consent) -> RollbackRequest:
    return replace(BAD_LOAD, consents=Consents.to(*kinds))


def named(*ones: tuple[Consent, str, int | None]) -> Consents:
    return Consents(named=frozenset(Agreement(consent=c, table_id=t, version=v) for c, t, v in ones))


def table(made: RollbackPlan, table_id: str) -> TablePlan:
    return next(one for one in made.tables if one.table_id == table_id)


def test_a_consent_to_all_collateral_is_kept_as_the_list_of_what_was_shown() -> None:
    made = plan(agreed(Consent.COLLATERAL), {"a": A, "b": B})
    assert made.applicable
    assert made.request.consents == named((Consent.COLLATERAL, "b", 2))
    assert plan(made.request, {"a": A, "b": B}).hash == made.hash


def test_a_consent_given_where_nothing_would_be_lost_is_worth_nothing_later() -> None:
    made = plan(agreed(Consent.COLLATERAL), {"a": A})
    assert made.request.consents == NO_CONSENTS
    assert made.hash == plan(BAD_LOAD, {"a": A}).hash
    later = plan(frozen_request(made), {"a": (*A, replace(A[1], version=3, parent=2))})
    ((_, blocker),) = later.blockers()
    assert blocker.versions == (3,)


def test_what_was_written_since_is_asked_about_alone() -> None:
    first = plan(agreed(Consent.COLLATERAL), {"a": A, "b": B})
    later = plan(frozen_request(first), {"a": A, "b": B_WRITTEN_SINCE})
    ((_, blocker),) = later.blockers()
    assert (blocker.versions, blocker.message) == ((3,), "1 clean commit of db.b (10 rows) would be lost.")
    with pytest.raises(ConsentError) as error:
        refuse_blocked(later, resuming="r1")
    assert "`lakewarden rollback resume r1 --consent collateral=db.b@3`" in error.value.hint
    assert error.value.ways == (("collateral=db.b@3",),)
    with pytest.raises(ConsentError) as error:
        refuse_blocked(later, resuming="r1", given=later.request.consents)
    assert error.value.ways == (("collateral=db.b@2", "collateral=db.b@3"),), "given once is not kept yet"
    more = named((Consent.COLLATERAL, "b", 3))
    assert plan(frozen_request(first, more), {"a": A, "b": B_WRITTEN_SINCE}).applicable


def test_the_hash_covers_what_was_agreed_to() -> None:
    tables = {"a": A, "b": (*B, replace(B[2], version=3, parent=2))}
    one, both = (
        replace(BAD_LOAD, consents=named(*((Consent.COLLATERAL, "b", version) for version in versions)))
        for versions in ((2,), (2, 3))
    )
    hashes = {plan(request, tables).hash for request in (BAD_LOAD, one, both)}
    assert len(hashes) == 3
    assert plan(both, tables).hash == plan(agreed(Consent.COLLATERAL), tables).hash


@pytest.mark.parametrize("consent", [Consent.KEEP_UNKNOWN, Consent.LOSE_UNKNOWN])
def test_unknown_commits_that_come_later_are_asked_about_anew(consent: Consent) -> None:
    tables = {"a": A, "b": (*UNKNOWN, replace(B[1], version=3, parent=2))}
    made = plan(agreed(consent), tables)
    assert made.applicable and made.request.consents == named((consent, "b", 2))
    again = plan(made.request, tables)
    assert again.hash == made.hash and again.tables == made.tables
    later = plan(made.request, {**tables, "b": (*tables["b"], replace(UNKNOWN[2], version=4, parent=3))})
    ((_, blocker),) = later.blockers()
    assert blocker.versions == (4,)


@pytest.mark.parametrize(
    ("consent", "known", "tables"),
    [
        (Consent.APPEND_ONLY, {"append_only": True}, ("b", "c")),
        (Consent.QUARANTINE_BORN_TAINTED, {}, ("born", "other")),
    ],
)
def test_consents_about_tables_name_the_tables(
    consent: Consent, known: dict[str, bool], tables: tuple[str, str]
) -> None:
    first, second = tables
    body = history("create", "append <- a@2") if known else history("create <- a@2")
    every = [facts(one, **known) for one in tables]
    made = plan(agreed(consent), {"a": A, first: body}, *every)
    assert made.applicable and made.request.consents == named((consent, first, None))
    later = plan(made.request, {"a": A, first: body, second: body}, *every)
    assert [where.table_id for where, _ in later.blockers()] == [second]
    assert table(later, first).step is not Step.NONE


def test_a_stored_plan_keeps_each_consent() -> None:
    made = plan(agreed(Consent.COLLATERAL), {"a": A, "b": B})
    assert decode_plan(encode_plan(Stored(plan=made))).plan.request == made.request


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("collateral", (Consent.COLLATERAL, None, ())),
        ("collateral=db.t@7", (Consent.COLLATERAL, "db.t", (7,))),
        ("keep_unknown=db.t@3,7-9", (Consent.KEEP_UNKNOWN, "db.t", (3, 7, 8, 9))),
        ("collateral=/lake/odd@place@2", (Consent.COLLATERAL, "/lake/odd@place", (2,))),
        ("append_only=db.t", (Consent.APPEND_ONLY, "db.t", ())),
    ],
)
def test_a_consent_reads_as_it_is_written(
    text: str, parsed: tuple[Consent, str | None, tuple[int, ...]]
) -> None:
    assert parse_consent(text) == parsed


@pytest.mark.parametrize(
    "text", ["all", "collateral=", "collateral=db.t", "collateral=db.t@", "collateral=db.t@x", "append_only="]
)
def test_what_is_no_consent_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_consent(text)


@pytest.mark.parametrize("versions", ["7,x", "7,", "7,9-", "7,-9", "7,12-9"])
def test_a_list_with_a_slip_in_it_is_no_consent_to_the_versions_before(versions: str) -> None:
    with pytest.raises(UsageError, match="does not say which versions"):
        parse_consent(f"collateral=db.t@{versions}")


@pytest.mark.parametrize("versions", ["0-99999999999", "3,1-20261125"])
def test_a_range_that_nobody_can_have_looked_at_is_refused_at_once(versions: str) -> None:
    with pytest.raises(UsageError, match="names more than 100,000 versions"):
        parse_consent(f"collateral=db.t@{versions}")


def test_what_is_shown_can_be_pasted() -> None:
    flag = flags_of(Consent.COLLATERAL, "db.t", (9, 7, 8, 3))
    assert flag == "--consent collateral=db.t@3,7-9"
    assert parse_consent(flag.removeprefix("--consent "))[1:] == ("db.t", (3, 7, 8, 9))
    ones = named(*((Consent.COLLATERAL, "t", version) for version in (3, 7, 8))).named
    assert by_words(ones) == ("collateral t@3,7-8",)
