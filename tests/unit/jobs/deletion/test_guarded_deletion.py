"""What a deletion asks anew while it is under way: on folders with real files, without Spark."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from threading import get_ident

import pytest

from lakewarden.catalog.errors import ConflictError, PreconditionError, RevokedError
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.delta.segment import LogListing
from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE, Look
from lakewarden.catalog.formats.port import Head, Observation
from lakewarden.catalog.model.rows import DELTA, RowKind, Source, TableRow, TableState
from lakewarden.catalog.storage.file_store import FileEntry, canonical, open_store
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.deletion import batches
from lakewarden.jobs.deletion.file_places import FilePlaces
from lakewarden.jobs.deletion.folder_readers import FolderReaders
from lakewarden.jobs.deletion.unneeded import Unneeded
from lakewarden.jobs.executors.vacuum import vacuum
from lakewarden.jobs.runs.meanwhile import Meanwhile
from lakewarden.jobs.runs.port import JobContext
from support.builders.maintenance import (
    NOW,
    AskedEngine,
    ValueReader,
    commit,
    context,
    data_file,
    seen,
    tombstone,
)
from support.builders.runs import delta_table

WEEK = 7 * 86_400
HISTORY = [commit(0, 30), commit(1, 20), commit(2, 10), commit(3, 1)]
TEN = [f"old-{number}" for number in range(10)]


@dataclass
class ScriptedGuard:
    """A guard that does something at each asking, and knows who else reads the folder."""

    at: dict[int, Callable[[], None]] = field(default_factory=dict)
    readers: tuple[TableRow, ...] = ()
    swept: tuple[tuple[TableRow, int | None], ...] = ()
    asked: int = 0

    def confirm(self) -> None:
        """The run is ours all along."""

    def ask(self, table_id: str, name: str, location: str) -> None:
        self.asked += 1
        self.at.get(self.asked, lambda: None)()

    def readers_of(self, location: str) -> tuple[TableRow, ...]:
        return self.readers

    def moved(self, look: Look) -> tuple[TableRow, ...]:
        found = (look(row, version, None) for row, version in self.swept)
        return tuple(row for row in found if row is not None)


@dataclass
class Place:
    """A table of ten removed files and a live one, vacuumed two files at a time."""

    folder: Path
    guard: ScriptedGuard = field(default_factory=ScriptedGuard)

    def __post_init__(self) -> None:
        for name in (*TEN, "live"):
            self.made(name)
        head = seen(self.location, 3, committed_at=HISTORY[-1].committed_at, files=100, bytes=10_000)
        self.reader = ValueReader(
            observation=head,
            history=list(HISTORY),
            removed=[tombstone(name, 1, 20) for name in TEN],
            live=[data_file("live", 10)],
        )
        self.engine = AskedEngine()

    @property
    def location(self) -> str:
        return canonical(str(self.folder))

    @property
    def left(self) -> list[str]:
        return [name for name in TEN if (self.folder / name).exists()]

    def made(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"0123456789")
        moment = (NOW - timedelta(days=30)).timestamp()
        os.utime(path, (moment, moment))
        return path

    def ctx(self) -> JobContext:
        return replace(context(str(self.folder), self.reader, self.engine), guard=self.guard)

    def vacuum(self, **changes: object) -> str:
        action = {"requires": Head(3), "retention_seconds": WEEK, "max_share": 1.0} | changes
        return vacuum(self.ctx(), Vacuum(**action)).message  # type: ignore[arg-type]  # by name


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(batches, "BATCH", 2)
    return Place(tmp_path / "t")


def refuse() -> None:
    raise RevokedError("db.t is under legal hold (case 4711); the vacuum stopped there.")


def test_what_is_forbidden_meanwhile_ends_the_deletion_at_the_next_batch(place: Place) -> None:
    place.guard.at = {5: refuse}  # twice before anything goes, then before and after the look at each batch
    with pytest.raises(RevokedError, match="legal hold"):
        place.vacuum()
    assert len(place.left) == 8


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_what_is_forbidden_while_a_batch_is_looked_at_deletes_nothing_of_it(
    place: Place, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tables and the folder may take long to be looked at."""
    look, looks = Unneeded.still, list[object]()

    def still(unneeded: Unneeded, files: Sequence[FileEntry]) -> tuple[FileEntry, ...]:
        looks.append(files)
        if len(looks) == batch:
            place.guard.at = {place.guard.asked + 1: refuse}
        return look(unneeded, files)

    monkeypatch.setattr(Unneeded, "still", still)
    with pytest.raises(RevokedError, match="legal hold"):
        place.vacuum()
    assert len(place.left) == 12 - 2 * batch


def test_what_a_commit_brings_back_while_other_tables_are_looked_at_stays(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = FolderReaders.now

    def slow(readers: FolderReaders) -> tuple[TableRow, ...]:
        found = now(readers)
        if readers.ctx.guard is place.guard and place.guard.asked == 3:
            place.reader.history = [*HISTORY, commit(4, 0)]
            place.reader.added = {4: [data_file(name, 10) for name in TEN[:3]]}
        return found

    monkeypatch.setattr(FolderReaders, "now", slow)
    assert "deleted 7 files" in place.vacuum()
    assert place.left == TEN[:3]


def test_what_is_forbidden_before_the_first_batch_deletes_nothing_and_says_nothing_in_the_log(
    place: Place,
) -> None:
    place.guard.at = {1: refuse}
    with pytest.raises(RevokedError):
        place.vacuum()
    assert (len(place.left), place.engine.asked) == (10, [])


def test_a_claim_that_is_over_stops_between_two_files(place: Place) -> None:
    """As a process finds it that wakes inside of a batch: its own clock says that the lease has ended."""
    calls = iter(range(1_000))
    limit = 7  # five askings before the first file, then one each

    def over() -> None:
        if next(calls) >= limit:
            raise ConflictError("The run's lease was lost.")

    with pytest.raises(ConflictError, match="lease was lost"):
        vacuum(
            replace(place.ctx(), still_ours=over),
            Vacuum(requires=Head(3), retention_seconds=WEEK, max_share=1.0),
        )
    assert 7 <= len(place.left) < 10


@pytest.mark.parametrize("full", [False, True], ids=["by the log", "by a listing"])
@pytest.mark.parametrize("asking", [4, 5], ids=["before its batch", "within it"])
def test_a_file_that_is_touched_since_it_was_listed_stays(place: Place, full: bool, asking: int) -> None:
    place.engine.listed = list(TEN)
    if asking == 4:
        place.guard.at = {4: lambda: (place.folder / TEN[-1]).touch()}
        said = place.vacuum(full=full)
    else:
        files = iter(range(1_000))

        def between_two_files() -> None:
            if next(files) == 12:
                (place.folder / TEN[-1]).write_bytes(b"somebody else wrote this")

        action = Vacuum(requires=Head(3), retention_seconds=WEEK, max_share=1.0, full=full)
        said = vacuum(replace(place.ctx(), still_ours=between_two_files), action).message
    assert "deleted 9 files" in said and "1 file came to be needed again, or was touched meanwhile" in said
    assert place.left == [TEN[-1]]


def test_files_that_a_commit_brings_back_meanwhile_stay(place: Place) -> None:
    def restore() -> None:
        place.reader.history = [*HISTORY, commit(4, 0)]
        place.reader.added = {4: [data_file(TEN[-1], 10), data_file(TEN[0], 10)]}

    place.guard.at = {4: restore}  # the first batch has gone
    assert "deleted 9 files" in place.vacuum()
    assert place.left == [TEN[-1]]


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([commit(0, 1)], id="a new log at the same place"),
        pytest.param([*HISTORY[:3], commit(3, 0.5)], id="a copy with another last commit"),
        pytest.param(
            [*HISTORY, replace(commit(4, 0), format_id="another")], id="created or replaced in the same log"
        ),
    ],
)
def test_a_table_that_is_replaced_meanwhile_loses_nothing_more(place: Place, history: list[object]) -> None:
    def replaced() -> None:
        place.reader.history = history  # type: ignore[assignment]  # commits

    place.guard.at = {4: replaced}
    with pytest.raises(ConflictError, match="made anew"):
        place.vacuum()
    assert len(place.left) == 8


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"properties": {"delta.deletedFileRetentionDuration": "interval 365 days"}}, "keep more by now"),
        ({"properties": {"delta.deletedFileRetentionDuration": "for ever"}}, "is not a duration"),
        (
            {"capabilities": replace(seen("file:///t", 3).capabilities, unsupported=("later",))},
            "uses later by now",
        ),
    ],
)
def test_what_the_owner_sets_meanwhile_counts_at_the_next_batch(
    place: Place, terms: dict[str, object], why: str
) -> None:
    def change() -> None:
        place.reader.history = [*HISTORY, replace(commit(4, 0), redefines=True)]
        place.reader.observation = replace(place.reader.observation, version=4, **terms)  # type: ignore[arg-type]

    place.guard.at = {4: change}
    with pytest.raises((ConflictError, PreconditionError), match=why):
        place.vacuum()
    assert len(place.left) == 8


def test_a_rollback_that_needs_older_versions_by_now_stops_it(place: Place) -> None:
    class Needs:
        needed: int | None = None

        def needed_version(self, table_id: str) -> int | None:
            return self.needed

    needs = Needs()

    def begin() -> None:
        needs.needed = 0

    place.guard.at = {4: begin}
    with pytest.raises(ConflictError, match="needs version 0 by now"):
        vacuum(
            replace(place.ctx(), rollbacks=needs),  # type: ignore[arg-type]  # only this is asked
            Vacuum(requires=Head(3), retention_seconds=WEEK, max_share=1.0),
        )
    assert len(place.left) == 8


def clone_row(location: str, elsewhere: str) -> TableRow:
    return TableRow(
        row=9,
        table_id="clone",
        kind=RowKind.TABLE,
        name="db.clone",
        format=DELTA,
        location=location,
        source=Source.REGISTER,
        registered_at=NOW,
        registered_by="ana",
        updated_at=NOW,
        updated_by="ana",
        properties={READS_ELSEWHERE: elsewhere},
    )


def test_what_a_registered_shallow_clone_names_stays(place: Place, tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    place.guard.readers = (clone_row(canonical(str(tmp_path / "clone")), place.location),)
    named = [data_file(f"{place.folder}/{name}", 10) for name in TEN[:3]]
    place.reader.elsewhere = {canonical(str(tmp_path / "clone")): named}
    assert "deleted 7 files" in place.vacuum()
    assert place.left == TEN[:3]


def test_what_a_table_names_that_became_a_clone_since_the_last_sweep_stays(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "clone").mkdir()
    clone = canonical(str(tmp_path / "clone"))
    place.guard.swept = ((clone_row(clone, ""), 0),)
    named = [data_file(f"{place.folder}/{name}", 10) for name in TEN[:3]]
    place.reader.elsewhere = {clone: named}
    assert "deleted 7 files" in place.vacuum()
    assert place.left == TEN[:3]


def test_a_clone_that_cannot_be_read_stops_the_vacuum(place: Place, tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    place.guard.readers = (clone_row(canonical(str(tmp_path / "clone")), place.location),)
    place.reader.broken = {canonical(str(tmp_path / "clone"))}
    with pytest.raises(PreconditionError, match="db.clone reads files of db.t"):
        place.vacuum()
    assert len(place.left) == 10


def test_a_dropped_clone_whose_disk_is_away_stops_the_vacuum_and_one_that_is_gone_does_not(
    place: Place, tmp_path: Path
) -> None:
    away = tmp_path / "mount" / "clone"
    away.parent.mkdir()
    dropped = replace(clone_row(canonical(str(away)), place.location), state=TableState.DROPPED)
    place.guard.readers = (dropped,)
    place.reader.broken = {canonical(str(away))}
    with pytest.raises(PreconditionError, match="db.clone reads files of db.t"):
        place.vacuum()
    assert len(place.left) == 10
    (away.parent / "another").mkdir()  # the mount answers, and the clone is not there
    assert "deleted 10 files" in place.vacuum()


def test_a_managed_clone_that_is_gone_may_have_moved_and_stops_the_vacuum_until_it_is_dropped(
    place: Place, tmp_path: Path
) -> None:
    gone = clone_row(canonical(str(tmp_path / "clone")), place.location)
    place.guard.readers = (gone,)
    place.reader.broken = {gone.location or ""}
    with pytest.raises(PreconditionError, match="db.clone reads files of db.t") as stopped:
        place.vacuum()
    assert "drop" in (stopped.value.hint or "") and "register" in (stopped.value.hint or "")
    assert len(place.left) == 10
    place.guard.readers = (replace(gone, state=TableState.DROPPED),)
    assert "deleted 10 files" in place.vacuum()


def unlooked(row: TableRow) -> TableRow:
    """As a lakewarden left it that did not ask where a table's files lie."""
    return replace(row, properties={})


def test_a_table_that_nobody_has_looked_at_is_looked_at_before_anything_goes(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "clone").mkdir()
    clone = canonical(str(tmp_path / "clone"))
    place.guard.readers = (unlooked(clone_row(clone, "")),)
    place.reader.elsewhere = {clone: [data_file(f"{place.folder}/{name}", 10) for name in TEN[:3]]}
    assert "deleted 7 files" in place.vacuum()
    assert place.left == TEN[:3]


def test_one_that_turns_out_to_read_nothing_here_keeps_nothing(place: Place, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    place.guard.readers = (unlooked(clone_row(canonical(str(tmp_path / "other")), "")),)
    place.reader.elsewhere = {canonical(str(tmp_path / "other")): []}
    assert "deleted 10 files" in place.vacuum()


def test_one_that_cannot_be_seen_and_that_nobody_has_looked_at_stops_the_vacuum(
    place: Place, tmp_path: Path
) -> None:
    away = tmp_path / "mount" / "clone"
    away.parent.mkdir()
    place.guard.readers = (unlooked(clone_row(canonical(str(away)), "")),)
    place.reader.broken = {canonical(str(away))}
    with pytest.raises(PreconditionError, match="db.clone may read files of db.t: nobody has looked yet"):
        place.vacuum()
    assert len(place.left) == 10
    (away.parent / "another").mkdir()  # the mount answers, and the table is not there
    assert "deleted 10 files" in place.vacuum()


def test_a_clone_that_is_registered_meanwhile_stops_it(place: Place, tmp_path: Path) -> None:
    def registered() -> None:
        place.guard.readers = (clone_row(canonical(str(tmp_path / "clone")), place.location),)

    place.guard.at = {4: registered}
    with pytest.raises(ConflictError, match="not those of before"):
        place.vacuum()
    assert len(place.left) == 8


@pytest.mark.parametrize("full", [False, True], ids=["by the log", "by a listing"])
def test_a_live_file_named_through_a_link_stays(place: Place, tmp_path: Path, full: bool) -> None:
    (tmp_path / "link").symlink_to(place.folder)
    place.reader.live = [
        data_file(f"{tmp_path}/link/{TEN[0]}", 10),
        data_file(f"file:{tmp_path}/link/{TEN[1]}", 10),
    ]
    place.engine.listed = TEN
    assert "deleted 8 files" in place.vacuum(full=full)
    assert place.left == TEN[:2]


def test_a_listing_does_not_follow_links_out_of_the_folder_or_to_live_files(
    place: Place, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x")
    os.utime(outside / "precious", (1_600_000_000, 1_600_000_000))
    place.made("inner/live-2")
    (place.folder / "out").symlink_to(outside)
    (place.folder / "alias").symlink_to(place.folder / "inner")
    place.reader.live = [data_file("live", 10), data_file("inner/live-2", 10)]
    place.reader.removed = []
    place.engine.listed = ["out/precious", "alias/live-2"]
    assert "nothing can go" in place.vacuum(full=True)
    assert (outside / "precious").exists() and (place.folder / "inner" / "live-2").exists()


@pytest.mark.parametrize(
    ("location", "path", "place_of_it"),
    [
        ("hdfs://nn1:9000/t", "p=1/a", "hdfs://nn1:9000/t/p=1/a"),
        ("hdfs://nn1:9000/t", "/u/a", "hdfs://nn1:9000/u/a"),
        ("hdfs://nn1:9000/t", "hdfs://nn1:9000/t/a%20b", "hdfs://nn1:9000/t/a%20b"),
        ("s3://bucket/t", "s3a://bucket/t/a", "s3://bucket/t/a"),
        ("s3://bucket/t", "s3://other/t/a", "s3://other/t/a"),
        ("hdfs://nn1:9000/t", "s3://bucket/a", "s3://bucket/a"),
        ("abfs://c@a.dfs.x/t", "wasbs://c@a.blob.x/t/a", "abfs://c@a.dfs.x/t/a"),
    ],
)
def test_names_of_one_file_are_one_place(location: str, path: str, place_of_it: str) -> None:
    assert FilePlaces(location).of(path) == place_of_it


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("hdfs://nn1:9000/t", "hdfs://nameservice/t/a"),
        ("abfs://box@acc.dfs.core.windows.net/t", "az://box/t/a"),
    ],
)
def test_two_names_that_may_mean_one_storage_are_no_places(location: str, path: str) -> None:
    with pytest.raises(PreconditionError, match="cannot be told"):
        FilePlaces(location).of(path)


def test_a_listing_is_refused_where_a_live_file_cannot_be_placed(place: Place) -> None:
    seen_at = seen("hdfs://nn1:9000/t", 3, committed_at=HISTORY[-1].committed_at)
    unneeded = Unneeded(
        ctx=place.ctx(),
        others=FolderReaders(ctx=place.ctx()),
        store=open_store(place.location),
        seen=seen_at,
        oldest_version=2,
        places=FilePlaces("hdfs://nn1:9000/t"),
        candidates={},
        meanwhile=Meanwhile.since(place.ctx(), seen_at, kept=timedelta(0), keeps=lambda *_: timedelta(0)),
    )
    unneeded.keep(["hdfs://nameservice/t/a"])  # by the log: its own removals do not name it
    with pytest.raises(PreconditionError, match="cannot be told"):
        unneeded.keep(["hdfs://nameservice/t/a"], strict=True)


@pytest.mark.parametrize(
    "sign",
    ["_delta_log/00000000000000000000.json", ".hoodie/hoodie.properties", "metadata/v1.metadata.json"],
)
@pytest.mark.parametrize("full", [False, True], ids=["by the log", "by a listing"])
def test_it_stays_out_of_tables_inside_the_folder_and_says_so(place: Place, sign: str, full: bool) -> None:
    place.made(f"exports/mine/{sign}")
    place.made("exports/mine/data-1")
    place.engine.listed = [*TEN, "exports/mine/data-1", f"exports/mine/{sign}"]
    place.reader.removed = [*place.reader.removed, tombstone("exports/mine/data-1", 1, 20)]
    said = place.vacuum(full=full)
    assert said.endswith("; stayed out of 1 table inside its folder: exports/mine")
    assert place.left == [] and (place.folder / "exports/mine/data-1").exists()


def test_a_table_that_comes_into_the_folder_meanwhile_is_left_alone(place: Place) -> None:
    place.made("sub/old-a")
    place.made("sub/old-b")
    place.reader.removed = [
        tombstone("sub/old-a", 1, 20),
        tombstone("sub/old-b", 1, 20),
        *place.reader.removed,
    ]

    def come() -> None:
        place.made("sub/_delta_log/00000000000000000000.json")

    place.guard.at = {3: come}
    assert "deleted 10 files" in place.vacuum()
    assert (place.folder / "sub/old-a").exists() and (place.folder / "sub/old-b").exists()


@pytest.mark.parametrize("sign", [".hoodie/hoodie.properties", "metadata/v1.metadata.json"])
@pytest.mark.parametrize("full", [False, True], ids=["by the log", "by a listing"])
def test_a_folder_that_is_another_formats_table_too_is_left_alone(
    place: Place, sign: str, full: bool
) -> None:
    place.engine.listed = list(TEN)

    def come() -> None:
        place.made(sign)

    place.guard.at = {3: come}
    with pytest.raises(PreconditionError, match=r"is that of a table of (Hudi|Iceberg), too"):
        place.vacuum(full=full)
    assert len(place.left) == 10
    with pytest.raises(PreconditionError, match="what one of them deletes, the other may need"):
        place.vacuum(full=full, dry_run=True)
    mirror, other = ("hudi", "iceberg") if "hoodie" in sign else ("iceberg", "hudi")
    for formats in ("", other):
        keep_as_well(place, formats)
        with pytest.raises(PreconditionError, match="what one of them deletes, the other may need"):
            place.vacuum(full=full)
    assert len(place.left) == 10
    keep_as_well(place, f"{other}, {mirror}" if full else mirror)
    place.vacuum(full=full)
    assert place.left == [], "its own engine keeps that metadata"


def keep_as_well(place: Place, formats: str) -> None:
    """The table's own engine keeps metadata of these formats beside it."""
    head = place.reader.observation
    assert isinstance(head, Observation)
    mirrored = {"delta.universalFormat.enabledFormats": formats}
    place.reader.observation = replace(head, properties={**head.properties, **mirrored})


def test_the_log_is_listed_once_before_each_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = delta_table(tmp_path / "t", commits=3)
    reader, store, listings = DeltaReader(), open_store(location), list[str]()
    head = reader.observe(location)
    assert isinstance(head, Observation)
    ctx = replace(context(str(tmp_path / "t"), ValueReader(observation=head), AskedEngine()), reader=reader)
    batch = [store.stat("_delta_log/00000000000000000000.json")]
    unneeded = Unneeded.among(ctx, store, head, batch, oldest=0, retention=timedelta(0))
    whole, later, here = DeltaLog.listing, DeltaLog.listing_after, get_ident()

    def listed(log: DeltaLog) -> LogListing:
        if get_ident() == here:  # looks that other tests have left under way are in threads of their own
            listings.append("whole")
        return whole(log)

    def listed_after(log: DeltaLog, version: int) -> LogListing:
        if get_ident() == here:
            listings.append(f"after {version}")
        return later(log, version)

    monkeypatch.setattr(DeltaLog, "listing", listed)
    monkeypatch.setattr(DeltaLog, "listing_after", listed_after)
    assert unneeded.still(batch) == tuple(batch)
    assert listings == ["after 1"]
    delta_table(tmp_path / "t", commits=2)
    assert unneeded.still(batch) == tuple(batch)
    assert (listings, unneeded.meanwhile.version) == (["after 1", "after 1"], 4)
