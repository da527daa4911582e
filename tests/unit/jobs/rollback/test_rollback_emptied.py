"""Tables whose versions begin after 0, which is no commit's: they were empty then, and are again once they were made
anew without rows."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakewarden.catalog.lineage.edges import rows_of
from lakewarden.catalog.lineage.graph.build import build_graph
from lakewarden.catalog.lineage.versions import Version
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step
from lakewarden.jobs.rollback.plan.request import RollbackRequest, ToVersion
from lakewarden.jobs.rollback.plan.rollback_planner import plan_rollback
from support.builders.tables_by_hand import facts, history

A = history("create", "append", "append")
BAD_LOAD = RollbackRequest(seeds=(ToVersion(table_id="a", version=1),), cascade=True)
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def numbered_from_1(*lines: str) -> tuple[Version, ...]:
    _, first, *others = history("create", *lines)
    return (replace(first, parent=None), *others)


B = numbered_from_1("append <- a@1", "append <- a@2")


def planned(
    tables: Mapping[str, tuple[Version, ...]], *, head: int, recorded: tuple[Version, ...] = ()
) -> RollbackPlan:
    rows = codec(LINEAGE).encode([row for one in recorded for row in rows_of("b", one, at=NOW)])
    graph = build_graph(
        rows, tables, heads={"b": head}, empty=frozenset(() if head else {"b"}), newest={"b": "u1"}
    )
    return plan_rollback(BAD_LOAD, graph, tables, {key: facts(key) for key in tables})


@pytest.mark.parametrize("log", [B, ()], ids=["its versions are there", "they have expired"])
def test_what_was_emptied_since_holds_nothing_bad_and_stays(log: tuple[Version, ...]) -> None:
    filled = planned({"a": A, "b": B}, head=2)
    assert {one.table_id: one.step for one in filled.tables} == {"a": Step.RESTORE, "b": Step.RESTORE}
    emptied = planned({"a": A, "b": log}, head=0, recorded=B)
    assert emptied.applicable
    assert [one.table_id for one in emptied.tables if one.step is not Step.NONE] == ["a"]


def test_what_read_it_while_it_was_empty_read_nothing_doubtful() -> None:
    c = history("create <- b@0", "append <- a@1")
    made = planned({"a": A, "b": B, "c": c}, head=2)
    assert made.applicable, list(made.blockers())
    assert [one.table_id for one in made.tables if one.step is not Step.NONE] == ["a", "b"]


def test_a_version_0_of_which_the_log_may_have_lost_the_commit_is_not_taken_for_empty() -> None:
    c = history("create <- b@0", "append <- a@1")
    later = tuple(replace(one, parent=one.version - 1) for one in B)
    made = planned({"a": A, "b": later, "c": c}, head=2)
    assert not made.applicable
