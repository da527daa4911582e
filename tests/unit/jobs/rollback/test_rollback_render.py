"""The plan in words and pictures; those in docs/rollback.md are made here."""

import json
from dataclasses import replace
from pathlib import Path

from lakewarden.catalog.model.rows import Dependency, OnRollback
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest, ToVersion
from lakewarden.jobs.rollback.report.details import Details
from lakewarden.jobs.rollback.report.next_steps import next_steps
from lakewarden.jobs.rollback.report.render import as_json, as_mermaid
from lakewarden.jobs.rollback.report.text import as_text
from support.builders.callers import actor
from support.builders.tables_by_hand import facts, history, plan

ADMIN = actor("root", admin=True)
PAGE = Path(__file__).parents[4] / "docs" / "rollback.md"
FLEET = {
    "flights": history("create", "append", "OPTIMIZE", "append"),
    "daily": history("create <- flights@1", "append <- flights@3", "append <- airports@0"),
    "monthly": history("create <- daily@0", "merge <- daily@1"),
    "carriers": history("create <- flights@0", "append <- flights@3", "overwrite <- flights@2"),
    "airports": history("create"),
}
REQUEST = RollbackRequest(seeds=(ToVersion(table_id="flights", version=2),), cascade=True)


def worked_example(*consents: Consent) -> RollbackPlan:
    return plan(replace(REQUEST, consents=Consents.to(*consents)), FLEET)


def text_of(made: RollbackPlan) -> str:
    """What an admin reads, where nothing is known of owners and commits."""
    return as_text(made, Details(), next_steps(made), ADMIN)


def test_the_page_shows_the_text_of_the_worked_example() -> None:
    assert f"```\n{text_of(worked_example())}\n```" in PAGE.read_text(encoding="utf-8")


def test_the_page_shows_the_picture_of_the_worked_example() -> None:
    picture = as_mermaid(worked_example(Consent.COLLATERAL))
    assert f"```mermaid\n{picture}\n```" in PAGE.read_text(encoding="utf-8")


def test_the_page_names_every_consent() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [one.value for one in Consent if f"`{one.value}`" not in text] == []


def test_the_keys_that_others_rely_on_are_there() -> None:
    made = worked_example()
    value = json.loads(json.dumps(as_json(made)))
    assert value["hash"] == made.hash and value["applicable"] is False
    daily = next(one for one in value["tables"] if one["name"] == "db.daily")
    assert {key: daily[key] for key in ("table_id", "name", "from", "to", "tainted", "unknown")} == {
        "table_id": "daily",
        "name": "db.daily",
        "from": 2,
        "to": 0,
        "tainted": [1],
        "unknown": [],
    }
    assert [(one["version"], one["rows"], one["files"]) for one in daily["collateral"]] == [(2, 10, 1)]
    assert [(one["why"], one["consents"]) for one in daily["blocked_by"]] == [("collateral", ["collateral"])]
    assert value["why_not"] == ["1 clean commit of db.daily (10 rows) would be lost."]


def test_a_plan_that_can_be_applied_says_so() -> None:
    made = worked_example(Consent.COLLATERAL)
    text = text_of(made)
    assert text.splitlines()[0] == f"Plan {made.hash}: it can be applied."
    assert text.splitlines()[-1] == f"  lakewarden rollback apply {made.hash}"
    assert as_json(worked_example(Consent.COLLATERAL))["why_not"] == []


def test_every_way_a_table_can_go_has_its_words() -> None:
    tables = {
        "a": history("create", "append", "append"),
        "born": history("create <- a@1"),
        "asked": history("create", "append <- a@1"),
        "waits": history("create", "append <- a@1", "append ?"),
        "two": history("create", "append <- a@1, asked@1"),
    }
    request = RollbackRequest(
        seeds=(BadVersions(table_id="a", versions=(1,)),),
        undo=frozenset({"a"}),
        consents=Consents.to(Consent.QUARANTINE_BORN_TAINTED),
    )
    cascade = (Dependency(upstream="a", on_rollback=OnRollback.CASCADE),)
    block = (Dependency(upstream="a", on_rollback=OnRollback.BLOCK),)
    made = plan(
        request,
        tables,
        facts("a", intact=frozenset({1, 2})),
        facts("born", dependencies=cascade),
        facts("asked", dependencies=block),
        facts("two", dependencies=cascade),
    )
    text = " ".join(text_of(made).split())
    for words in (
        "db.a 2 without the files of 1 (tainted 1)",
        "db.born 0 -> quarantine (tainted 0)",
        (
            "! db.asked is derived, and its owner wants to be asked before it is rolled back. "
            "(--agreed db.asked)"
        ),
        "also read db.a",
        "unknown 2; waits for its owner",
        "it cannot be applied yet, for 1 reason (the lines with ! below).",
    ):
        assert words in text, text
    assert text.count("db.two 1 -> 0") == 1
    picture = as_mermaid(made)
    assert {look: picture.count(f":::{look}") for look in ("rewound", "blocked", "waits", "clean")} == {
        "rewound": 3,
        "blocked": 2,
        "waits": 0,
        "clean": 0,
    }


def test_a_born_tainted_table_has_no_way_yet() -> None:
    made = plan(REQUEST, {"flights": FLEET["flights"], "born": history("create <- flights@3")})
    assert "db.born  0 -> ?  (tainted 0)" in text_of(made)
    assert [one["to"] for one in as_json(made)["tables"] if one["name"] == "db.born"] == [None]
