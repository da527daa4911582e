"""Heads that go back: by a RESTORE, or moved by hand to an older version, with nothing in the log that says so."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.lineage.graph.build import build_graph
from lakewarden.catalog.lineage.graph.graph import NO_NODE
from lakewarden.catalog.lineage.recording import rows_from
from lakewarden.catalog.lineage.restores import is_rewound, taken_back
from lakewarden.catalog.lineage.unrecorded import unrecorded
from lakewarden.catalog.lineage.versions import history_of
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation
from lakewarden.catalog.model.rows import NO_PARENT
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import LINEAGE
from support.builders.system_samples import table_row
from support.histories.fleet_logs import NOW
from support.manifest_format.reader import ManifestReader
from support.manifest_format.writer import ManifestWriter


class Branched:
    """A manifest table: made, appended to, `main` moved back, appended to again. The third version is left behind."""

    def __init__(self, folder: Path) -> None:
        self.writer = ManifestWriter(root=folder, now=NOW)
        self.location = canonical(str(folder))
        record = LineageRecord(run_id="r", operation=Operation.APPEND, user="ana", inputs=())
        self.made, self.kept, self.left = (self.writer.write([n], lineage=record) for n in range(3))
        self.writer.move_main(self.kept)

    def go_on(self) -> int:
        record = LineageRecord(run_id="r", operation=Operation.APPEND, user="ana", reads_self=True)
        return self.writer.write([9], lineage=record)

    @property
    def history(self) -> list[int]:
        return [self.made, self.kept, self.left]


@pytest.fixture
def table(tmp_path: Path) -> Branched:
    return Branched(tmp_path / "t")


def test_a_head_that_was_moved_back_shows_its_old_version_in_a_new_state(table: Branched) -> None:
    reader = ManifestReader()
    seen = reader.observe(table.location)
    assert isinstance(seen, Observation)
    assert (seen.version, table.writer.rows()) == (table.kept, [0, 1])
    probe = reader.probe(table.location, seen=table.left)
    assert (probe.moved, probe.head) == (True, seen.head)
    table.writer.move_main(table.left)
    table.writer.move_main(table.kept)
    again = reader.probe(table.location, seen=table.kept)
    assert (again.moved, again.head == seen.head) == (False, False), "there and back is another state"


def test_what_was_left_behind_is_told_and_is_no_content_of_head(table: Branched) -> None:
    last = table.go_on()
    history = history_of(ManifestReader().commits(table.location, after=-1))
    assert [one.parent for one in history] == [None, table.made, table.kept, table.kept]
    graph = build_graph(codec(LINEAGE).encode([]), {"t": history})
    head, left = graph.head("t"), graph.node("t", table.left)
    assert graph.versions[graph.parent(head)] == table.kept and graph.begins(graph.head("t"))
    assert {graph.versions[node] for node in graph.live(head)} == {table.made, table.kept, last}
    assert not graph.closure([left]).state(head)
    assert graph.closure([graph.node("t", table.kept)]).state(head)
    assert all(graph.known), "gaps between numbers are no missing versions"


def test_rows_on_record_tell_the_same_when_the_log_is_gone(table: Branched) -> None:
    table.go_on()
    commits = tuple(ManifestReader().commits(table.location, after=-1))
    rows = rows_from("t", commits, format_id=None, at=NOW)
    assert rows[0].output_parent == NO_PARENT
    graph = build_graph(codec(LINEAGE).encode(rows), {})
    head, left = graph.head("t"), graph.node("t", table.left)
    assert graph.begins(graph.head("t")) and graph.parent(graph.nodes("t")[0]) == NO_NODE
    assert graph.versions[graph.parent(head)] == table.kept
    assert not graph.closure([left]).state(head) and all(graph.known)


def test_what_is_left_of_a_log_has_the_uuid_of_head_if_nothing_in_it_sets_another(table: Branched) -> None:
    table.go_on()
    first, *rest = ManifestReader().commits(table.location, after=-1)
    assert {one.output_format_id for one in rows_from("t", rest, format_id=None, head_id="u", at=NOW)} == {
        "u"
    }
    assert {one.output_format_id for one in rows_from("t", rest, format_id=None, at=NOW)} == {None}
    whole = rows_from("t", [first, *rest], format_id=None, head_id="u", at=NOW)
    assert {one.output_format_id for one in whole} == {first.format_id} != {None}


def test_a_reader_of_what_was_left_behind_depends_on_it(table: Branched) -> None:
    seen = LineageInput(table_id="t", location=table.location, format="manifest", version=table.left)
    derived = ManifestWriter(root=table.writer.root.parent / "d", now=NOW)
    derived.write(
        [1], lineage=LineageRecord(run_id="r", operation=Operation.APPEND, user="ana", inputs=(seen,))
    )
    reader = ManifestReader()
    logs = {
        "t": history_of(reader.commits(table.location, after=-1)),
        "d": history_of(reader.commits(canonical(str(derived.root)), after=-1)),
    }
    graph = build_graph(codec(LINEAGE).encode([]), logs, heads={"t": table.kept})
    left = graph.node("t", table.left)
    assert graph.head("t") == graph.node("t", table.kept)
    assert graph.closure([left]).state(graph.head("d")) and not graph.closure([left]).state(graph.head("t"))
    assert taken_back(logs["t"], (), {table.left}, head=table.kept) == (table.left,)
    assert taken_back(logs["t"], (), {table.left}) == ()


def test_changes_that_were_read_are_those_on_the_way_to_what_was_read(table: Branched) -> None:
    last = table.go_on()
    seen = LineageInput(
        table_id="t", location=table.location, format="manifest", version=last, from_version=table.kept
    )
    derived = ManifestWriter(root=table.writer.root.parent / "d", now=NOW)
    derived.write(
        [1], lineage=LineageRecord(run_id="r", operation=Operation.APPEND, user="ana", inputs=(seen,))
    )
    reader = ManifestReader()
    logs = {
        "t": history_of(reader.commits(table.location, after=-1)),
        "d": history_of(reader.commits(canonical(str(derived.root)), after=-1)),
    }
    graph = build_graph(codec(LINEAGE).encode([]), logs)
    reads = {graph.versions[graph.inputs.other[place]] for place in graph.inputs.of(graph.head("d"))}
    assert reads == {last}, "not the version that was left behind in between"


def test_a_rewind_is_told_by_parents(table: Branched) -> None:
    reader = ManifestReader()
    assert is_rewound((), before=table.left, now=table.kept)
    assert not is_rewound((), before=None, now=table.kept), "another table"
    last = table.go_on()
    since = tuple(reader.commits(table.location, after=table.left))
    assert is_rewound(since, before=table.left, now=last)
    since = tuple(reader.commits(table.location, after=table.kept))
    assert not is_rewound(since, before=table.kept, now=last)


def test_what_is_on_record_goes_on_after_a_rewind(table: Branched) -> None:
    reader, uuid = ManifestReader(), table.writer.manifest.table_id
    row = replace(table_row(1), location=table.location, format_ids=(uuid,))
    last = table.go_on()
    found = unrecorded(reader, row, recorded={uuid: table.left}, newest=last, head_id=uuid)
    assert ([one.version for one in found.commits], found.anew) == ([last], False)
    found = unrecorded(reader, row, recorded={uuid: table.left}, newest=last)
    assert ([one.version for one in found.commits], found.anew) == ([last], False), (
        "known by its first commit"
    )
    found = unrecorded(reader, row, recorded={"another": table.left}, newest=last)
    assert ([one.version for one in found.commits], found.anew) == ([*table.history, last], True)
