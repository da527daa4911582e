"""What a rollback plan decides, one situation at a time."""

from dataclasses import replace

import pytest

from lakewarden.catalog.errors import NotFoundError
from lakewarden.catalog.lineage.versions import Effect, Version
from lakewarden.catalog.model.rows import UNKNOWN_PARENT, Dependency, OnRollback, RollbackStep
from lakewarden.jobs.rollback.execute.commit_records import removal_record
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.journal.stored_plan import steps_of
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from lakewarden.jobs.rollback.plan.facts import PropertyChange, TableFacts, Unreachable, VersionObstacle
from lakewarden.jobs.rollback.plan.model import Blocked, RollbackPlan, Step, TablePlan
from lakewarden.jobs.rollback.plan.request import BadVersions, CommitsOf, RollbackRequest, ToVersion
from support.builders.tables_by_hand import facts, history, plan

BAD_LOAD = RollbackRequest(seeds=(ToVersion(table_id="a", version=1),), cascade=True)
A = history("create", "append", "append")


def table(made: RollbackPlan, table_id: str) -> TablePlan:
    return next(one for one in made.tables if one.table_id == table_id)


def reasons(made: RollbackPlan) -> list[Blocked]:
    return [one.why for _, one in made.blockers()]


def agreed(request: RollbackRequest, *consents: Consent) -> RollbackRequest:
    return replace(request, consents=Consents.to(*consents))


# what is undone, and to which version


def test_a_table_goes_back_to_the_version_that_was_named() -> None:
    made = plan(BAD_LOAD, {"a": A})
    one = table(made, "a")
    assert (one.from_version, one.to_version, one.tainted, one.collateral) == (2, 1, (2,), ())
    assert made.applicable and one.step is Step.RESTORE


def test_what_read_the_bad_version_goes_back_too_and_what_read_an_older_one_stays() -> None:
    made = plan(
        BAD_LOAD,
        {
            "a": A,
            "bad": history("create", "append <- a@2"),
            "late": history("create", "append <- a@1"),
            "two": history("create", "append <- bad@0", "merge <- bad@1"),
        },
    )
    assert {(one.table_id, one.from_version, one.to_version, one.wave) for one in made.tables} == {
        ("a", 2, 1, 0),
        ("bad", 1, 0, 1),
        ("two", 2, 1, 2),
    }


def test_a_full_overwrite_that_does_not_read_itself_heals() -> None:
    healed = history("create", "append <- a@2", "overwrite <- a@1")
    made = plan(BAD_LOAD, {"a": A, "healed": healed, "next": history("create <- healed@2")})
    one = table(made, "healed")
    assert (one.step, one.from_version, one.to_version, one.tainted) == (Step.NONE, 2, 2, (1,))
    assert [one.table_id for one in made.tables if one.acts] == ["a"]


@pytest.mark.parametrize("last", ["overwrite <- self", "partial overwrite", "update", "delete", "merge"])
def test_what_keeps_something_of_its_parent_does_not_heal(last: str) -> None:
    made = plan(BAD_LOAD, {"a": A, "b": history("create", "append <- a@2", last)})
    assert table(made, "b").to_version == 0


def test_compaction_and_restore_carry_taint_as_what_they_are() -> None:
    made = plan(
        BAD_LOAD,
        {
            "a": A,
            "b": history("create", "append <- a@2", "OPTIMIZE", "RESTORE 0", "append"),
            "c": history("create", "append <- b@2"),
            "d": history("create", "append <- b@3"),
        },
    )
    assert {one.table_id: one.to_version for one in made.tables} == {"a": 1, "b": 4, "c": 0}
    assert table(made, "b").step is Step.NONE


def test_the_newest_clean_version_keeps_the_compaction_before_the_bad_load() -> None:
    made = plan(BAD_LOAD, {"a": A, "b": history("create", "append", "OPTIMIZE", "append <- a@2")})
    assert table(made, "b").to_version == 2


def test_only_changes_were_read_so_only_bad_changes_count() -> None:
    a = history("create", "append", "append", "append")
    request = RollbackRequest(seeds=(BadVersions(table_id="a", versions=(2,)),), cascade=True)
    made = plan(
        request,
        {
            "a": a,
            "stream": history("create <- a@0..1", "append <- a@1..2", "append <- a@2..3"),
            "late": history("create", "append <- a@2..3"),
            "whole": history("create", "append <- a@3"),
        },
    )
    assert {one.table_id: one.to_version for one in made.tables} == {"a": 1, "stream": 0, "whole": 0}
    assert [one.version for one in table(made, "stream").collateral] == [2]


def test_the_commits_of_a_run_are_seeds_and_clean_ones_after_them_collateral() -> None:
    tables = {"a": history("create", "append", "append"), "b": history("create", "append")}
    made = plan(RollbackRequest(seeds=(CommitsOf(run_id="run-1"),)), tables)
    assert {one.table_id: (one.tainted, one.to_version) for one in made.tables} == {
        "a": ((1,), 0),
        "b": ((1,), 0),
    }
    assert [one.version for one in table(made, "a").collateral] == [2]
    assert [one.message for _, one in made.blockers()] == ["1 clean commit of db.a (10 rows) would be lost."]


def test_a_commit_marked_clean_is_no_seed_and_stops_taint() -> None:
    tables = {"a": A, "b": history("create", "append <- a@2", "append")}
    request = replace(BAD_LOAD, clean=frozenset({("b", 1)}))
    assert [one.table_id for one in plan(request, tables).tables] == ["a"]
    made = plan(replace(BAD_LOAD, clean=frozenset({("a", 2)})), tables)
    assert [(one.table_id, [lost.version for lost in one.collateral]) for one in made.tables] == [("a", [2])]


def test_a_plan_names_the_marks_that_made_a_difference() -> None:
    tables = {
        "a": A,
        "b": history("create", "append <- a@2", "append <- a@1"),
        "c": history("create <- b@1", "append <- a@2..2"),
    }
    every = frozenset({("a", 2), ("b", 1), ("b", 2), ("c", 1), ("c", 9)})
    made = plan(replace(BAD_LOAD, clean=every - {("a", 2)}), tables)
    assert [(one.name, one.version) for one in made.spared] == [("db.b", 1)]
    assert [(one.name, one.version) for one in plan(replace(BAD_LOAD, clean=every), tables).spared] == [
        ("db.a", 2)
    ]
    assert plan(BAD_LOAD, tables).spared == ()


def test_lost_schema_changes_are_listed_properties_and_maintenance_are_not() -> None:
    a = history("create", "append", "ADD COLUMNS", "append", "OPTIMIZE", "SET TBLPROPERTIES", "VACUUM END")
    one = table(plan(RollbackRequest(seeds=(BadVersions(table_id="a", versions=(1,)),)), {"a": a}), "a")
    assert [(lost.version, lost.touch) for lost in one.collateral] == [(2, "schema"), (3, "content")]


def test_nothing_but_maintenance_after_the_version_is_nothing_to_undo() -> None:
    one = table(plan(BAD_LOAD, {"a": history("create", "append", "OPTIMIZE", "VACUUM END")}), "a")
    assert (one.step, one.to_version) == (Step.NONE, 3)


def test_several_tables_at_once_may_taint_one_another() -> None:
    request = RollbackRequest(
        seeds=(ToVersion(table_id="a", version=1), ToVersion(table_id="b", version=1)), cascade=True
    )
    made = plan(request, {"a": A, "b": history("create", "append <- a@2", "append")})
    assert table(made, "b").to_version == 0, "version 1 that was asked for is tainted itself"


def test_a_seed_that_does_not_exist_is_named() -> None:
    for seed in (ToVersion(table_id="a", version=9), BadVersions(table_id="a", versions=(1, 9))):
        with pytest.raises(NotFoundError, match=r"db\.a has no version 9\."):
            plan(RollbackRequest(seeds=(seed,)), {"a": A})
    with pytest.raises(NotFoundError, match="No commit of the run nobody"):
        plan(RollbackRequest(seeds=(CommitsOf(run_id="nobody"),)), {"a": A})


# removing files instead


def undone(*versions: str, intact: frozenset[int]) -> TablePlan:
    seed = BadVersions(table_id="a", versions=(1,))
    request = RollbackRequest(seeds=(seed,), undo=frozenset({"a"}))
    return table(plan(request, {"a": history(*versions)}, facts("a", intact=intact)), "a")


def test_a_bad_append_whose_files_are_all_there_can_be_removed_without_collateral() -> None:
    one = undone("create", "append", "append", "delete", intact=frozenset({1, 2}))
    assert (one.step, one.undoable, one.collateral, one.blocked_by) == (Step.REMOVE_FILES, (1,), (), ())


@pytest.mark.parametrize(
    ("versions", "intact", "why"),
    [
        (("create", "append", "append"), frozenset({2}), "files of version 1 were taken out or written anew"),
        (("create", "append", "merge"), frozenset({1}), "version 2 (merge) may come of the bad rows, too"),
        (("create", "append", "append <- self"), frozenset({1, 2}), "version 2 is no blind append"),
        (("create", "merge", "append"), frozenset({1, 2}), "version 1 is no blind append"),
    ],
    ids=["files are gone", "a merge looked at it", "a later write read it", "it is no append"],
)
def test_else_it_cannot(versions: tuple[str, ...], intact: frozenset[int], why: str) -> None:
    one = undone(*versions, intact=intact)
    (told,) = (blocker.message for blocker in one.blocked_by if blocker.why is Blocked.NOT_UNDOABLE)
    assert one.undoable == () and f"more than whole appends would have to go: {why}" in told


def test_nor_where_rows_of_it_were_deleted_or_what_nobody_called_a_merge_may_be_one() -> None:
    versions = history("create", "append", "partial overwrite")
    request = RollbackRequest(seeds=(BadVersions(table_id="a", versions=(1,)),), undo=frozenset({"a"}))
    whole = facts("a", intact=frozenset({1}))
    assert plan(request, {"a": versions}, whole).applicable
    thinned = facts("a", thinned=frozenset({1}))
    (blocker, *_) = (one for _, one in plan(request, {"a": versions}, thinned).blockers())
    assert "rows of version 1 may have been deleted or updated since" in blocker.message
    perhaps = (*versions[:2], replace(versions[2], may_look=True))
    (blocker, *_) = (one for _, one in plan(request, {"a": perhaps}, whole).blockers())
    assert "version 2 (partial overwrite) may come of the bad rows, too" in blocker.message


def test_what_may_have_read_a_bad_append_stays_if_somebody_agrees_to_keep_it() -> None:
    seed = BadVersions(table_id="a", versions=(1,))
    request = RollbackRequest(seeds=(seed,), undo=frozenset({"a"}))
    known = facts("a", intact=frozenset({1, 2}))
    tables = {"a": history("create", "append", "append ?")}
    made = plan(request, tables, known)
    assert reasons(made) == [Blocked.NOT_UNDOABLE, Blocked.UNKNOWN]
    assert "agree to `keep_unknown`" in next(made.blockers())[1].message
    kept = plan(agreed(request, Consent.KEEP_UNKNOWN), tables, known)
    assert kept.applicable and (table(kept, "a").step, table(kept, "a").undoable) == (Step.REMOVE_FILES, (1,))
    lost = plan(agreed(request, Consent.LOSE_UNKNOWN), tables, known)
    assert Blocked.NOT_UNDOABLE in reasons(lost)
    merged = plan(agreed(request, Consent.KEEP_UNKNOWN), {"a": history("create", "append", "merge ?")}, known)
    assert "more than whole appends" in next(merged.blockers())[1].message


def test_after_the_undo_of_a_removal_the_files_can_be_removed_again() -> None:
    taken_out = ("create", "append", "append", "remove files <- a@0, a@1..2", "RESTORE 2")
    assert undone(*taken_out, intact=frozenset({1, 2})).undoable == (1,)
    left_rows_behind = undone("create", "append", "append", "RESTORE 1", intact=frozenset({1}))
    assert left_rows_behind.undoable == () and left_rows_behind.step is not Step.REMOVE_FILES


def test_files_are_removed_onto_the_version_that_theirs_was_made_from_whatever_its_number() -> None:
    gaps = tuple(
        replace(one, version=10 * one.version, parent=None if one.parent is None else 10 * one.parent)
        for one in history("create", "ADD COLUMNS", "append", "append")
    )
    request = RollbackRequest(seeds=(BadVersions(table_id="a", versions=(20,)),), undo=frozenset({"a"}))
    made = plan(request, {"a": gaps}, facts("a", intact=frozenset({20, 30})))
    (step,) = steps_of(made, {}, {})
    assert (step.kind, step.to_version, step.versions) == (RollbackStep.REMOVE_FILES, 10, (20,))
    record = removal_record(step, [20, 30], mark="rollback-x-1", user="ana")
    assert [(one.from_version, one.version) for one in record.inputs] == [(None, 10), (20, 30)]


def test_what_is_left_is_told_along_the_line_of_head_whatever_lies_beside_it() -> None:
    step = TableStep(
        table_id="a", name="a", location="x", from_version=9, to_version=1, wave=0, versions=(2, 5, 6)
    )
    record = removal_record(step, [2, 4, 5, 6, 7, 9, 12], mark="rollback-x-1", user="ana")
    assert [(one.from_version, one.version) for one in record.inputs] == [(None, 1), (2, 4), (6, 9)]


def test_lost_appends_that_are_added_again_need_no_consent() -> None:
    seed = BadVersions(table_id="a", versions=(1,))
    a = history("create", "append", "append")
    made = plan(RollbackRequest(seeds=(seed,), reapply=True), {"a": a}, facts("a", fitting=frozenset({2})))
    assert made.applicable and [one.reapplied for one in table(made, "a").collateral] == [True]
    assert table(made, "a").appends == (1, 2)


# what blocks, and which consent lifts it

B = history("create", "append <- a@2")
DERIVED = facts("b", dependencies=(Dependency(upstream="a", on_rollback=OnRollback.BLOCK),))


@pytest.mark.parametrize(
    ("known", "why", "consent"),
    [
        (facts("b", append_only=True), Blocked.APPEND_ONLY, Consent.APPEND_ONLY),
        (
            facts(
                "b",
                unreachable={0: Unreachable(why=VersionObstacle.MISSING_FILES, message="2 files are gone.")},
            ),
            Blocked.UNREACHABLE,
            Consent.SKIP_UNREACHABLE,
        ),
        (facts("b", hold="case 12"), Blocked.HOLD, None),
        (facts("b", paused="migration"), Blocked.PAUSED, None),
        (facts("b", system=True), Blocked.SYSTEM, None),
        (DERIVED, Blocked.OWNER, None),
    ],
    ids=["append-only", "files gone", "hold", "pause", "system table", "owner"],
)
def test_a_table_blocks_until_its_consent_is_given(
    known: TableFacts, why: Blocked, consent: Consent | None
) -> None:
    made = plan(BAD_LOAD, {"a": A, "b": B}, known)
    assert reasons(made) == [why] and not made.applicable
    assert [one.consents for _, one in made.blockers()] == [() if consent is None else (consent,)]
    every = plan(agreed(BAD_LOAD, *(one for one in Consent)), {"a": A, "b": B}, known)
    assert every.applicable == (consent is not None)


def test_the_owner_of_a_blocking_table_agrees_by_its_name() -> None:
    made = plan(replace(BAD_LOAD, agreed=frozenset({"b"})), {"a": A, "b": B}, DERIVED)
    assert made.applicable and table(made, "b").acts


def test_a_table_without_a_clean_version_is_dropped_or_quarantined_by_consent_alone() -> None:
    tables = {"a": A, "b": history("create <- a@2")}
    assert reasons(plan(BAD_LOAD, tables)) == [Blocked.BORN_TAINTED]
    for consent, step in (
        (Consent.DROP_BORN_TAINTED, Step.DROP),
        (Consent.QUARANTINE_BORN_TAINTED, Step.QUARANTINE),
    ):
        one = table(plan(agreed(BAD_LOAD, consent), tables), "b")
        assert (one.step, one.to_version, one.blocked_by) == (step, None, ())


def test_going_back_behind_removed_files_never_brings_them_back() -> None:
    mended = history("create", "append", "append", "append", "append", "remove files <- a@1, a@2..4")
    request = RollbackRequest(seeds=(BadVersions(table_id="a", versions=(3,)),))
    one = table(plan(request, {"a": mended}), "a")
    assert (one.from_version, one.to_version, one.tainted) == (5, 1, (3, 5))
    assert [lost.version for lost in one.collateral] == [4], "what the removal had kept of the others"
    onto = (*mended, replace(mended[4], version=6, parent=5))
    bad = RollbackRequest(seeds=(BadVersions(table_id="a", versions=(6,)),))
    assert table(plan(bad, {"a": onto}), "a").to_version == 5


def test_a_streams_batch_is_not_added_again_because_the_stream_will() -> None:
    seed = BadVersions(table_id="a", versions=(1,))
    batch = replace(A[2], transactions=(("query-1", 7),))
    request = RollbackRequest(seeds=(seed,), reapply=True)
    made = plan(request, {"a": (*A[:2], batch)}, facts("a", fitting=frozenset({2})))
    assert reasons(made) == [Blocked.COLLATERAL]
    assert [one.can_reapply for one in table(made, "a").collateral] == [False]


def test_a_table_that_was_quarantined_by_a_rollback_is_not_set_aside_again() -> None:
    tables = {"a": A, "b": history("create <- a@2"), "c": history("create", "append <- b@0")}
    made = plan(BAD_LOAD, tables, facts("b", aside=True))
    assert made.applicable and table(made, "b").step is Step.NONE
    assert table(made, "c").to_version == 0, "what was derived from it is tainted all the same"


def test_files_are_not_taken_out_of_an_append_only_table() -> None:
    seed = BadVersions(table_id="a", versions=(1,))
    request = RollbackRequest(
        seeds=(seed,), undo=frozenset({"a"}), consents=Consents.to(Consent.APPEND_ONLY, Consent.COLLATERAL)
    )
    made = plan(request, {"a": A}, facts("a", intact=frozenset({1, 2}), append_only=True))
    assert reasons(made) == [Blocked.NOT_UNDOABLE] and "append-only" in next(made.blockers())[1].message


def test_a_table_that_cannot_be_restored_is_left_as_it_is_by_consent() -> None:
    gone = facts(
        "b", unreachable={0: Unreachable(why=VersionObstacle.EXPIRED, message="Gone.")}, append_only=True
    )
    made = plan(agreed(BAD_LOAD, Consent.SKIP_UNREACHABLE), {"a": A, "b": B}, gone)
    one = table(made, "b")
    assert made.applicable and (one.step, one.to_version, one.tainted) == (Step.NONE, 1, (1,))


def test_a_table_that_spark_alone_could_change_and_stays_out_of_keeps_a_rollback_from_beginning() -> None:
    because = "Only Spark commits to db.b for us, and it stays out: commits of several writers get lost."
    made = plan(BAD_LOAD, {"a": A, "b": B}, facts("b", stays_out=because))
    assert [(one.table_id, blocker.why, blocker.message) for one, blocker in made.blockers()] == [
        ("b", Blocked.UNREACHABLE, because)
    ]
    left = plan(agreed(BAD_LOAD, Consent.SKIP_UNREACHABLE), {"a": A, "b": B}, facts("b", stays_out=because))
    assert left.applicable and table(left, "b").step is Step.NONE


def test_no_files_are_removed_where_spark_alone_could_do_it_and_stays_out() -> None:
    seed = BadVersions(table_id="a", versions=(1,))
    request = RollbackRequest(seeds=(seed,), undo=frozenset({"a"}))
    tables, kept = {"a": history("create", "append", "append")}, facts("a", intact=frozenset({1, 2}))
    kept_out = replace(kept, stays_out="so it is")
    assert table(plan(request, tables, kept), "a").step is Step.REMOVE_FILES
    assert reasons(plan(request, tables, kept_out)) == [Blocked.UNREACHABLE]
    left = plan(agreed(request, Consent.SKIP_UNREACHABLE), tables, kept_out)
    assert left.applicable and table(left, "a").step is Step.NONE


def test_a_version_whose_log_entry_is_gone_is_unreachable() -> None:
    made = plan(BAD_LOAD, {"a": A, "b": B[1:]})
    assert table(made, "b").to_version is None and Blocked.UNREACHABLE in reasons(made)
    assert Blocked.BORN_TAINTED not in reasons(made), "what was there before is gone, not tainted"
    read = plan(BAD_LOAD, {"a": A, "b": B[1:], "c": history("create <- b@0", "append")})
    assert table(read, "b").to_version == 0 and Blocked.UNREACHABLE in reasons(read)


def test_a_dropped_table_is_told_and_holds_up_nobody() -> None:
    made = plan(BAD_LOAD, {"a": A, "b": B}, facts("b", gone=True, hold="case 12"))
    assert made.applicable and table(made, "b").step is Step.NONE


# triggers


@pytest.mark.parametrize(
    ("says", "cascade", "acts", "waits", "applicable"),
    [
        (OnRollback.CASCADE, False, True, False, True),
        (OnRollback.PLAN, False, False, True, True),
        (OnRollback.PLAN, True, True, False, True),
        (OnRollback.BLOCK, True, True, False, False),
        (None, False, False, True, True),
    ],
    ids=["cascade", "plan", "plan, and the cascade was asked for", "block", "nothing was declared"],
)
def test_a_dependency_says_what_happens(
    says: OnRollback | None, cascade: bool, acts: bool, waits: bool, applicable: bool
) -> None:
    declared = () if says is None else (Dependency(upstream="a", on_rollback=says),)
    made = plan(replace(BAD_LOAD, cascade=cascade), {"a": A, "b": B}, facts("b", dependencies=declared))
    one = table(made, "b")
    assert (one.acts, one.waits, made.applicable) == (acts, waits, applicable)


def test_the_strongest_of_several_dependencies_counts() -> None:
    declared = (
        Dependency(upstream="a", on_rollback=OnRollback.CASCADE),
        Dependency(upstream="other", on_rollback=OnRollback.BLOCK),
        Dependency(upstream="m", on_rollback=OnRollback.BLOCK),
    )
    tables = {"a": A, "m": history("create", "append <- a@2"), "b": history("create", "append <- a@2, m@0")}
    assert table(plan(BAD_LOAD, tables, facts("b", dependencies=declared)), "b").acts
    tables["b"] = history("create", "append <- a@2, m@1")
    assert Blocked.OWNER in reasons(plan(BAD_LOAD, tables, facts("b", dependencies=declared)))


# what nobody knows

FOREIGN = history("create", "append <- a@1", "append ?")


def test_a_foreign_write_on_a_touched_table_is_unknown_and_blocks() -> None:
    tables = {"a": A, "b": (*FOREIGN, replace(B[1], version=3, parent=2))}
    made = plan(BAD_LOAD, tables)
    one = table(made, "b")
    assert (one.to_version, one.tainted, one.unknown) == (2, (3,), (2,))
    assert reasons(made) == [Blocked.UNKNOWN]
    assert table(plan(agreed(BAD_LOAD, Consent.KEEP_UNKNOWN), tables), "b").to_version == 2
    lost = plan(agreed(BAD_LOAD, Consent.LOSE_UNKNOWN), tables)
    assert lost.applicable and table(lost, "b").to_version == 1


def test_foreign_writes_elsewhere_are_nobodys_business_until_a_dependency_is_declared() -> None:
    tables = {"a": A, "b": history("create", "append ?")}
    assert [one.table_id for one in plan(BAD_LOAD, tables).tables] == ["a"]
    made = plan(BAD_LOAD, tables, facts("b", dependencies=(Dependency(upstream="a"),)))
    assert table(made, "b").unknown == (1,) and not made.applicable


def test_what_was_there_before_the_bad_load_cannot_have_read_it() -> None:
    declared = (Dependency(upstream="a"),)
    tables = {"b": history("create ?", "append ?"), "a": history("create <- b@1", "append", "append <- b@1")}
    made = plan(BAD_LOAD, tables, facts("b", dependencies=declared))
    assert [one.table_id for one in made.tables] == ["a"], "a@2 read b@1, so b@1 was there before a@2"
    tables["a"] = A
    assert not plan(BAD_LOAD, tables, facts("b", dependencies=declared)).applicable


def test_an_unknown_write_that_was_overwritten_since_does_not_matter() -> None:
    b = history("create", "append <- a@2", "append ?", "overwrite <- a@1")
    assert plan(BAD_LOAD, {"a": A, "b": b}).applicable


def test_a_restore_whose_target_the_log_does_not_tell_is_unknown() -> None:
    made = plan(BAD_LOAD, {"a": A, "b": history("create", "append <- a@2", "RESTORE")})
    assert table(made, "b").unknown == (2,)


def test_a_table_that_cannot_be_read_is_decided_on_by_what_is_on_record() -> None:
    tables = {"a": A, "b": history("create", "append <- a@2"), "c": history("create", "append <- a@1")}
    broken = [facts(one, unreadable="Line 1 is odd.") for one in ("b", "c")]
    made = plan(BAD_LOAD, tables, *broken)
    assert [one.table_id for one in made.tables] == ["a", "b"], "c is clean, and all of it is known"
    ((where, blocker),) = made.blockers()
    assert (where.table_id, blocker.why) == ("b", Blocked.UNREADABLE)
    assert blocker.message == "db.b cannot be restored, because its log cannot be read: Line 1 is odd."
    left = plan(agreed(BAD_LOAD, Consent.SKIP_UNREACHABLE), tables, *broken)
    assert left.applicable and table(left, "b").step is Step.NONE


def test_commits_that_nobody_can_read_may_have_read_what_their_table_has_read_before() -> None:
    hidden = Version(version=4, parent=UNKNOWN_PARENT, operation="unknown", effect=Effect.CHANGE)
    b = facts("b", unreadable="Line 1 is odd.", may_read=frozenset({"a"}))
    tables = {"a": A, "b": (hidden,), "other": (hidden,)}
    made = plan(BAD_LOAD, tables, b, facts("other", unreadable="Line 1 is odd."))
    assert reasons(made) == [Blocked.UNREADABLE] and table(made, "b").unknown == (4,)
    assert plan(agreed(BAD_LOAD, Consent.KEEP_UNKNOWN), tables, b).applicable


# what else the owner has to know, and the hash


def test_properties_and_consumers_are_told() -> None:
    change = PropertyChange(key="delta.logRetentionDuration", head="interval 90 days", target=None)
    known = facts("a", properties=(change,), consumers=("Tableau",))
    a = (*A[:2], replace(A[2], transactions=(("loader", 41),)))
    one = table(plan(BAD_LOAD, {"a": a}, known), "a")
    assert (one.transactions, one.properties) == ((("loader", 41),), (change,))
    assert one.consumers == ("Tableau",)


def test_the_hash_is_that_of_what_is_decided_and_not_of_names() -> None:
    tables = {"a": A, "b": B}
    one = plan(BAD_LOAD, tables)
    assert one.hash == plan(BAD_LOAD, tables, facts("b", name="db.renamed")).hash
    longer = {"a": A, "b": (*B, replace(B[1], version=2, parent=1, inputs=()))}
    others = [
        plan(replace(BAD_LOAD, cascade=False), tables),
        plan(agreed(BAD_LOAD, Consent.COLLATERAL), longer),
        plan(BAD_LOAD, longer),
        plan(BAD_LOAD, tables, facts("b", hold="case 12")),
        plan(BAD_LOAD, tables, facts("b", location="file:///elsewhere")),
    ]
    assert len({one.hash, *(other.hash for other in others)}) == 1 + len(others)


def test_tables_that_read_one_another_still_get_an_order() -> None:
    tables = {
        "a": A,
        "b": history("create", "append <- a@2", "append <- c@1"),
        "c": history("create", "append <- b@1"),
        "d": history("create", "append <- c@1"),
    }
    waves = [[one.table_id for one in wave] for wave in plan(BAD_LOAD, tables).waves()]
    assert waves == [["a"], ["b"], ["c"], ["d"]]
