"""What a consent is asked for: commits that somebody could miss, each by its own name, and nothing else."""

from dataclasses import replace

import pytest

from lakewarden.catalog.lineage.versions import Touch, version_of
from lakewarden.jobs.rollback.plan.consents import Agreement, Consent, Consents
from lakewarden.jobs.rollback.plan.facts import Unreachable, VersionObstacle
from lakewarden.jobs.rollback.plan.model import Blocked, RollbackPlan, Step, TablePlan
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest, ToVersion
from lakewarden.jobs.rollback.report.render import as_json, as_mermaid, as_tree
from support.builders.commits import counted
from support.builders.tables_by_hand import facts, history, plan
from support.histories.fleet_logs import NOW

A_LOAD = RollbackRequest(seeds=(ToVersion(table_id="a", version=1),), cascade=True)
A = history("create", "append", "append")


def bad(*versions: int) -> RollbackRequest:
    """Exactly these versions of table `a`."""
    return RollbackRequest(seeds=(BadVersions(table_id="a", versions=versions),), cascade=True)


def agreeing(request: RollbackRequest, *kinds: Consent) -> RollbackRequest:
    return replace(request, consents=Consents.to(*kinds))


def table(made: RollbackPlan, table_id: str) -> TablePlan:
    return next(one for one in made.tables if one.table_id == table_id)


def lost(made: RollbackPlan, table_id: str = "a") -> list[int]:
    return [one.version for one in table(made, table_id).collateral]


def messages(made: RollbackPlan) -> list[str]:
    return [blocker.message for _, blocker in made.blockers()]


# commits of unknown origin

UNKNOWN = {"a": A, "b": history("create", "append <- a@2", "append ?")}


def test_unknown_commits_that_are_kept_and_get_lost_all_the_same_are_asked_for() -> None:
    made = plan(agreeing(A_LOAD, Consent.KEEP_UNKNOWN), UNKNOWN)
    assert [(one.version, one.unknown) for one in table(made, "b").collateral] == [(2, True)]
    assert messages(made) == ["1 commit of unknown origin of db.b (10 rows) would be lost."]
    both = plan(agreeing(A_LOAD, Consent.KEEP_UNKNOWN, Consent.COLLATERAL), UNKNOWN)
    assert both.applicable and "collateral 2 append 10 rows of unknown origin" in as_tree(both, owners={})


def test_unknown_commits_that_are_kept_and_lost_come_again_where_they_are_pure_appends() -> None:
    request = replace(agreeing(A_LOAD, Consent.KEEP_UNKNOWN), reapply=True)
    made = plan(request, UNKNOWN, facts("b", fitting=frozenset({2})))
    assert made.applicable and [one.reapplied for one in table(made, "b").collateral] == [True]


def test_what_was_agreed_to_as_lost_though_unknown_is_not_asked_for_again_nor_called_clean() -> None:
    tables = {"a": A, "b": history("create", "append ?", "overwrite ?", "append <- a@2", "append ?")}
    made = plan(agreeing(A_LOAD, Consent.LOSE_UNKNOWN), tables)
    one = table(made, "b")
    assert made.applicable and (one.to_version, one.collateral, one.unknown) == (0, (), (2, 4))


def test_an_unknown_commit_that_nobody_has_decided_on_is_asked_about_as_unknown_only() -> None:
    made = plan(A_LOAD, UNKNOWN)
    assert [one.why for _, one in made.blockers()] == [Blocked.UNKNOWN] and lost(made, "b") == []


def test_what_was_made_from_kept_commits_alone_is_not_asked_about_anew() -> None:
    kept = Consents(named=frozenset({Agreement(consent=Consent.KEEP_UNKNOWN, table_id="b", version=2)}))
    request = replace(A_LOAD, consents=kept)
    tables = {**UNKNOWN, "c": history("create", "append <- b@1..2", "append <- a@2")}
    c = table(plan(request, tables), "c")
    assert (c.to_version, c.unknown, [one.why for one in c.blocked_by]) == (1, (1,), [])
    lost_too = table(
        plan(request, {**UNKNOWN, "c": history("create", "append <- a@2", "append <- b@1..2")}), "c"
    )
    assert [(one.version, one.unknown) for one in lost_too.collateral] == [(2, True)]
    both = history("create", "append <- b@1..2", "append ?")
    doubted = table(plan(request, {**UNKNOWN, "c": both}), "c")
    assert [one.why for one in doubted.blocked_by] == [Blocked.UNKNOWN], "who wrote version 2 nobody said"


# what is nobody's loss


def test_what_an_overwrite_had_removed_from_head_before_is_not_lost_by_the_rewind() -> None:
    tables = {"a": history("create", "append", "append", "append", "overwrite <- self", "append")}
    assert lost(plan(bad(1), tables)) == [2, 3, 5], "an overwrite that read itself has kept them"
    b = history("create", "append <- a@1", "append", "overwrite <- a@1", "append")
    assert lost(plan(bad(1), {"a": A, "b": b}), "b") == [4], "version 2 was not in head any more"


@pytest.mark.parametrize("what", ["SET TBLPROPERTIES", "OPTIMIZE", "RESTORE 3"])
def test_what_changes_no_row_of_its_own_asks_for_nothing(what: str) -> None:
    made = plan(bad(1), {"a": history("create", "append", "delete", "append <- a@1", what)})
    assert lost(made) == [2] and [one.why for _, one in made.blockers()] == [Blocked.COLLATERAL]
    assert plan(bad(1, 2), {"a": history("create", "append", "append", what)}).applicable


def test_a_restore_in_the_range_that_was_asked_to_be_undone_needs_no_consent() -> None:
    made = plan(A_LOAD, {"a": history("create", "append", "append", "RESTORE 0", "append", "ADD COLUMNS")})
    assert made.applicable and (table(made, "a").to_version, lost(made)) == (1, [])


def test_what_a_restore_had_brought_back_is_lost_with_a_named_version_that_had_overwritten_it() -> None:
    tables = {"a": history("create", "append", "overwrite", "append", "RESTORE 1")}
    made = plan(RollbackRequest(seeds=(ToVersion(table_id="a", version=3),)), tables)
    assert (table(made, "a").to_version, lost(made), made.applicable) == (3, [0, 1], False)
    kept = plan(RollbackRequest(seeds=(ToVersion(table_id="a", version=1),)), tables)
    assert kept.applicable and lost(kept) == []


def test_a_write_that_touched_no_file_leaves_nothing_to_lose() -> None:
    idle = replace(history("create", "append", "append")[2], idle=True, blind=False, rows=0, files=0)
    assert plan(bad(1), {"a": (*A[:2], idle)}).applicable


def test_a_change_of_columns_that_somebody_made_is_lost_as_what_it_is() -> None:
    made = plan(bad(1), {"a": history("create", "append", "ADD COLUMNS", "append")})
    assert [(one.version, one.touch) for one in table(made, "a").collateral] == [
        (2, Touch.SCHEMA),
        (3, Touch.CONTENT),
    ]
    assert messages(made) == ["1 clean commit and 1 schema change of db.a (10 rows) would be lost."]
    alone = plan(bad(1), {"a": history("create", "append", "RENAME COLUMN")})
    assert messages(alone) == ["1 schema change of db.a would be lost."]


def test_a_change_of_columns_outlives_an_overwrite_but_no_create_or_replace() -> None:
    made = plan(bad(1), {"a": A, "b": history("create", "append <- a@1", "ADD COLUMNS", "overwrite <- a@1")})
    assert (table(made, "b").to_version, lost(made, "b")) == (0, [2])
    anew = plan(bad(1), {"a": A, "b": history("create", "append <- a@1", "ADD COLUMNS", "replace <- a@1")})
    assert (table(anew, "b").to_version, lost(anew, "b")) == (0, [])


@pytest.mark.parametrize(
    ("operation", "properties", "touch"),
    [
        ("SET TBLPROPERTIES", '{"delta.logRetentionDuration":"interval 9 days"}', Touch.MAINTENANCE),
        ("UNSET TBLPROPERTIES", '["lakewarden.vacuum.retention"]', Touch.MAINTENANCE),
        ("SET TBLPROPERTIES", '{"lakewarden.owner":"ana","team":"sales"}', Touch.PROPERTIES),
        ("SET TBLPROPERTIES", '{"team":"sales"}', Touch.PROPERTIES),
        ("SET TBLPROPERTIES", "not said", Touch.PROPERTIES),
    ],
    ids=["retention", "a request to us", "one of ours, one not", "not ours", "nobody knows"],
)
def test_properties_that_outlive_every_rollback_are_nothing_to_undo(
    operation: str, properties: str, touch: Touch
) -> None:
    parameters = {"properties": properties}
    one = counted(version=2, committed_at=NOW, operation=operation, parameters=parameters, format_id="u1")
    made = version_of(one)
    assert made.touch is touch
    asked = table(plan(A_LOAD, {"a": (*A[:2], made)}), "a")
    assert asked.step is (Step.NONE if touch is Touch.MAINTENANCE else Step.RESTORE)


# a table that is left as it is


def test_a_table_that_is_left_tainted_is_not_called_clean() -> None:
    unreachable = {0: Unreachable(why=VersionObstacle.EXPIRED, message="Gone.")}
    tables = {
        "a": A,
        "b": history("create", "append <- a@2"),
        "c": history("create", "append <- a@2", "overwrite"),
    }
    known = facts("b", unreachable=unreachable)
    made = plan(agreeing(A_LOAD, Consent.SKIP_UNREACHABLE), tables, known)
    text = as_tree(made, owners={})
    assert "db.b  1 stays  (tainted 1; its head is tainted and stays so)" in text
    assert "db.c  2 stays  (tainted 1; its head is clean)" in text
    assert as_mermaid(made).count(":::clean") == 1
    said = {one["name"]: one["stays_tainted"] for one in as_json(made)["tables"]}
    assert said == {"db.a": False, "db.b": True, "db.c": False}


@pytest.mark.parametrize("consent", [Consent.DROP_BORN_TAINTED, Consent.QUARANTINE_BORN_TAINTED])
def test_a_table_that_is_set_aside_loses_nothing(consent: Consent) -> None:
    born = history("create <- a@2", "append", "append")
    made = plan(agreeing(A_LOAD, consent), {"a": A, "b": born})
    assert made.applicable and lost(made, "b") == []


def test_a_dropped_table_is_not_called_clean_either() -> None:
    made = plan(A_LOAD, {"a": A, "b": history("create", "append <- a@2")}, facts("b", gone=True))
    assert "its head is tainted and stays so" in as_tree(made, owners={})
