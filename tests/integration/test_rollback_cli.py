"""`lakewarden rollback` and ROLLBACK TABLE on real Delta tables:
plans, applications, and what the user reads when not."""

import shlex
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.lineage.streams.offsets import NO_TABLE
from lakewarden.catalog.model.rows import Finding, HealthRow, Severity, TableRow
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.port import AUDIT, HEALTH, TABLES, Rows
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.settings.settings import load_settings
from support.builders.clones import shallow_clone
from support.builders.derived import ids, overwrite, reading, write
from support.builders.rollback_messages import SAYS
from support.processes import beside_worker, fake_worker
from support.processes.commands import Cli, Said, registered
from support.processes.daemon_process import FakeWorkerServices
from support.processes.writer_beside import finished


class Desk:
    """A home with a source, a table derived from it, one healed by an overwrite, and one that read only clean data."""

    def __init__(self, folder: Path, call: Cli) -> None:
        self.folder, self.call = folder, call
        self.source, self.derived = folder / "lake" / "source", folder / "lake" / "derived"
        self.healed, self.clean = folder / "lake" / "healed", folder / "lake" / "clean"
        write(self.source, 1)
        write(self.source, 2)
        self.reads = {self.register(self.source): self.source}
        for place in (self.derived, self.healed, self.clean):
            write(place, 1, 2, reads=self.reads)
        write(self.source, 99)
        write(self.derived, 99, reads=self.reads)
        write(self.healed, 99, reads=self.reads)
        overwrite(self.healed, 7)
        for place in (self.derived, self.healed, self.clean):
            self.register(place)

    def register(self, place: Path) -> str:
        """Make a table managed. Returns its id."""
        return registered(self.call, place)

    def plan(self, *options: str, to: int = 1) -> Said:
        return self.call("rollback", "plan", "db.source", "--to-version", str(to), "-o", "json", *options)

    def apply(self, *options: str) -> Said:
        """Plan with options, then apply that plan."""
        planned = self.plan(*options)
        assert planned.code == 0, planned
        return self.call("rollback", "apply", planned.json["hash"], "-o", "json")

    def done(self, *options: str, bad: int = 2) -> Any:
        """Plan to undo one version of the source, and apply that. Returns what `apply` printed."""
        bad_one = ("db.source", "--bad", str(bad), "--cascade")
        planned = self.call("rollback", "plan", *bad_one, "-o", "json", *options)
        assert planned.code == 0, planned
        said = self.call("rollback", "apply", planned.json["hash"], "-o", "json")
        assert said.code == 0, said
        return said.json

    def row(self, name: str) -> TableRow:
        return next(row for row in self.services().store.rows(TABLES).all() if row.name == name)

    def services(self) -> FakeWorkerServices:
        return FakeWorkerServices(load_settings(home=self.folder / "home"))

    def change_row(self, name: str, **changes: Any) -> None:
        store = self.services().store
        row = next(row for row in store.rows(TABLES).all() if row.name == name)
        changed: TableRow = replace(row, **changes)
        store.edit(TABLES, lambda _: [changed], because="test")


@pytest.fixture
def registry(tmp_path: Path, cli: Cli) -> Desk:
    return Desk(tmp_path, cli)


def by_name(said: Said) -> dict[str, Any]:
    return {table["name"]: table for table in said.json["tables"]}


def test_a_plan_names_what_goes_back_and_apply_does_it_and_undo_takes_it_back(registry: Desk) -> None:
    planned = registry.plan("--cascade")
    assert planned.code == 0, planned
    tables = by_name(planned)
    assert {name: (one["from"], one["to"]) for name, one in tables.items() if one["step"] == "restore"} == {
        "db.source": (2, 1),
        "db.derived": (1, 0),
    }
    assert set(tables["db.derived"]) >= {
        "table_id",
        "name",
        "from",
        "to",
        "tainted",
        "collateral",
        "unknown",
        "blocked_by",
    }
    done = registry.call("rollback", "apply", planned.json["hash"], "-o", "json")
    assert (done.code, done.json["state"]) == (0, "done"), done
    assert [ids(one) for one in (registry.source, registry.derived, registry.healed, registry.clean)] == [
        [1, 2],
        [1, 2],
        [7],
        [1, 2],
    ]
    undone = registry.call("rollback", "undo", done.json["rollback_id"], "-o", "json")
    assert (undone.code, undone.json["state"]) == (0, "compensated"), undone
    assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2, 99], [1, 2, 99]]
    what = [row.what for row in registry.services().store.rows(AUDIT).all() if row.what == "rollback"]
    assert len(what) == 3


def test_the_statement_does_the_same_in_one_go(registry: Desk) -> None:
    done = registry.call("sql", "ROLLBACK TABLE db.source TO VERSION 1 CASCADE REAPPLY", "-o", "json")
    assert done.code == 0, done
    assert done.json[0]["state"] == "done" and done.json[0]["tables"] == 2
    assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2], [1, 2]]


def test_the_tree_and_the_picture_show_before_and_after(registry: Desk) -> None:
    tree = registry.call("rollback", "plan", "db.source", "--to-version", "1", "--cascade")
    assert "db.source  2 -> 1" in tree.out and "└─ db.derived  1 -> 0" in tree.out
    picture = registry.call("rollback", "plan", "db.source", "--to-version", "1", "--cascade", "--mermaid")
    assert picture.out.startswith("flowchart TD") and "-->" in picture.out
    listed = registry.call("rollback", "list", "-o", "json").json
    assert [one["state"] for one in listed] == ["planned"]
    assert "db.derived  1 -> 0" in registry.call("rollback", "show", listed[0]["hash"]).out


def test_versions_are_marked_listed_planned_by_and_unmarked(registry: Desk) -> None:
    marked = registry.call(
        "lineage", "mark", "db.source", "2", "--bad", "--note", "half a file", "-o", "json"
    )
    assert marked.code == 0, marked
    (mark,) = marked.json
    me = real_user()
    assert {**mark, "at": None, "format_id": None} == {
        "version": 2, "verdict": "bad", "by": me, "at": None, "format_id": None, "note": "half a file",
        "applies": True,
    }  # fmt: skip
    for which in (("db.source", "--marked"), ("--all-marked",)):
        planned = registry.call("rollback", "plan", *which, "--cascade", "-o", "json")
        assert planned.code == 0, planned
        assert {
            name: (one["from"], one["to"])
            for name, one in by_name(planned).items()
            if one["to"] < one["from"]
        } == {
            "db.source": (2, 1),
            "db.derived": (1, 0),
        }
    assert registry.call("lineage", "mark", "db.derived", "1", "--clean").code == 0
    spared = registry.call("rollback", "plan", "db.source", "--marked", "--cascade")
    assert "Version 1 of db.derived is marked clean and does not count." in spared.out
    assert registry.call("lineage", "mark", "db.source", "2", "--remove").code == 0
    assert registry.call("lineage", "marks", "db.source", "-o", "json").json == []
    assert registry.call("rollback", "plan", "db.source", "--marked").code == 1
    assert registry.call("lineage", "mark", "db.source", "7", "--bad").code == 1
    assert registry.call("lineage", "mark", "db.source", "2").code == 2
    what = [row.on for row in registry.services().store.rows(AUDIT).all() if row.on.startswith("mark ")]
    assert len(what) == 4, "refused calls are on record, too"


@pytest.mark.few(1)
@pytest.mark.parametrize("table", ["lakewarden.tables", "lakewarden.audit", "lakewarden.rollbacks"])
def test_a_system_table_is_never_rolled_back(registry: Desk, table: str) -> None:
    before = registry.services().store.rows(TABLES).version
    for words in (
        ("rollback", "plan", table, "--to-version", "0"),
        ("rollback", "plan", table, "--bad", "1", "--cascade"),
        ("sql", f"ROLLBACK TABLE {table} TO VERSION 0"),
        ("lineage", "mark", table, "0", "--bad"),
        ("sql", f"MARK TABLE {table} VERSION 0 BAD"),
    ):
        refused = registry.call(*words)
        assert refused.code == 5, refused
        assert f"{table} is a system table: it is never rolled back." in refused.err
    assert registry.services().store.rows(TABLES).version == before


@pytest.mark.long
def test_by_sql_versions_are_marked_mended_and_unmarked(registry: Desk) -> None:
    write(registry.source, 5)
    marked = registry.call("sql", "MARK TABLE db.source VERSION 2 BAD BECAUSE 'half a file'", "-o", "json")
    assert marked.json == registry.call("lineage", "marks", "db.source", "-o", "json").json
    assert [(one["version"], one["verdict"], one["note"]) for one in marked.json] == [
        (2, "bad", "half a file")
    ]
    undo = "ROLLBACK TABLE db.source MARKED CASCADE REMOVE FILES"
    done = registry.call("sql", undo, "-o", "json")
    assert [(one["state"], one["tables"]) for one in done.json] == [("done", 2)], done
    assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2, 5], [1, 2]]
    assert registry.call("sql", undo, "-o", "json").json[0]["state"] == "nothing to undo"
    assert registry.call("sql", "UNMARK TABLE db.source VERSION 2", "-o", "json").json == []
    unmarked = registry.call("sql", "UNMARK TABLE db.source VERSION 2")
    assert unmarked.code == 1 and "Version 2 of db.source has no mark." in unmarked.err
    assert registry.call("sql", undo).code == 1, "nothing is marked any more"
    said = [
        (row.on, row.allowed) for row in registry.services().store.rows(AUDIT).all() if row.origin == "sql"
    ]
    assert said.count(("mark db.source", True)) == 2 and said.count(("mark db.source", False)) == 1
    assert said.count(("db.source", False)) == 1


def test_late_taint_is_seen_by_whoever_asks(registry: Desk) -> None:
    store, table_id = (
        registry.services().store,
        registry.call("tables", "show", "db.derived", "-o", "json").json["table_id"],
    )
    message = "Version 1 was made from version 2 of db.source, which rollback r1 took back."

    def late(rows: Rows[HealthRow]) -> list[HealthRow]:
        health = rows.get(table_id)
        assert health is not None
        finding = Finding(
            check="reads_reverted", severity=Severity.WARNING, message=message, since=health.observed_at
        )
        return [replace(health, findings=(*health.findings, finding))]

    store.edit(HEALTH, late, because="a sweep")
    assert message in registry.call("why", "db.derived").err
    assert registry.call("status", "-o", "json").json["reads_reverted"] == 1
    assert message in registry.call("tables", "show", "db.derived").out.replace("\n", " ")
    assert [
        one["message"] for one in registry.call("tables", "validate", "db.derived", "-o", "json").json
    ] == [message]


# more than rewinding


def test_taking_out_the_bad_files_keeps_what_came_later_and_is_clean_to_the_next_plan(registry: Desk) -> None:
    write(registry.source, 5)
    done = registry.done("--remove-files", "db.source")
    assert {step["name"]: step["kind"] for step in done["steps"]} == {
        "db.source": "remove_files",
        "db.derived": "restore",
    }
    assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2, 5], [1, 2]]
    write(registry.derived, 5, reads=registry.reads)
    again = registry.call("rollback", "plan", "db.source", "--bad", "2", "--cascade", "-o", "json")
    assert (again.code, {one["step"] for one in by_name(again).values()}) == (0, {"none"}), again
    undone = registry.call("rollback", "undo", done["rollback_id"])
    assert undone.code == 4 and "db.derived was written to after its rollback" in undone.err
    assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2, 5, 99], [1, 2, 5]]


@pytest.mark.long
def test_what_was_taken_out_and_brought_back_can_be_taken_out_again(registry: Desk) -> None:
    write(registry.source, 5)
    for _ in range(2):
        done = registry.done("--remove-files", "db.source")
        assert {step["name"]: step["kind"] for step in done["steps"]}["db.source"] == "remove_files"
        assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2, 5], [1, 2]]
        later = registry.call("rollback", "plan", "db.source", "--bad", "2", "--cascade", "-o", "json")
        assert {one["step"] for one in by_name(later).values()} == {"none"}
        assert registry.call("rollback", "undo", done["rollback_id"]).code == 0
        assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2, 5, 99], [1, 2, 99]]


def test_files_are_only_taken_out_where_that_gives_what_would_be_there(registry: Desk) -> None:
    DeltaTable(str(registry.source)).optimize.compact()
    said = registry.call(
        "rollback", "plan", "db.source", "--bad", "2", "--remove-files", "db.source", "-o", "json"
    )
    assert said.code == 4
    assert SAYS["files that cannot be removed"] in {
        one["message"] for one in by_name(said)["db.source"]["blocked_by"]
    }


@pytest.mark.long
def test_lost_clean_appends_are_added_again_and_go_with_what_they_came_from(registry: Desk) -> None:
    write(registry.derived, 5)
    refused = registry.call("rollback", "plan", "db.source", "--bad", "2", "--cascade")
    assert refused.code == 4 and "--consent collateral or --reapply" in refused.out
    done = registry.done("--reapply")
    assert [step["kind"] for step in done["steps"]] == ["restore", "restore", "reapply"]
    assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2], [1, 2, 5]]
    # The append was version 2 and came again as 4: whoever undoes it undoes both.
    planned = registry.call("rollback", "plan", "db.derived", "--bad", "2", "-o", "json")
    derived = by_name(planned)["db.derived"]
    assert (derived["tainted"], derived["from"], derived["to"]) == ([2, 4], 4, 3)
    assert registry.call("rollback", "undo", done["rollback_id"]).code == 0
    assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2, 99], [1, 2, 5, 99]]


def test_a_table_that_was_never_clean_is_quarantined_until_an_owner_says_otherwise(registry: Desk) -> None:
    born = registry.folder / "lake" / "born"
    write(born, 99, reads=registry.reads)
    registry.register(born)
    refused = registry.call("rollback", "plan", "db.source", "--bad", "2", "--cascade", "-o", "json")
    assert refused.code == 4
    assert by_name(refused)["db.born"]["blocked_by"][0]["message"] == SAYS["never clean"]
    done = registry.done("--consent", "quarantine_born_tainted")
    row = registry.row("db.born")
    assert (row.state, row.state_reason) == (
        "quarantined",
        f"rollback {done['rollback_id']}: no clean version.",
    )
    swept = registry.call("tables", "validate", "db.born")
    assert registry.row("db.born").state == "quarantined", swept
    again = registry.call("rollback", "plan", "db.source", "--bad", "2", "--cascade", "-o", "json")
    assert (again.code, by_name(again)["db.born"]["step"]) == (0, "none"), again
    released = registry.call("rollback", "release", "db.born", "-o", "json")
    assert (released.code, released.json["state"]) == (0, "active"), released
    twice = registry.call("rollback", "release", "db.born")
    assert twice.code == 4 and SAYS["not quarantined"] in twice.err


def test_a_table_that_was_never_clean_is_dropped_without_its_data_and_comes_back_by_the_undo(
    registry: Desk,
) -> None:
    born = registry.folder / "lake" / "born"
    write(born, 99, reads=registry.reads)
    registry.register(born)
    done = registry.done("--consent", "drop_born_tainted")
    assert (registry.row("db.born").state, ids(born)) == ("dropped", [99])
    assert registry.call("rollback", "undo", done["rollback_id"]).code == 0
    assert (registry.row("db.born").state, ids(registry.source)) == ("active", [1, 2, 99])


def test_properties_that_would_go_back_are_told(registry: Desk) -> None:
    notes = {"owner.note": "x", "lakewarden.note": "y"}
    DeltaTable(str(registry.source)).alter.set_table_properties(notes, raise_if_not_exists=False)
    planned = registry.plan("--consent", "collateral")
    changes = by_name(planned)["db.source"]["properties"]
    assert changes == [{"key": "owner.note", "head": "x", "target": None}]
    tree = registry.call("rollback", "plan", "db.source", "--to-version", "1", "--consent", "collateral")
    assert "properties that go back: owner.note 'x' -> unset" in tree.out


def test_a_clone_that_may_hold_bad_rows_is_named_and_becomes_part_of_the_plan_where_it_says_so(
    registry: Desk,
) -> None:
    clone = shallow_clone(registry.source, registry.folder / "lake" / "clone")
    registry.register(clone)
    planned = registry.plan("--cascade")
    assert planned.json["clones"] == [{"name": "db.clone", "of": "db.source"}]
    assert "db.clone" not in by_name(planned)
    text = registry.call("rollback", "plan", "db.source", "--to-version", "1", "--cascade").out
    declare = "lakewarden lineage declare db.clone --upstream db.source --on-rollback plan"
    assert "db.clone (of db.source): shallow clones" in text and declare in " ".join(text.split())
    assert registry.call(*shlex.split(declare)[1:]).code == 0
    asked = registry.plan("--cascade")
    assert asked.code == 4 and by_name(asked)["db.clone"]["unknown"] == [0] and asked.json["clones"] == []


@pytest.mark.long
def test_a_rollback_that_is_done_still_names_what_it_left_out(registry: Desk) -> None:
    registry.register(shallow_clone(registry.source, registry.folder / "lake" / "clone"))
    planned = registry.plan("--cascade", "--reapply")
    assert registry.call("rollback", "apply", planned.json["hash"]).code == 0
    shown = registry.call("rollback", "show", planned.json["hash"])
    assert "Stays as it is: db.clone (of db.source): shallow clones" in shown.err, shown


@pytest.mark.long
def test_a_table_that_read_what_no_plan_follows_is_named_until_it_declares_its_source(registry: Desk) -> None:
    between, last = registry.folder / "lake" / "between", registry.folder / "lake" / "last"
    clone, of_clone = registry.folder / "lake" / "clone", registry.folder / "lake" / "of_clone"
    write(between, 99, reads=registry.reads)
    outside = reading({"": between})
    write(
        last, 99, said=replace(outside, inputs=tuple(replace(one, table_id=None) for one in outside.inputs))
    )
    queue = registry.folder / "lake" / "queue"
    no_table = replace(outside.inputs[0], table_id=None, location=f"{NO_TABLE}q/0", version=None)
    write(queue, 99, said=replace(outside, inputs=(no_table,)))
    clone_id = registry.register(shallow_clone(registry.source, clone))
    write(of_clone, 99, reads={clone_id: clone})
    for place in (last, of_clone, queue):
        registry.register(place)
    planned = registry.plan("--cascade")
    assert planned.json["not_followed"] == [
        {"name": "db.last", "read": canonical(str(between))},
        {"name": "db.of_clone", "read": "db.clone"},
    ]
    assert {"db.last", "db.of_clone"}.isdisjoint(by_name(planned))
    text = registry.call("rollback", "plan", "db.source", "--to-version", "1", "--cascade").out
    declare = "lakewarden lineage declare db.last --upstream db.source --on-rollback plan"
    assert "db.of_clone (read db.clone)" in " ".join(text.split()) and declare in " ".join(text.split())
    shown = registry.call("rollback", "show", planned.json["hash"], "-o", "json").json
    assert {key: shown[key] for key in ("clones", "not_followed")} == {
        key: planned.json[key] for key in ("clones", "not_followed")
    }
    registry.call("lineage", "declare", "db.clone", "--upstream", "db.source", "--on-rollback", "plan")
    assert registry.call(*shlex.split(declare)[1:]).code == 0
    asked = registry.plan("--cascade", "--consent", "lose_unknown", "--consent", "quarantine_born_tainted")
    assert {"db.last", "db.of_clone"} <= by_name(asked).keys(), asked.json["tables"]


def test_a_clone_whose_source_file_is_gone_is_not_taken_back_to_it(registry: Desk) -> None:
    clone = shallow_clone(registry.source, registry.folder / "lake" / "clone")
    registry.register(clone)
    overwrite(clone, 5)
    back = ("rollback", "plan", "db.clone", "--to-version", "0", "-o", "json")
    assert registry.call(*back).code == 0
    lost = Path(DeltaTable(str(registry.source)).file_uris()[0].removeprefix("file://"))
    lost.unlink()
    asked = registry.call(*back)
    assert asked.code == 4
    [blocked] = by_name(asked)["db.clone"]["blocked_by"]
    assert "1 file is gone" in blocked["message"] and lost.name in blocked["message"]
    assert ids(clone) == [5]


def test_files_are_removed_only_from_tables_of_the_plan(registry: Desk) -> None:
    said = registry.plan("--remove-files", "db.clean")
    assert said.code == 2 and "db.clean is not in this plan" in said.err
    assert registry.call("rollback", "list", "-o", "json").json == []


# somebody writes between the waves


WRITTEN = list(range(1_000, 1_006))
"""What the writer beside the worker appends to the derived table, after the source was restored."""


@pytest.fixture
def beside(registry: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("WORKER_PROGRAM", beside_worker.__file__)
    monkeypatch.setenv("BESIDE", str(registry.derived))
    yield registry
    assert wait_for(finished(registry.derived)), "the writer did not come to its end"


def wait_for(path: Path) -> bool:
    until = time.monotonic() + 60
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return path.exists()


def test_what_somebody_writes_meanwhile_is_taken_into_the_plan_and_kept(beside: Desk) -> None:
    done = beside.done("--reapply", "--on-moved", "extend")
    assert done["state"] == "done" and wait_for(finished(beside.derived))
    assert [ids(one) for one in (beside.source, beside.derived)] == [[1, 2], [1, 2, *WRITTEN]]
    kinds = [(step["name"], step["kind"], step["state"]) for step in done["steps"]]
    assert ("db.derived", "restore", "compensated") in kinds, "the first plan for it was given up"
    assert ("db.derived", "reapply", "done") in kinds


def test_what_stops_over_a_consent_goes_on_by_the_first_command_that_is_shown(
    beside: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad_one = ("db.source", "--bad", "2", "--cascade", "--on-moved", "extend")
    planned = beside.call("rollback", "plan", *bad_one, "-o", "json")
    said = beside.call("rollback", "apply", planned.json["hash"])
    assert said.code == 4 and wait_for(finished(beside.derived))
    assert ids(beside.derived) == [1, 2, 99, *WRITTEN], "nobody agreed to lose these"
    shown = beside.call("rollback", "show", planned.json["hash"], "-o", "json").json
    way, back = shown["next_choices"]
    assert shown["state"] == "conflict" and "--consent collateral=db.derived@" in way["command"]
    assert f"`{way['command']}`" in shown["message"] and " rollback undo " in back["command"]
    monkeypatch.setenv("WORKER_PROGRAM", fake_worker.__file__)  # nobody writes beside this one
    resumed = beside.call(*shlex.split(way["command"])[1:])
    if resumed.code == 4:  # the writer went on after the rollback had stopped
        assert "--consent collateral=db.derived@" in resumed.err
        resumed = beside.call(*pasted(resumed.err))
    assert resumed.code == 0, resumed
    assert [ids(one) for one in (beside.source, beside.derived)] == [[1, 2], [1, 2]]


def pasted(said: str) -> list[str]:
    """The command that a refusal quotes, without the program's name."""
    return shlex.split(said.partition("`lakewarden ")[2].partition("`")[0])


@pytest.mark.long
def test_what_somebody_writes_meanwhile_takes_everything_back_if_that_was_asked_for(beside: Desk) -> None:
    options = ("--bad", "2", "--cascade", "--on-moved", "compensate", "-o", "json")
    planned = beside.call("rollback", "plan", "db.source", *options)
    said = beside.call("rollback", "apply", planned.json["hash"])
    assert said.code == 4, "what was asked for was not done"
    assert SAYS["taken back"] in said.err and "db.derived" in said.err and wait_for(finished(beside.derived))
    shown = beside.call("rollback", "show", planned.json["hash"], "-o", "json").json
    states = {step["name"]: step["state"] for step in shown["steps"] if step["kind"] == "restore"}
    assert shown["state"] == "compensated" and SAYS["taken back"] in shown["message"]
    assert states == {"db.source": "compensated", "db.derived": "planned"}, "that one was never done"
    assert [ids(one) for one in (beside.source, beside.derived)] == [[1, 2, 99], [1, 2, 99, *WRITTEN]]


# What the user reads when it cannot be done; docs/incident.md quotes these sentences.


def test_a_stale_plan_is_refused(registry: Desk) -> None:
    planned = registry.plan("--cascade")
    write(registry.derived, 5, reads=registry.reads)
    said = registry.call("rollback", "apply", planned.json["hash"])
    assert said.code == 4
    assert SAYS["stale plan"] in said.err
    assert "Make a new plan" in said.err and ids(registry.source) == [1, 2, 99]
    again = registry.call(*pasted(said.err))
    assert again.code == 0 and ids(registry.derived) == [1, 2, 5, 99]
    assert "lakewarden rollback apply" in again.out


def test_a_table_derived_meanwhile_makes_the_plan_stale(registry: Desk) -> None:
    planned = registry.plan("--cascade")
    late = registry.folder / "lake" / "late"
    write(late, 99, reads=registry.reads)
    registry.register(late)
    said = registry.call("rollback", "apply", planned.json["hash"])
    assert said.code == 4 and ids(registry.source) == [1, 2, 99]


def test_an_expired_version_is_refused(registry: Desk) -> None:
    write(registry.source, 3)
    DeltaTable(str(registry.source)).create_checkpoint()
    for version in range(3):
        (registry.source / "_delta_log" / f"{version:020d}.json").unlink()
    said = registry.plan()
    assert said.code == 4
    assert SAYS["expired version"] in said.err


@pytest.mark.long
def test_a_vacuumed_file_is_named(registry: Desk) -> None:
    gone = DeltaTable(str(registry.derived), version=0).file_uris()[0]
    overwrite(registry.derived, 99, reads=registry.reads)
    Path(gone.removeprefix("file://")).unlink()
    said = registry.plan("--cascade")
    assert said.code == 4
    blocked = by_name(said)["db.derived"]["blocked_by"]
    assert [one["why"] for one in blocked] == ["unreachable"]
    assert f"{SAYS['vacuumed file']}{Path(gone).name}" in blocked[0]["message"]
    skipped = registry.apply("--cascade", "--consent", "skip_unreachable")
    assert skipped.code == 0 and ids(registry.source) == [1, 2]


@pytest.mark.long
def test_a_renamed_table_is_the_same_table(registry: Desk) -> None:
    planned = registry.plan("--cascade")
    assert registry.call("tables", "rename", "db.derived", "db.other").code == 0
    done = registry.call("rollback", "apply", planned.json["hash"], "-o", "json")
    assert done.code == 0, done
    assert ids(registry.derived) == [1, 2]


def test_a_replaced_table_makes_the_plan_stale(registry: Desk) -> None:
    planned = registry.plan("--cascade")
    DeltaTable.create(str(registry.derived), DeltaTable(str(registry.derived)).schema(), mode="overwrite")
    said = registry.call("rollback", "apply", planned.json["hash"])
    assert said.code == 4
    assert SAYS["replaced table"] in said.err


def test_a_recreated_table_has_none_of_the_planned_versions(registry: Desk) -> None:
    planned = registry.plan("--cascade")
    shutil.rmtree(registry.derived)
    write(registry.derived, 1)
    write(registry.derived, 2)
    said = registry.call("rollback", "apply", planned.json["hash"])
    assert said.code == 4
    assert SAYS["recreated table"] in said.err
    assert ids(registry.derived) == [1, 2]


@pytest.mark.long
def test_an_append_only_table_takes_a_consent(registry: Desk) -> None:
    DeltaTable(str(registry.source)).alter.set_table_properties({"delta.appendOnly": "true"})
    said = registry.plan()
    assert said.code == 4
    blocked = by_name(said)["db.source"]["blocked_by"]
    assert {one["why"]: one["message"] for one in blocked}["append_only"] == SAYS["append-only table"]
    agreed = registry.apply("--consent", "append_only", "--consent", "collateral")
    assert agreed.code == 0 and ids(registry.source) == [1, 2]


def test_collateral_takes_a_consent_and_apply_says_which(registry: Desk) -> None:
    write(registry.derived, 5)
    planned = registry.plan("--cascade")
    assert planned.code == 4
    table = by_name(planned)["db.derived"]
    assert [one["version"] for one in table["collateral"]] == [2]
    said = registry.call("rollback", "apply", planned.json["hash"])
    assert said.code == 4
    assert SAYS["missing consent"] in said.err
    assert "--consent collateral" in said.err
    assert ids(registry.source) == [1, 2, 99]
    agreed = registry.apply("--cascade", "--consent", "collateral")
    assert agreed.code == 0 and ids(registry.derived) == [1, 2]


def test_an_owner_rolls_back_only_what_is_theirs(registry: Desk) -> None:
    me = real_user()
    registry.change_row("db.derived", owner="bob")
    registry.change_row("lakewarden.tables", properties={"admins": "root-of-all"})
    registry.change_row("db.source", owner=me)
    planned = registry.plan("--cascade")
    assert planned.code == 0, planned
    said = registry.call("rollback", "apply", planned.json["hash"])
    assert said.code == 5 and f"{me} {SAYS['a table of somebody else']}" in said.err
    registry.change_row("db.source", owner="bob")
    viewer = registry.plan()
    assert viewer.code == 5 and f"{me} may not roll back db.source" in viewer.err


def test_a_held_table_is_not_rewound(registry: Desk) -> None:
    assert registry.call("tables", "hold", "db.source", "--reason", "case 4711").code == 0
    said = registry.plan()
    assert said.code == 4
    assert by_name(said)["db.source"]["blocked_by"][0]["message"] == SAYS["legal hold"]


@pytest.mark.long
def test_a_stopped_undo_holds_its_tables_until_somebody_decides(registry: Desk) -> None:
    done = registry.apply("--cascade")
    assert done.code == 0, done
    rollback_id = done.json["rollback_id"]
    write(registry.derived, 5)
    stopped = registry.call("rollback", "undo", rollback_id)
    assert stopped.code == 4 and SAYS["undo after a write"] in stopped.err
    assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2, 99], [1, 2, 5]]
    vacuum = registry.call("jobs", "run", "db.source", "vacuum")
    assert vacuum.code == 4 and f"{SAYS['held table']} {rollback_id}" in vacuum.err
    left = registry.call("rollback", "undo", rollback_id, "--leave", "-o", "json")
    assert (left.code, left.json["state"]) == (0, "compensated"), left
    assert "db.derived" in left.json["message"]
    assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2, 99], [1, 2, 5]]
    assert registry.call("jobs", "run", "db.source", "properties").code == 0


def test_every_sentence_is_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "incident.md").read_text()
    assert [name for name, sentence in SAYS.items() if sentence not in page] == []


@pytest.mark.long
def test_without_cascade_the_answer_names_what_stays_bad_and_a_plan_waits_for_it(registry: Desk) -> None:
    further = registry.folder / "lake" / "further"
    derived = {registry.row("db.derived").table_id: registry.derived}
    write(further, 1, 2)
    write(further, 99, reads=derived)
    registry.register(further)
    planned = registry.plan()
    assert planned.code == 0, planned
    done = registry.call("rollback", "apply", planned.json["hash"])
    assert done.code == 0, done
    assert (
        "Left as they were, though they hold, or may hold, what was made of it: db.derived, db.further"
        in (done.err)
    )
    assert [ids(one) for one in (registry.source, registry.derived)] == [[1, 2], [1, 2, 99]]
    again = "lakewarden rollback plan db.source --bad 2 --cascade"
    assert again in done.err and "waits for the owners of db.derived, db.further" in done.err
    shown = registry.call("rollback", "show", planned.json["hash"], "-o", "json").json
    assert shown["left"] == ["db.derived", "db.further"]
    assert [one["command"] for one in shown["next_choices"]] == [again]
    listed = {one["state"]: one for one in registry.call("rollback", "list", "-o", "json").json}
    assert listed["done"]["left"] == ["db.derived", "db.further"]
    waits = listed["planned"]
    assert waits["tables"] == 2 and waits["left"] == []

    # The table in between is written anew: what was made of its bad rows is still known.
    overwrite(registry.derived, 8)
    assert registry.call("daemon", "--once").code == 0
    found = registry.call("tables", "list", "--finding", "reads_reverted", "-o", "json").json
    assert [one["name"] for one in found] == ["db.further"]
    message = registry.call("why", "db.further").err
    left = f"version 1 of db.derived, which rollback {planned.json['hash']} left as it was, with bad rows"
    assert left in message

    mends = shlex.split(again)[1:]
    fresh = registry.call(*mends, "-o", "json")
    assert fresh.code == 0, fresh
    assert {name: one["to"] for name, one in by_name(fresh).items() if one["step"] == "restore"} == {
        "db.further": 0
    }


@pytest.mark.long
def test_the_statement_says_what_it_leaves(registry: Desk) -> None:
    done = registry.call("sql", "ROLLBACK TABLE db.source TO VERSION 1", "-o", "json")
    assert done.code == 0 and done.json[0]["left"] == "db.derived", done
    waits = next(
        one for one in registry.call("rollback", "list", "-o", "json").json if one["state"] == "planned"
    )
    assert registry.call("rollback", "apply", waits["rollback_id"], "-o", "json").json["left"] == []
    assert ids(registry.derived) == [1, 2]
