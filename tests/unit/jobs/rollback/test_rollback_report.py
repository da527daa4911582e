"""What a person reads of a plan at night: summary first, whose tables, which commits and why, the command to paste."""

import shlex
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakewarden.catalog.model.rows import Confidence, Dependency, OnRollback
from lakewarden.catalog.policy.access import Caller
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.plan.request import BadVersions, CommitsOf, RollbackRequest, ToVersion
from lakewarden.jobs.rollback.report.details import (
    CommitDetail,
    CommitReason,
    Details,
    TableDetails,
    TaintedRead,
)
from lakewarden.jobs.rollback.report.next_steps import next_steps
from lakewarden.jobs.rollback.report.render import WIDTH
from lakewarden.jobs.rollback.report.text import as_text, with_details
from support.builders.callers import actor
from support.builders.tables_by_hand import facts, history, plan

ANA = actor("ana")
ADMIN = actor("root", admin=True)
AT = datetime(2026, 11, 21, 3, 12, 7, tzinfo=UTC)
FLEET = {
    "flights": history("create", "append"),
    "daily": history("create", "append <- flights@1", "append"),
}
CASCADE = RollbackRequest(seeds=(ToVersion(table_id="flights", version=0),), cascade=True)
READ = TaintedRead(
    table_id="flights", name="db.flights", versions=(1,), changes=False, confidence=Confidence.COMMITTED
)
BAD = CommitDetail(
    version=1,
    role=CommitReason.TAINTED,
    operation="append",
    rows=1200,
    user="ana",
    engine="Spark/4.1",
    at=AT,
    run_id="r1",
    reads=(READ,),
)
GOOD = CommitDetail(version=2, role=CommitReason.LOST, operation="append", rows=10)


def details(*commits: CommitDetail, owner: str = "bo", more: int = 0) -> Details:
    daily = TableDetails(table_id="daily", owner=owner, commits=commits, more=more)
    return Details(tables=(TableDetails(table_id="flights", owner="ana"), daily))


def text(made: RollbackPlan, known: Details, caller: Caller = ADMIN, width: int = WIDTH) -> str:
    return as_text(made, known, next_steps(made), caller, width=width)


def test_a_commit_is_told_with_its_writer_its_time_its_run_and_the_edge_that_taints_it() -> None:
    lines = text(plan(CASCADE, FLEET), details(BAD, GOOD)).splitlines()
    begin = lines.index("Commits of db.daily")
    assert lines[begin : begin + 6] == [
        "Commits of db.daily",
        "  version  why      committed (UTC)      by                  operation  rows",
        "  1        tainted  2026-11-21 03:12:07  ana with Spark/4.1  append     1,200",
        "           read version 1 of db.flights (committed)",
        "           run r1",
        "  2        lost     ?                    ?                   append     10",
    ]


def test_the_summary_comes_first_and_says_what_is_lost_and_who_has_to_agree() -> None:
    lines = text(plan(CASCADE, FLEET), details(BAD, GOOD), ANA).splitlines()
    assert lines[1:4] == [
        "  goes back     2 tables in 2 waves, 2 bad versions: db.flights, db.daily",
        "  is lost       1 clean commit, 10 rows: db.daily",
        "  must agree    db.daily (owner bo): not yours, so an admin has to apply this",
    ]
    assert "must agree" not in text(plan(CASCADE, FLEET), details(BAD, GOOD), ADMIN)
    assert "must agree" not in text(plan(CASCADE, FLEET), details(BAD, GOOD, owner="ana"), ANA)


def test_tables_that_wait_for_their_owner_are_named_with_the_owner() -> None:
    waiting = text(plan(replace(CASCADE, cascade=False), FLEET), details(BAD))
    assert "waits         db.daily (owner bo): not changed until the owner says so, or --cascade" in waiting


def test_an_unknown_commit_says_that_nobody_knows_what_it_read() -> None:
    unknown = CommitDetail(version=2, role=CommitReason.UNKNOWN, operation="append", rows=None, seed=False)
    made = plan(
        CASCADE,
        {
            "flights": history("create", "append"),
            "daily": history("create", "append <- flights@1", "append ?"),
        },
    )
    told = text(made, details(BAD, unknown))
    assert "nobody knows  1 commit that may be bad: db.daily" in told
    assert "           nobody recorded what it read" in told.splitlines()
    hinted = replace(unknown, reads=(replace(READ, confidence=Confidence.HINT, changes=True),))
    assert "may have read what changed in version 1 of db.flights (hint)" in text(made, details(hinted))


def test_what_others_wrote_into_commits_cannot_act_on_the_terminal() -> None:
    evil = replace(BAD, user="ana\x1b[2J\nroot", engine="x" * 500, operation="a\rb", run_id="r\x07")
    told = text(plan(CASCADE, FLEET), details(evil))
    assert "\x1b" not in told and "\r" not in told and "\x07" not in told
    assert max(map(len, told.splitlines())) <= WIDTH


def test_a_long_plan_stays_readable_and_says_what_it_leaves_out() -> None:
    fleet = {"flights": history(*["create"], *["append"] * 60)}
    for number in range(30):
        reads = [f"append <- flights@{2 * version + 1}" for version in range(25)]
        fleet[f"derived_{number:02}"] = history("create", *reads, *["append"] * 25)
    made = plan(CASCADE, fleet)
    commits = tuple(replace(BAD, version=version) for version in range(1, 26))
    lost = tuple(replace(GOOD, version=version) for version in range(26, 51))
    known = Details(
        tables=tuple(
            TableDetails(table_id=one.table_id, owner="bo", commits=(*commits, *lost), more=7)
            for one in made.tables
        )
    )
    lines = text(made, known).splitlines()
    shown = [line for line in lines if not line.startswith("  lakewarden ")]
    assert max(map(len, shown)) <= WIDTH
    assert lines[1].startswith("  goes back     31 tables in 2 waves") and "and 26 more" in " ".join(
        lines[:4]
    )
    assert lines.count("  and 45 more commits (-o json lists most of them)") == 31
    assert "collateral 25 commits, 250 rows" in " ".join(" ".join(lines).split())
    first = lines.index("Commits of db.derived_00")
    assert lines[first + 2].split()[:2] == ["26", "lost"]


def test_the_next_command_applies_what_can_be_applied() -> None:
    made = plan(replace(CASCADE, consents=Consents.to(Consent.COLLATERAL)), FLEET)
    (step,) = next_steps(made, options=["--home=/my lake"])
    assert shlex.split(step.command) == ["lakewarden", "rollback", "apply", made.hash, "--home", "/my lake"]
    assert next_steps(plan(CASCADE, {"flights": history("create")})) == ()


def test_the_next_command_of_a_blocked_plan_gives_every_consent_that_it_asks_for() -> None:
    fleet = {
        **FLEET,
        "born": history("create <- flights@1"),
        "odd": history("create", "append <- flights@1", "merge ?"),
    }
    made = plan(CASCADE, fleet, facts("daily", append_only=True))
    steps = next_steps(made)
    assert steps[0].what.startswith("plan again: ")
    words = shlex.split(steps[0].command)
    assert words[:6] == ["lakewarden", "rollback", "plan", "db.flights", "--to-version", "0"]
    given = {words[place + 1].partition("=")[0] for place, word in enumerate(words) if word == "--consent"}
    assert given == {"collateral", "append_only", "keep_unknown", "quarantine_born_tainted"}
    assert len({one.command for one in steps}) == len(steps) == 4


def test_the_next_command_keeps_what_was_asked_for_before() -> None:
    request = RollbackRequest(
        seeds=(BadVersions(table_id="odd name", versions=(1, 2)),),
        cascade=True,
        agreed=frozenset({"odd name"}),
        undo=frozenset({"odd name"}),
    )
    odd = facts("odd name", append_only=True, name="db.it's odd")
    made = plan(request, {"odd name": history("create", "append", "append")}, odd)
    assert next_steps(made) == ()  # no consent makes an append-only table lose files
    (step,) = next_steps(
        plan(replace(request, undo=frozenset()), {"odd name": history("create", "append", "append")}, odd)
    )
    words = shlex.split(step.command)
    assert words[3:9] == ["db.it's odd", "--bad", "1", "--bad", "2", "--cascade"]
    assert words[9:] == ["--agreed", "db.it's odd", "--consent", "append_only=db.it's odd"]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (RollbackRequest(seeds=(CommitsOf(run_id="run-1"),)), ["db.flights", "--run", "run-1"]),
        (
            RollbackRequest(
                seeds=(
                    BadVersions(table_id="flights", versions=(1,)),
                    BadVersions(table_id="daily", versions=(1,)),
                )
            ),
            ["--all-marked"],
        ),
    ],
    ids=["of a run", "of all marks"],
)
def test_the_next_command_names_the_seeds(request_: RollbackRequest, words: list[str]) -> None:
    step = next_steps(plan(request_, {"daily": FLEET["daily"], "flights": history("create", "append ?")}))[0]
    assert shlex.split(step.command)[3 : 3 + len(words)] == words


def test_a_block_is_lifted_by_naming_the_table_and_a_hold_by_no_command() -> None:
    asked = facts("daily", dependencies=(Dependency(upstream="flights", on_rollback=OnRollback.BLOCK),))
    tables = {"flights": FLEET["flights"], "daily": history("create", "append <- flights@1")}
    (step,) = next_steps(plan(CASCADE, tables, asked))
    assert shlex.split(step.command)[-2:] == ["--agreed", "db.daily"]
    assert next_steps(plan(CASCADE, tables, facts("daily", hold="db.daily: case 4711"))) == ()


def test_programs_get_the_same_as_fields() -> None:
    made = plan(CASCADE, FLEET)
    told = with_details(made, details(BAD, GOOD, more=3), next_steps(made), ANA)
    assert told["next"] == told["next_choices"][0]["command"] and told["next"].endswith(
        "--consent collateral=db.daily@2"
    )
    daily = next(one for one in told["tables"] if one["name"] == "db.daily")
    assert (daily["owner"], daily["may_apply"], daily["commits_left_out"]) == ("bo", False, 3)
    assert daily["commits"][0] == {
        "version": 1,
        "role": "tainted",
        "operation": "append",
        "rows": 1200,
        "user": "ana",
        "engine": "Spark/4.1",
        "at": "2026-11-21T03:12:07Z",
        "run_id": "r1",
        "seed": False,
        "reads": [
            {
                "table_id": "flights",
                "name": "db.flights",
                "versions": [1],
                "changes": False,
                "confidence": "committed",
                "left_out": 0,
            }
        ],
    }
    assert {"from", "to", "collateral", "blocked_by"} <= set(daily) and told["hash"] == made.hash


def test_on_a_narrow_terminal_the_writers_names_give_way_and_sentences_wrap() -> None:
    written = replace(BAD, user="somebody_with_a_long_name", engine="delta-rs:py-1.6.6")
    made = plan(CASCADE, FLEET)
    lines = text(made, details(written), width=80).splitlines()
    shown = [line for line in lines if not line.startswith("  lakewarden ")]
    assert max(map(len, shown)) <= 80
    (commit,) = [line for line in lines if " 2026-11-21 03:12:07 " in line]
    assert commit.endswith("1,200") and "…" in commit
    (whole,) = [line for line in text(made, details(written)).splitlines() if "2026-11-21 03:12:07" in line]
    assert "somebody_with_a_long_name with delta-rs" in whole
