"""A rollback done step by step on real Delta tables: forwards, stopped by others, taken back."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.errors import ConflictError, ConsentError, PreconditionError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.jobs.rollback.execute import table_steps, undo
from lakewarden.jobs.rollback.execute.found_in_logs import taken_back
from lakewarden.jobs.rollback.journal.step_rows import left_as_it_is
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.journal.stored_plan import consents_asked
from lakewarden.jobs.rollback.report.next_steps import steps_from
from support.builders.rollbacks import Lake
from support.fakes.engine import FakeEngine

pytestmark = pytest.mark.heavy


class KilledError(Exception):
    """The worker was killed here."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    for name in ("source", "derived"):
        for number in (1, 2, 3):
            lake.append(name, number)
    return lake


def test_source_and_derived_table_go_back_and_the_undo_brings_them_again(lake: Lake) -> None:
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    done = lake.go_on()
    assert done.head.state is State.DONE and done.head.undo_until is not None
    assert lake.contents("source", "derived") == {"source": [1, 2], "derived": [1]}
    assert [step.new_version for step in done.steps] == [3, 3]
    undone = lake.undo()
    assert undone.head.state is State.COMPENSATED
    assert lake.contents("source", "derived") == {"source": [1, 2, 3], "derived": [1, 2, 3]}


def test_going_on_with_what_is_done_changes_nothing(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    lake.go_on()
    commits = lake.journal_commits()
    assert lake.go_on().head.state is State.DONE
    assert (lake.head("source"), lake.journal_commits()) == (3, commits)


def test_the_journal_takes_one_commit_per_wave_and_one_at_the_end(lake: Lake) -> None:
    lake.append("other", 1)
    lake.append("other", 2)
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1), lake.step("other", 0, wave=1))
    before = lake.journal_commits()
    lake.go_on()
    assert lake.journal_commits() - before == 3


def test_a_stale_plan_changes_nothing(lake: Lake) -> None:
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    lake.append("derived", 4)
    with pytest.raises(
        ConflictError, match="The plan is stale: db.derived is at version 3, the plan speaks of 2"
    ):
        lake.go_on()
    assert lake.states()["*"] == [State.COMPENSATED]
    assert lake.contents("source", "derived") == {"source": [1, 2, 3], "derived": [1, 2, 3, 4]}


def test_a_writer_in_the_middle_stops_it_and_loses_nothing(lake: Lake) -> None:
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    calls = iter(range(100))

    def write_between_the_waves() -> None:
        if next(calls) == 3:  # two verifications, then the source's restore
            lake.append("derived", 4)

    stopped = lake.go_on(still_ours=write_between_the_waves)
    assert stopped.head.state is State.CONFLICT
    assert stopped.head.message is not None and "db.derived" in stopped.head.message
    assert lake.contents("source", "derived") == {"source": [1, 2], "derived": [1, 2, 3, 4]}
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.contents("source", "derived") == {"source": [1, 2, 3], "derived": [1, 2, 3, 4]}


def test_a_table_that_others_wrote_and_that_holds_nothing_bad_any_more_is_named_at_the_end(
    lake: Lake,
) -> None:
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    calls = iter(range(100))
    done = lake.go_on(
        still_ours=lambda: lake.append("derived", 4) if next(calls) == 3 else None, extend=lambda _: []
    )
    assert (done.head.state, done.head.message) == (
        State.DONE,
        "db.derived: left as others wrote it meanwhile",
    )
    assert lake.contents("source", "derived") == {"source": [1, 2], "derived": [1, 2, 3, 4]}


def test_an_undo_of_two_restores_of_a_table_stops_at_what_somebody_wrote_between_them(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))

    def written_between() -> Iterator[list[TableStep]]:
        restored = lake.head("source")
        lake.append("source", 99)
        yield [lake.step("source", restored)]
        yield []

    rounds = written_between()
    assert lake.go_on(extend=lambda _: next(rounds)).head.state is State.DONE
    assert lake.contents("source") == {"source": [1, 2]}
    stopped = lake.undo()
    assert stopped.head.state is State.CONFLICT and lake.contents("source") == {"source": [1, 2, 99]}
    assert stopped.head.message is not None
    assert "was written to after its rollback (version 4, WRITE)" in stopped.head.message
    assert f"rollback undo {stopped.rollback_id}" not in stopped.head.message, "its own undo is no way out"
    DeltaTable(lake.place("source")).restore(3)  # the way out that it names: to before that write
    assert lake.undo().head.state is State.COMPENSATED and lake.contents("source") == {"source": [1, 2, 3]}


def test_what_was_stopped_over_a_consent_keeps_how_to_agree(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    ways = (("keep_unknown=db.derived@4",), ("lose_unknown=db.derived@4",))

    def refuse(_: Rollback) -> NoReturn:
        raise ConsentError("Version 4 of db.derived is unknown.", hint="If that is right: agree.", ways=ways)

    stopped = lake.go_on(extend=refuse)
    assert (stopped.head.state, consents_asked(stopped)) == (State.CONFLICT, ways)
    named = [one.command for one in steps_from(stopped, consents_asked(stopped))]
    assert named == [
        *(f"lakewarden rollback resume {stopped.rollback_id} --consent {one}" for (one,) in ways),
        f"lakewarden rollback undo {stopped.rollback_id}",
    ]


def test_what_stopped_over_a_moved_head_says_also_which_consent_it_takes(lake: Lake) -> None:
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    calls = iter(range(100))

    def refuse(_: Rollback) -> NoReturn:
        raise ConsentError(
            "1 clean commit would be lost.", hint="Agree.", ways=(("collateral=db.derived@3",),)
        )

    stopped = lake.go_on(
        still_ours=lambda: lake.append("derived", 4) if next(calls) == 3 else None, extend=refuse
    )
    assert stopped.head.state is State.CONFLICT and lake.contents("derived") == {"derived": [1, 2, 3, 4]}
    assert consents_asked(lake.journal.get(stopped.rollback_id)) == (("collateral=db.derived@3",),)
    assert stopped.head.message is not None
    assert "db.derived" in stopped.head.message
    assert stopped.head.message.endswith("1 clean commit would be lost. Agree.")


def test_a_late_commit_is_taken_in_and_the_undo_takes_back_all_of_it(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    rounds = iter([[lake.step("derived", 1)], []])
    assert lake.go_on(extend=lambda _: next(rounds)).head.state is State.DONE
    assert lake.contents("source", "derived") == {"source": [1, 2], "derived": [1, 2]}
    lake.undo()
    assert lake.contents("source", "derived") == {"source": [1, 2, 3], "derived": [1, 2, 3]}


def test_a_head_that_moved_takes_all_back_where_that_was_asked_for_and_says_what_was_never_done(
    lake: Lake,
) -> None:
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    calls = iter(range(100))

    def write_between_the_waves() -> None:
        if next(calls) == 3:  # two verifications, then the source's restore
            lake.append("derived", 4)

    ended = lake.go_on(still_ours=write_between_the_waves, compensates=True)
    assert (ended.head.state, ended.head.undo) == (State.COMPENSATED, True)
    assert (ended.head.message or "").startswith("taken back, as the plan says for moved heads: ")
    assert lake.states() == {
        "*": [State.COMPENSATED],
        "source": [State.COMPENSATED],
        "derived": [State.PLANNED],
    }
    assert lake.contents("source", "derived") == {"source": [1, 2, 3], "derived": [1, 2, 3, 4]}


def test_an_undo_leaves_a_table_alone_that_was_written_to_since(lake: Lake) -> None:
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    lake.go_on()
    lake.append("derived", 9)
    undone = lake.undo()
    assert undone.head.state is State.CONFLICT
    assert (
        undone.head.message is not None
        and "db.derived was written to after its rollback" in undone.head.message
    )
    assert lake.contents("source", "derived") == {"source": [1, 2, 3], "derived": [1, 9]}


def test_an_undo_goes_over_our_own_maintenance(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    lake.go_on()
    DeltaTable(str(lake.path("source"))).optimize.compact()
    assert lake.head("source") == 4
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2, 3]


def test_what_an_owner_sets_between_the_restore_and_the_properties_stays(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.engine.set_properties(
        lake.location("source"),
        requires=Head(2),
        properties=[("delta.deletedFileRetentionDuration", "interval 7 days"), ("lakewarden.note", "x")],
        run_id="r",
    )
    longer = [("delta.deletedFileRetentionDuration", "interval 365 days")]

    def owner(point: str) -> None:
        if point == "rollback.restored":
            lake.engine.set_properties(
                lake.location("source"), requires=Head(4), properties=longer, run_id="owner"
            )

    monkeypatch.setattr(table_steps, "reach", owner)
    lake.begin(lake.step("source", 1))
    done = lake.go_on()
    properties = lake.seen("source").properties
    assert properties["delta.deletedFileRetentionDuration"] == "interval 365 days"
    assert properties["lakewarden.note"] == "x"
    assert [(step.kind, step.new_version) for step in done.steps] == [("restore", 4), ("properties", 6)]


def test_properties_of_ours_survive_the_restore_as_a_step_of_its_own(lake: Lake) -> None:
    lake.engine.set_properties(
        lake.location("source"),
        requires=Head(2),
        properties=[("delta.deletedFileRetentionDuration", "interval 30 days"), ("lakewarden.note", "x")],
        run_id="before",
    )
    lake.begin(lake.step("source", 1))
    done = lake.go_on()
    properties = lake.seen("source").properties
    assert properties["delta.deletedFileRetentionDuration"] == "interval 30 days"
    assert properties["lakewarden.note"] == "x"
    assert [(step.kind, step.new_version) for step in done.steps] == [("restore", 4), ("properties", 5)]
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2, 3]
    assert lake.seen("source").properties["lakewarden.note"] == "x"


KEPT = "delta.deletedFileRetentionDuration"


def test_a_retention_that_is_set_after_the_rollback_outlives_the_undo(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    lake.go_on()
    for days in ("30", "60"):
        head = lake.head("source")
        retention = [(KEPT, f"interval {days} days")]
        lake.engine.set_properties(
            lake.location("source"), requires=Head(head), properties=retention, run_id="daemon"
        )
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2, 3] and lake.seen("source").properties[KEPT] == "interval 60 days"


def test_killed_before_it_is_set_again_the_next_attempt_does_so_but_not_over_what_somebody_sets(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.append("other", 1)
    lake.append("other", 2)
    lake.begin(lake.step("source", 1), lake.step("other", 0, wave=1))
    lake.go_on()
    for name in ("source", "other"):
        retention = [(KEPT, "interval 60 days")]
        lake.engine.set_properties(
            lake.location(name), requires=Head(lake.head(name)), properties=retention, run_id="daemon"
        )

    def killed(point: str) -> None:
        if point == "rollback.taken_back":
            raise KilledError

    for _ in ("other", "source"):
        with monkeypatch.context() as patch, pytest.raises(KilledError):
            patch.setattr(table_steps, "reach", killed)
            lake.undo()
    assert KEPT not in lake.seen("source").properties, "the undo has rewound it"
    theirs = [(KEPT, "interval 90 days")]
    lake.engine.set_properties(
        lake.location("source"), requires=Head(lake.head("source")), properties=theirs, run_id="owner"
    )
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2, 3] and lake.seen("source").properties[KEPT] == "interval 90 days"
    assert lake.rows("other") == [1, 2] and lake.seen("other").properties[KEPT] == "interval 60 days"


def set_by(lake: Lake, name: str, value: str, key: str = KEPT) -> None:
    """Somebody sets a property on head."""
    lake.engine.set_properties(
        lake.location(name), requires=Head(lake.head(name)), properties=[(key, value)], run_id="owner"
    )


def test_once_it_was_set_again_what_somebody_sets_stays_whatever_was_killed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_by(lake, "source", "interval 7 days")
    lake.begin(lake.step("source", 1))
    lake.go_on()
    set_by(lake, "source", "interval 60 days")

    def killed(point: str) -> None:
        if point == "rollback.properties":
            raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(table_steps, "reach", killed)
        lake.undo()
    assert lake.seen("source").properties[KEPT] == "interval 60 days"
    set_by(
        lake, "source", "interval 7 days"
    )  # as the undo had left it: not what the next attempt has to mend
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.seen("source").properties[KEPT] == "interval 7 days"


def unset_retention(lake: Lake) -> dict[str, str]:
    """`source` had a short retention at version 3, which its owner has taken away since; what head has instead."""
    set_by(lake, "source", "interval 1 hours")
    lake.engine.unset_properties(lake.location("source"), requires=Head(3), names=[KEPT], run_id="owner")
    set_by(lake, "source", "interval 90 days", "delta.logRetentionDuration")
    lake.append("source", 4)
    return dict(lake.seen("source").properties)


def test_a_retention_that_its_owner_has_taken_away_does_not_come_back(lake: Lake) -> None:
    before = unset_retention(lake)
    lake.begin(lake.step("source", 3))
    done = lake.go_on()
    assert [(step.kind, step.new_version) for step in done.steps] == [("restore", 7), ("properties", 9)]
    assert lake.seen("source").properties == before and lake.rows("source") == [1, 2, 3]
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.seen("source").properties == before and lake.rows("source") == [1, 2, 3, 4]


@pytest.mark.parametrize("times", [0, 1, 2])
def test_killed_between_the_two_commits_of_the_properties_the_next_attempt_makes_the_other(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    before = unset_retention(lake)
    lake.begin(lake.step("source", 3))
    points = ["rollback.restored", "rollback.properties", "rollback.properties"]

    def killed(at: str) -> None:
        assert at == points.pop(0)
        if len(points) == 2 - times:
            raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(table_steps, "reach", killed)
        lake.go_on()
    done = lake.go_on()
    assert [(step.kind, step.new_version) for step in done.steps] == [("restore", 7), ("properties", 9)]
    assert lake.seen("source").properties == before and lake.head("source") == 9


def test_what_its_owner_sets_again_meanwhile_is_not_taken_away(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    unset_retention(lake)
    lake.begin(lake.step("source", 3))

    def owner(point: str) -> None:
        if point == "rollback.restored":
            set_by(lake, "source", "interval 60 days")

    monkeypatch.setattr(table_steps, "reach", owner)
    assert lake.go_on().head.state is State.DONE
    properties = lake.seen("source").properties
    assert (properties[KEPT], properties["delta.logRetentionDuration"]) == (
        "interval 60 days",
        "interval 90 days",
    )


def test_a_retention_that_somebody_has_unset_stands_in_the_way(lake: Lake) -> None:
    set_by(lake, "source", "interval 1 hours")
    lake.append("source", 4)
    lake.begin(lake.step("source", 1))
    lake.go_on()
    log = lake.path("source") / "_delta_log"
    head = lake.head("source")
    told = [json.loads(line) for one in sorted(log.glob("*.json")) for line in one.read_text().splitlines()]
    last = [one["metaData"] for one in told if "metaData" in one][-1]
    last["configuration"].pop(KEPT)
    info = {
        "operation": "UNSET TBLPROPERTIES",
        "operationParameters": {"properties": json.dumps([KEPT]), "ifExists": "true"},
        "timestamp": 1,
    }
    lines = [json.dumps({"commitInfo": info}), json.dumps({"metaData": last})]
    (log / f"{head + 1:020}.json").write_text("\n".join(lines) + "\n")
    stopped = lake.undo()
    assert stopped.head.state is State.CONFLICT and KEPT not in lake.seen("source").properties
    assert f"(version {head + 1}, UNSET TBLPROPERTIES)" in (stopped.head.message or "")


def test_an_undo_that_stops_once_the_rows_are_back_does_not_leave_them_for_rolled_back(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.begin(lake.step("source", 1))
    lake.go_on()
    set_by(lake, "source", "interval 60 days")

    def refuse(*_: object, **__: object) -> NoReturn:
        raise PreconditionError("db.source is on hold.")

    monkeypatch.setattr(FakeEngine, "set_properties", refuse)
    stopped = lake.undo()
    assert stopped.head.state is State.CONFLICT and lake.rows("source") == [1, 2, 3]
    left = left_as_it_is(taken_back(stopped, [lake.reader]))
    assert (left.head.state, left.head.message) == (State.COMPENSATED, None)
    assert [step.state for step in left.steps] == [State.COMPENSATED]


def test_while_the_later_of_two_restores_is_not_taken_back_the_earlier_is_not_either(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.begin(lake.step("source", 1))
    rounds = iter([lambda: [lake.step("source", 0)], list])
    assert lake.go_on(extend=lambda _: next(rounds)()).head.state is State.DONE
    real = FakeEngine.restore

    def slower(self: FakeEngine, location: str, **told: Any) -> int:
        monkeypatch.undo()
        set_by(lake, "source", "interval 60 days")
        return real(self, location, **told)

    monkeypatch.setattr(FakeEngine, "restore", slower)
    stopped = lake.undo()
    assert [step.state for step in stopped.steps] == [State.CONFLICT] * 2 and lake.rows("source") == [1]
    assert "other table" not in (stopped.head.message or "")
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2, 3] and lake.seen("source").properties[KEPT] == "interval 60 days"


def test_any_other_property_that_somebody_sets_stands_in_the_way(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    lake.go_on()
    lake.engine.set_properties(
        lake.location("source"), requires=Head(3), properties=[("owner.note", "x")], run_id="owner"
    )
    assert lake.undo().head.state is State.CONFLICT and lake.rows("source") == [1, 2]


def test_a_replayed_batch_is_not_skipped_after_a_rollback_and_is_skipped_after_its_undo(lake: Lake) -> None:
    for batch in (0, 1, 2):
        lake.append("sink", batch, batch=("query-1", batch))
    lake.begin(lake.step("sink", 0))
    lake.go_on()
    assert DeltaTable(str(lake.path("sink"))).transaction_version("query-1") == 0
    lake.undo()
    assert DeltaTable(str(lake.path("sink"))).transaction_version("query-1") == 2


def test_a_stream_that_had_not_begun_at_the_target_begins_anew(lake: Lake) -> None:
    lake.append("source", 4, batch=("query-2", 0))
    lake.begin(lake.step("source", 1))
    lake.go_on()
    assert DeltaTable(str(lake.path("source"))).transaction_version("query-2") == -1


def test_a_file_that_somebody_vacuumed_is_named_before_anything_is_changed(lake: Lake) -> None:
    gone = next(iter(lake.reader.files(lake.location("derived"), version=0))).path
    table = DeltaTable(str(lake.path("derived")))
    table.delete("id = 1")
    (lake.path("derived") / gone).unlink()
    lake.begin(lake.step("source", 1), lake.step("derived", 1, wave=1))
    with pytest.raises(PreconditionError, match=f"1 file is gone or damaged, the first is {gone}"):
        lake.go_on()
    assert (lake.states()["*"], lake.head("source")) == ([State.COMPENSATED], 2)


def test_an_undo_goes_behind_a_later_rollback_that_was_undone_and_behind_no_other(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    lake.go_on()
    lake.begin(lake.step("source", 0), rollback_id="r2")
    lake.go_on("r2")
    stopped = lake.undo()
    assert stopped.head.state is State.CONFLICT and lake.rows("source") == [1]
    assert "was written to after its rollback (version 4, RESTORE)" in (stopped.head.message or "")
    assert lake.undo("r2").head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2]
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2, 3]


def test_an_undo_goes_on_once_somebody_has_restored_what_the_rollback_left(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    lake.go_on()
    lake.append("source", 9)
    assert lake.undo().head.state is State.CONFLICT
    DeltaTable(str(lake.path("source"))).restore(3)
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.rows("source") == [1, 2, 3]


@pytest.mark.parametrize("point", ["rollback.undoing", "rollback.unacted"])
def test_an_undo_that_is_killed_commits_nothing_to_a_table_that_was_never_begun_with(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    lake.append("later", 1)
    lake.append("later", 2)
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1), lake.step("later", 0, wave=2))
    calls = iter(range(100))
    stopped = lake.go_on(still_ours=lambda: lake.append("derived", 4) if next(calls) == 4 else None)
    assert (stopped.head.state, lake.states()["later"]) == (State.CONFLICT, [State.PLANNED])

    def killed(at: str) -> None:
        if at == point:
            raise KilledError

    lake.begin_undo()
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(undo, "reach", killed)
        lake.go_on()
    assert lake.go_on().head.state is State.COMPENSATED
    assert lake.states()["later"] == [State.PLANNED]
    assert (lake.head("later"), lake.rows("source")) == (1, [1, 2, 3]), "no commit"
