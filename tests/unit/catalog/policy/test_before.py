"""What stood in a table's properties before us: remembered when we set them, given back when the table leaves."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable

from lakewarden.catalog.errors import ConflictError, ExecutionError
from lakewarden.catalog.formats.delta.retention import CLEANUP, FILES, LOG
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.lineage_record import (
    RUN_ID,
    LineageInput,
    LineageRecord,
    Operation,
    custom_metadata,
)
from lakewarden.catalog.model.rows import DELTA, TableRow, TableState
from lakewarden.catalog.policy.original_properties import (
    GiveBack,
    OriginalProperty,
    forgotten,
    give_back,
    is_leaving,
    kept_of,
    leaving,
    with_ours,
)
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import TABLES
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.engines.delta import rs_metadata
from lakewarden.jobs.runs.port import JobContext
from lakewarden.jobs.runs.properties_ledger import StoredLedger
from lakewarden.jobs.runs.properties_traced import traced
from lakewarden.jobs.worker.dispatch import execute
from support.builders.runs import Bench, delta_table
from support.builders.system_samples import NOW, table_row
from support.fakes.clock import ManualClock
from support.fakes.engine import FakeEngine

WANTED = ((FILES, "interval 7 days"), (LOG, "interval 30 days"), (CLEANUP, "false"))
USERS = {LOG: "interval 3 days", CLEANUP: "true", "their.own": "x"}


def row(**changes: object) -> TableRow:
    return replace(table_row(1), **changes)  # type: ignore[arg-type]  # a case gives what differs


# remembered


def test_what_was_set_and_what_was_not_are_told_apart() -> None:
    kept = kept_of(with_ours(row(), WANTED, USERS))
    assert kept == (
        OriginalProperty(name=FILES, before=None, ours=("interval 7 days",)),
        OriginalProperty(name=CLEANUP, before="true", ours=("false",)),
        OriginalProperty(name=LOG, before="interval 3 days", ours=("interval 30 days",)),
    )


def test_another_policy_changes_what_is_ours_and_not_what_was_before() -> None:
    first = with_ours(row(), WANTED, USERS)
    second = with_ours(first, ((LOG, "interval 90 days"),), {**USERS, **dict(WANTED)})
    [log] = [one for one in kept_of(second) if one.name == LOG]
    assert log == OriginalProperty(
        name=LOG, before="interval 3 days", ours=("interval 30 days", "interval 90 days")
    )


def test_what_a_user_set_after_us_is_what_stood_there_before_we_set_it_again() -> None:
    first = with_ours(row(), WANTED, USERS)
    second = with_ours(first, ((LOG, "interval 90 days"),), {LOG: "interval 60 days"})
    [log] = [one for one in kept_of(second) if one.name == LOG]
    assert log.before == "interval 60 days"


def test_other_properties_of_the_row_stay() -> None:
    before = row(properties={"note": "kept"})
    assert forgotten(leaving(with_ours(before, WANTED, {}), (), NOW.isoformat())) == before


# given back


def test_properties_go_back_to_what_they_were() -> None:
    kept = kept_of(with_ours(row(), WANTED, USERS))
    wanted = give_back(kept, {**USERS, **dict(WANTED)})
    assert wanted == GiveBack(sets=((CLEANUP, "true"), (LOG, "interval 3 days")), unsets=(FILES,))
    assert not give_back(kept, USERS)
    assert wanted.by_hand("db.t") == (
        f"ALTER TABLE db.t UNSET TBLPROPERTIES ('{FILES}'); "
        f"ALTER TABLE db.t SET TBLPROPERTIES ('{CLEANUP}' = 'true', '{LOG}' = 'interval 3 days');"
    )


def test_what_a_user_changed_after_us_stands() -> None:
    kept = kept_of(with_ours(row(), WANTED, {}))
    wanted = give_back(kept, {**dict(WANTED), LOG: "interval 365 days"})
    assert wanted.left == (LOG,) and set(wanted.unsets) == {FILES, CLEANUP}
    assert "left alone" in wanted.sentence


# on real tables


class Office:
    """A system store with one row, and runs on its table by the fake engine."""

    def __init__(self, folder: Path, **changes: object) -> None:
        self.bench = Bench()
        self.location = delta_table(folder / "t")
        self.store = DeltaSystemStore(canonical(str(folder / "system")), StorageOptions(), actor="tests")
        self.store.create(system_rows(self.store, now=NOW, actor="tests"))
        known = row(location=self.location, format_ids=(self.bench.seen(self.location).format_id,))
        self.put(replace(known, table_id=f"id of {self.location}", **changes))  # type: ignore[arg-type]  # a case gives what differs

    def put(self, changed: TableRow) -> None:
        self.store.edit(TABLES, lambda _: [changed], because="test")

    @property
    def row(self) -> TableRow:
        found = self.store.rows(TABLES).get(f"id of {self.location}")
        assert found is not None
        return found

    @property
    def ctx(self) -> JobContext:
        return replace(self.bench.context(self.location), ledger=StoredLedger(self.store))

    def user_sets(self, **properties: str) -> None:
        DeltaTable(self.location).alter.set_table_properties(properties, raise_if_not_exists=False)

    def we_set(self, **changes: str) -> None:
        wanted = tuple({**dict(WANTED), **changes}.items())
        execute(self.ctx, SetProperties(requires=Head(self.head), properties=wanted, lowers=(LOG, FILES)))

    def drop(self) -> None:
        gone = replace(self.row, state=TableState.DROPPED)
        self.put(leaving(gone, kept_of(gone), NOW.isoformat()))

    @property
    def head(self) -> int:
        return DeltaTable(self.location).version()

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.bench.seen(self.location).properties)


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


BACK = SetProperties(gives_back=True)


def test_a_table_gets_back_what_it_had(office: Office) -> None:
    office.user_sets(**{LOG: "interval 3 days", "their.own": "x"})
    before = office.properties
    office.we_set()
    assert office.properties == {**before, **dict(WANTED)}
    office.drop()
    report = execute(office.ctx, BACK)
    assert office.properties == before
    assert report.committed_version == office.head and "given back" in report.message
    assert DeltaTable(office.location).to_pyarrow_table().num_rows == 10
    version = office.head
    assert execute(office.ctx, BACK).skipped and office.head == version


def test_what_stood_there_is_written_down_before_our_commit(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rs_metadata, "set_properties", lambda *_, **__: pytest.fail("too early"))

    class DiedError(Exception):
        pass

    def die(point: str) -> None:
        if point == "properties.decided":
            raise DiedError

    monkeypatch.setattr("lakewarden.jobs.executors.properties.reach", die)
    with pytest.raises(DiedError):
        office.we_set()
    assert {one.name for one in kept_of(office.row)} == {FILES, LOG, CLEANUP}
    assert office.row.updated_at == table_row(1).updated_at, "the table is judged by nothing else than before"


def test_a_writer_in_between_only_makes_it_look_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.we_set()
    office.drop()
    pending = [1, 1]

    def write(point: str) -> None:
        if point == "give_back.decided" and pending:
            pending.pop()
            office.user_sets(**{f"written.{len(pending)}": "yes"})

    monkeypatch.setattr("lakewarden.jobs.executors.give_back.reach", write)
    execute(office.ctx, BACK)
    assert office.properties == {"written.0": "yes", "written.1": "yes"}


def test_writers_that_are_always_faster_win(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.we_set()
    office.drop()
    monkeypatch.setattr(
        "lakewarden.jobs.executors.give_back.reach", lambda _: office.user_sets(n=str(office.head))
    )
    with pytest.raises(ConflictError, match="written all the time"):
        execute(office.ctx, BACK)


class FailsAfterwards(FakeEngine):
    """Like Spark on a table with an interval that is none: the commit is made, what comes after it fails."""

    commits = True

    def unset_properties(self, location: str, *, requires: Head, names: Sequence[str], run_id: str) -> int:
        if self.commits:
            super().unset_properties(location, requires=requires, names=names, run_id=run_id)
        raise ExecutionError("'soon' is no interval.")


def test_what_was_committed_counts_although_the_engine_failed_after_it(office: Office) -> None:
    office.we_set()
    office.drop()
    engine = FailsAfterwards(ManualClock(NOW))
    report = execute(replace(office.ctx, engine=engine), BACK)
    assert office.properties == {}
    assert report.committed_version == office.head and "given back" in report.message


def test_what_was_not_committed_is_a_failure(office: Office) -> None:
    office.we_set()
    office.drop()
    engine = FailsAfterwards(ManualClock(NOW))
    engine.commits = False
    with pytest.raises(ExecutionError):
        execute(replace(office.ctx, engine=engine), BACK)
    assert office.properties == dict(WANTED)


def test_a_table_that_came_back_keeps_our_properties(office: Office) -> None:
    office.we_set()
    assert execute(office.ctx, BACK).skipped
    assert office.properties == dict(WANTED)


def test_a_table_made_anew_at_the_place_keeps_what_equals_ours(office: Office, tmp_path: Path) -> None:
    office.we_set()
    office.drop()
    shutil.rmtree(tmp_path / "t")
    delta_table(tmp_path / "t")
    office.user_sets(**{CLEANUP: "false"})
    version = office.head
    report = execute(office.ctx, BACK)
    assert report.skipped and "another table" in report.message
    assert office.properties == {CLEANUP: "false"} and office.head == version


def test_given_back_and_taken_under_management_again_it_is_remembered_anew(office: Office) -> None:
    office.we_set()
    office.drop()
    execute(office.ctx, BACK)
    office.put(replace(forgotten(office.row), state=TableState.ACTIVE))
    office.user_sets(**{LOG: "interval 3 days"})
    office.we_set()
    office.drop()
    execute(office.ctx, BACK)
    assert office.properties == {LOG: "interval 3 days"}


# managed before rows remembered anything


def legacy(office: Office) -> None:
    """Our commits as they were: with a run id, and nothing in the row."""
    for value in ("interval 30 days", "interval 60 days"):
        DeltaTable(office.location).alter.set_table_properties(
            {**dict(WANTED), LOG: value},
            commit_properties=CommitProperties(custom_metadata={RUN_ID: "old-run"}),
            raise_if_not_exists=False,
        )


def test_the_log_tells_what_stood_there_before_our_first_commit(office: Office) -> None:
    office.user_sets(**{LOG: "interval 3 days"})
    legacy(office)
    assert told(office, LOG, FILES) == (
        OriginalProperty(name=LOG, before="interval 3 days", ours=("interval 30 days", "interval 60 days")),
        OriginalProperty(name=FILES, before=None, ours=("interval 7 days",)),
    )


def test_files_that_a_rollback_takes_out_take_no_properties_along(office: Office) -> None:
    office.user_sets(**{LOG: "interval 3 days"})
    legacy(office)
    read = LineageInput(table_id="t1", location=office.location, format=DELTA, version=0)
    record = LineageRecord(
        run_id="rollback-x-1", operation=Operation.REMOVE_FILES, user="ana", inputs=(read,)
    )
    DeltaTable(office.location).delete(
        commit_properties=CommitProperties(custom_metadata=custom_metadata(record))
    )
    assert told(office, LOG) == (
        OriginalProperty(name=LOG, before="interval 3 days", ours=("interval 30 days", "interval 60 days")),
    )


def test_setting_again_after_an_upgrade_remembers_the_users_value_and_not_our_own(office: Office) -> None:
    office.user_sets(**{LOG: "interval 3 days"})
    legacy(office)
    office.we_set(**{LOG: "interval 90 days"})
    [log] = [one for one in kept_of(office.row) if one.name == LOG]
    assert log.before == "interval 3 days"


def test_commits_of_rollbacks_and_of_users_are_not_taken_for_ours(office: Office) -> None:
    office.user_sets(**dict(WANTED))
    DeltaTable(office.location).alter.set_table_properties(
        dict(WANTED),
        commit_properties=CommitProperties(custom_metadata={RUN_ID: "rollback-x-1"}),
        raise_if_not_exists=False,
    )
    assert told(office, LOG) == ()


# given back already, and managed again


def given_back_and_managed_again(office: Office) -> None:
    """Its row has forgotten: nothing of ours was left."""
    office.we_set()
    office.drop()
    execute(office.ctx, BACK)
    office.put(replace(forgotten(office.row), state=TableState.ACTIVE))


def told(office: Office, *names: str) -> tuple[OriginalProperty, ...]:
    """What the log tells of properties as they stand."""
    return traced(office.bench.reader, office.location, {one: office.properties[one] for one in names})


def test_what_its_owner_set_after_it_had_left_is_the_owners_whatever_we_had_set_once(office: Office) -> None:
    given_back_and_managed_again(office)
    office.user_sets(**{CLEANUP: "false", LOG: "interval 365 days"})
    assert told(office, CLEANUP, LOG) == (
        OriginalProperty(name=CLEANUP, before="false", ours=()),
        OriginalProperty(name=LOG, before="interval 365 days", ours=()),
    )
    office.we_set()
    office.drop()
    execute(office.ctx, BACK)
    assert office.properties == {CLEANUP: "false", LOG: "interval 365 days"}


def test_a_restore_to_a_version_with_ours_brings_ours_back(office: Office) -> None:
    given_back_and_managed_again(office)
    DeltaTable(office.location).restore(1)
    assert office.properties == dict(WANTED)
    assert told(office, CLEANUP) == (OriginalProperty(name=CLEANUP, before=None, ours=("false",)),)


def test_a_restore_to_a_version_before_ours_brings_the_owners_back(office: Office) -> None:
    office.user_sets(**{CLEANUP: "false"})
    office.we_set(**{CLEANUP: "true"})
    DeltaTable(office.location).restore(1)
    assert told(office, CLEANUP) == (OriginalProperty(name=CLEANUP, before="false", ours=()),)


def test_only_a_table_that_leaves_is_leaving(office: Office) -> None:
    office.we_set()
    assert not is_leaving(office.row)
    office.drop()
    assert is_leaving(office.row)
