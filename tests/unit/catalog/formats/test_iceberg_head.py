"""Which metadata file of an Iceberg table is head's, and how a head is told from another."""

from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.formats.spec import CatalogHead
from lakewarden.catalog.storage.file_store import canonical
from support.builders.iceberg_tables import IcebergWriter


@pytest.fixture
def table(tmp_path: Path) -> IcebergWriter:
    made = IcebergWriter(root=tmp_path / "t")
    made.commit(add=(("a.parquet", 100),))
    made.commit(add=(("b.parquet", 100),))
    return made


def location(table: IcebergWriter) -> str:
    return canonical(str(table.root))


def seen(table: IcebergWriter, reader: IcebergReader | None = None) -> Observation:
    found = (reader or IcebergReader()).observe(location(table))
    assert isinstance(found, Observation)
    return found


def problem(table: IcebergWriter) -> tuple[str, str]:
    found = IcebergReader().observe(location(table))
    assert isinstance(found, LogProblem)
    return found.check, found.message


@pytest.mark.parametrize(
    "name",
    [
        "00003-0e6b0d52-3b7c-4b3f-9d65-6a3f1f2b7c11.metadata.json",
        "0e6b0d52.metadata.json",
        "v4.metadata.json",
    ],
    ids=["a catalog's name", "a commit on its way", "beyond a gap"],
)
def test_metadata_that_no_pointer_names_is_never_head(table: IcebergWriter, name: str) -> None:
    other = replace(table, properties={"mine": "no"}, number=20, snapshots=[], current=None)
    other.publish(hint=False)
    other.head.rename(table.metadata / name)
    assert (seen(table).version, seen(table).properties) == (2, {})


def test_a_head_is_told_by_the_last_move_whatever_the_clocks_of_writers_said(table: IcebergWriter) -> None:
    """As Iceberg's library has it, for which the times in a log may go back by a minute."""
    table.now -= timedelta(seconds=90)
    table.commit(add=(("c.parquet", 100),))
    told = [one["timestamp-ms"] for one in table.moves]
    assert told[-1] < told[-2] and f"@{told[-1]}@" in seen(table).head


def test_a_commit_whose_writer_died_before_it_wrote_the_hint_is_head(table: IcebergWriter) -> None:
    table.commit(add=(("c.parquet", 100),))
    table.point(2)
    assert seen(table).version == 3, "as for Spark: the rename is the commit"
    table.point(1)
    assert seen(table).version == 3


def test_writers_that_number_nothing_name_the_file(table: IcebergWriter) -> None:
    named = table.head.rename(table.metadata / "00002-6f1c.metadata.json")
    for hint in ("00002-6f1c", named.name):
        table.point(hint)
        assert seen(table).version == 2


def test_packed_metadata_is_read(tmp_path: Path) -> None:
    made = IcebergWriter(root=tmp_path / "t", packed=True)
    made.commit(add=(("a.parquet", 100),))
    made.commit()
    assert (seen(made).version, made.head.name) == (2, "v2.gz.metadata.json")


@pytest.mark.parametrize(
    ("hint", "check", "said"),
    [
        ("7", "log_contiguous", "metadata/v7.metadata.json is missing, which metadata/version-hint.text names."),
        ("0a-b", "log_contiguous", "metadata/0a-b.metadata.json is missing, which metadata/version-hint.text names."),
        ("", "log_readable", "metadata/version-hint.text cannot be understood."),
        ("../../x", "log_readable", "metadata/version-hint.text cannot be understood."),
        ("é", "log_readable", "metadata/version-hint.text cannot be understood."),
    ],
    ids=["no such number", "no such name", "empty", "a way out", "no ASCII"],
)  # fmt: skip
def test_a_pointer_to_nothing_is_one_sentence(table: IcebergWriter, hint: str, check: str, said: str) -> None:
    table.point(hint)
    assert problem(table) == (check, said)
    assert IcebergReader().probe(location(table), seen=2).exists


def test_of_a_number_that_two_files_have_the_plain_one_is_head_as_for_engines(table: IcebergWriter) -> None:
    """A change of `write.metadata.compression-codec` beside a commit leaves both."""
    other = replace(table, properties={"mine": "no"}, number=1, snapshots=[], current=None, packed=True)
    other.publish()
    assert {one.name for one in table.metadata.glob("v2.*")} == {"v2.metadata.json", "v2.gz.metadata.json"}
    assert (seen(table).version, seen(table).properties) == (2, {})
    table.head.unlink()
    other.head.rename(table.metadata / "v2.metadata.json.gz")
    other.publish(hint=False)
    other.head.rename(table.metadata / "v2.gz.metadata.json")
    assert seen(table).head.endswith("v2.gz.metadata.json")


def test_while_the_pointer_is_written_anew_head_has_the_largest_number_as_for_engines(
    table: IcebergWriter,
) -> None:
    """Hadoop's writers delete it first; one may be killed there."""
    reader, before = IcebergReader(), seen(table)
    (table.metadata / "0e6b0d52-3b7c-4b3f-9d65-6a3f1f2b7c11.metadata.json").write_text("on its way")
    (table.metadata / "version-hint.text").unlink()
    assert seen(table).head == before.head
    for number in range(3, 12):
        table.commit(add=((f"{number}.parquet", 100),))
        (table.metadata / "version-hint.text").unlink()
    assert (table.head.name, seen(table, reader).version) == ("v11.metadata.json", 11)
    assert reader.probe(location(table), seen=2, head=before.head).latest == 11


@pytest.mark.parametrize(
    "left", [(), ("v1.metadata.json", "v2.metadata.json")], ids=["alone", "beside numbers"]
)
@pytest.mark.parametrize(
    "name",
    [
        "00002-0e6b0d52-3b7c-4b3f-9d65-6a3f1f2b7c11.metadata.json",
        "00002-0e6b0d52-3b7c-4b3f-9d65-6a3f1f2b7c11.gz.metadata.json",
        "mine.metadata.json",
    ],
)
def test_without_a_pointer_a_catalogs_file_is_never_head(
    table: IcebergWriter, name: str, left: tuple[str, ...]
) -> None:
    (table.metadata / "version-hint.text").unlink()
    (table.metadata / name).write_bytes(table.head.read_bytes())
    for path in table.metadata.glob("v*.json"):
        if path.name not in left:
            path.unlink()
    assert problem(table) == (
        "log_readable",
        "Only a catalog knows which metadata file is head's: there is no metadata/version-hint.text.",
    )
    assert IcebergReader().is_table(location(table))


def test_without_a_pointer_a_file_on_its_way_is_not_head(table: IcebergWriter) -> None:
    for path in (*table.metadata.glob("v*.json"), table.metadata / "version-hint.text"):
        path.unlink()
    (table.metadata / "0e6b0d52-3b7c-4b3f-9d65-6a3f1f2b7c11.metadata.json").write_text("on its way")
    assert problem(table)[0] == "log_readable"


def test_a_file_that_was_removed_after_the_pointer_was_read_is_asked_for_once_more(
    table: IcebergWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that commits, and removes old metadata, between a look at the hint and one at the list."""
    met = list[str]()

    def late(text: str) -> int | None:
        met.append(text)
        if len(met) == 1:
            table.commit(add=(("c.parquet", 100),))
            for name in ("v1.metadata.json", "v2.metadata.json"):
                (table.metadata / name).unlink()
        return as_whole(text)

    monkeypatch.setattr("lakewarden.catalog.formats.iceberg.pointer.as_whole", late)
    assert (seen(table).version, met) == (3, ["2", "3"])


def test_head_is_another_after_a_change_of_properties_although_its_version_is_not(
    table: IcebergWriter,
) -> None:
    reader, before = IcebergReader(), seen(table)
    table.properties["owner"] = "ana"
    table.publish()
    probe = reader.probe(location(table), seen=2, head=before.head)
    assert (probe.moved, probe.head != before.head) == (False, True)
    assert seen(table).head == probe.head
    assert reader.has_head(location(table), version=2, head=before.head), "it shows the same version"


def test_a_head_that_goes_back_is_another_state_of_the_version_that_it_shows(table: IcebergWriter) -> None:
    reader, first = IcebergReader(), int(table.snapshots[0]["snapshot-id"])
    heads = [seen(table)]
    for snapshot in (first, int(table.snapshots[1]["snapshot-id"]), first):
        table.now = table.now.replace(hour=table.now.hour + 1)
        table.move_main(snapshot)
        heads.append(seen(table, reader))
    assert [one.version for one in heads] == [2, 1, 2, 1]
    assert len({one.head for one in heads}) == 4
    assert [reader.has_head(location(table), version=one.version, head=one.head) for one in heads] == [
        True
    ] * 4


def test_a_table_made_anew_at_the_place_has_another_head(table: IcebergWriter) -> None:
    reader, before = IcebergReader(), seen(table)
    assert reader.probe(location(table), seen=2, head=before.head).head == before.head
    for path in table.metadata.iterdir():
        path.unlink()
    anew = IcebergWriter(root=table.root)
    anew.commit(add=(("a.parquet", 100),))
    anew.commit(add=(("b.parquet", 100),))
    probe = reader.probe(location(table), seen=2, head=before.head)
    assert probe.head is not None and not probe.head.startswith(before.format_id)
    assert reader.has_head(location(table), version=2, head=before.head) is False


def test_a_head_that_has_expired_is_not_known_any_more(table: IcebergWriter) -> None:
    before = seen(table)
    table.commit(add=(("c.parquet", 100),))
    del table.snapshots[1]
    table.publish()
    assert IcebergReader().has_head(location(table), version=2, head=before.head) is None


@pytest.mark.parametrize("loads", [0, 1, 2], ids=["never given again", "given again", "and gone past"])
def test_a_head_whose_number_another_snapshot_has_is_one_of_another_log(
    table: IcebergWriter, loads: int
) -> None:
    older = deepcopy(table)
    last = table.commit(add=(("c.parquet", 100),))
    before = seen(table)
    table.head.unlink()
    older.point(older.number)
    for number in range(loads):
        older.commit(add=((f"{number}.parquet", 100),))
    assert (seen(older).version, seen(older).format_id) == (2 + loads, before.format_id)
    assert IcebergReader().has_head(location(older), version=last, head=before.head) is False


def test_a_log_tells_its_newest_number_also_of_what_main_is_not_at(table: IcebergWriter) -> None:
    table.commit(add=(("c.parquet", 100),))
    table.move_main(int(table.snapshots[1]["snapshot-id"]))
    del table.snapshots[2]
    table.publish()
    found, probe = seen(table), IcebergReader().probe(location(table), seen=2)
    assert (found.version, found.newest_version, probe.latest, probe.newest) == (2, 3, 2, 3)


def test_a_head_of_another_format_is_not_one_of_ours(table: IcebergWriter) -> None:
    assert IcebergReader().has_head(location(table), version=2, head=f"{table.table_id}@2@17") is False


def test_what_was_made_from_an_expired_snapshot_has_a_parent_that_nobody_knows(table: IcebergWriter) -> None:
    table.commit(add=(("c.parquet", 100),))
    del table.snapshots[1]
    table.publish()
    made = [(one.version, one.parent) for one in IcebergReader().commits(location(table), after=-1)]
    assert made == [(1, None), (3, -2)]


def test_a_table_without_snapshots_is_empty_and_at_version_0(tmp_path: Path) -> None:
    made = IcebergWriter(root=tmp_path / "t")
    made.publish()
    found = seen(made)
    assert (found.version, found.files, found.rows, found.first_version) == (0, 0, 0, 0)
    assert list(IcebergReader().commits(location(made), after=-1)) == []
    assert list(IcebergReader().files(location(made), version=0)) == []
    assert IcebergReader().has_head(location(made), version=0, head=found.head)


@pytest.mark.parametrize(
    ("on_record", "is_other"),
    [(None, False), ("its own", False), ("another's", True)],
    ids=["no UUID yet", "the same table", "another table"],
)
def test_metadata_that_lies_elsewhere_is_another_tables_if_its_uuid_is(
    table: IcebergWriter, on_record: str | None, is_other: bool
) -> None:
    """The same table may say that it lies elsewhere: `SET LOCATION`."""
    row_at = f"file://{table.root.parent}/row"
    told = CatalogHead(
        entry="db.t",
        file=f"{table.place}/metadata/{table.head.name}",
        format_id=table.table_id if on_record == "its own" else on_record,
        others=lambda: ("db.old",),
    )
    reader = IcebergReader(heads=lambda location: told)
    found = reader.observe(row_at)
    if is_other:
        assert isinstance(found, LogProblem)
        assert (found.check, found.message) == (
            "exists",
            (
                f"The metastore's entry of db.t names another table now, which lies at {table.place}. "
                "Its folder is that of db.old now."
            ),
        )
        with pytest.raises(UnreadableError, match="names another table now"):
            list(reader.files(row_at))
    else:
        assert isinstance(found, Observation) and "another location" in found.capabilities.unsupported
