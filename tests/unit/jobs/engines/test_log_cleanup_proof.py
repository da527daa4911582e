"""No log goes before its checkpoint was read in full and found to hold what it replaces."""

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from deltalake.exceptions import DeltaError

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.storage.file_store import canonical, open_store
from lakewarden.jobs.engines.delta.log_cleanup import BATCH, clean_log
from lakewarden.jobs.runs.port import FileChange
from support.builders.delta_logs import LogWriter, add, remove, vector

NOW = datetime(2026, 11, 21, tzinfo=UTC)
KINDS = ("classic", "parts", "v2-parquet", "v2-json")
HEAD = 8
Body = dict[str, Any]


def cleaned(table: Path, keep_from: int = HEAD, proceed: Callable[[], None] = lambda: None) -> FileChange:
    return clean_log(open_store(canonical(str(table))), keep_from=keep_from, now=NOW, proceed=proceed)


def log(table: Path) -> set[str]:
    return {
        path.relative_to(table).as_posix() for path in (table / "_delta_log").rglob("*") if path.is_file()
    }


def written(root: Path, kind: str = "classic", checkpoints: tuple[int, ...] = (6,)) -> LogWriter:
    """Versions 0 to 8 with everything a checkpoint has to remember, checkpoints of one kind where wanted."""
    table = LogWriter(root=root, partition_columns=("day",), properties={"delta.appendOnly": "false"})
    commits: tuple[tuple[Body, ...], ...] = (
        (table.protocol(), table.metadata()),
        tuple(
            add(f"day={day}/{day}.parquet", partition={"day": str(day)}, size=100 + day) for day in range(6)
        ),
        (add("day=__HIVE_DEFAULT_PARTITION__/n%20ull.parquet", partition={"day": None}, rows=None),),
        (remove("day=0/0.parquet"), {"txn": {"appId": "stream", "version": 7}}),
        (
            remove("day=1/1.parquet"),
            add("day=1/1.parquet", partition={"day": "1"}, size=101, deletion_vector=vector("one", 3)),
        ),
        ({"domainMetadata": {"domain": "a.feature", "configuration": '{"high":9}', "removed": False}},),
        (remove("day=2/2.parquet"), add("/elsewhere/absolute.parquet", partition={"day": "2"})),
        (add("day=7/late.parquet", partition={"day": "7"}),),
        (add("day=8/later.parquet", partition={"day": "8"}),),
    )
    for version, actions in enumerate(commits):
        table.commit(*actions)
        if version in checkpoints:
            table.checkpoint(kind)
    return table


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_any_kind_that_holds_what_it_replaces_is_relied_on(tmp_path: Path, kind: str) -> None:
    table = written(tmp_path / "t", kind)
    change = cleaned(table.root)
    assert (change.version, change.files_removed, change.problems) == (6, 6, ())


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_with_flipped_bytes_keeps_the_whole_log(tmp_path: Path, kind: str) -> None:
    table = written(tmp_path / "t", kind)
    for path in [*table.log.glob("*.checkpoint*.parquet"), *table.log.glob("_sidecars/*.parquet")]:
        path.write_bytes(path.read_bytes().replace(b"day=3/3.parquet", b"day=3/X.parquet"))
    before = log(table.root)
    change = cleaned(table.root)
    assert change.version is None and log(table.root) == before
    assert change.problems == (
        (
            "The checkpoint of version 6 is not what the commits before it give: "
            "1 file missing, 1 file too many."
        ),
    )


ALTERED = {
    "a size": ("add", {"size": 1}, "another size"),
    "a partition value": ("add", {"partitionValues": [("day", "4")]}, "partition"),
    "a number of rows": ("add", {"stats": '{"numRecords":11,"minValues":{},"maxValues":{}}'}, "rows"),
    "statistics that are gone": ("add", {"stats": None}, "number of rows"),
    "statistics": ("add", {"stats": '{"numRecords": 10, "minValues": {"id": 5}}'}, "other statistics"),
    "statistics that are none": ("add", {"stats": '{"numRecords: 10'}, "other statistics"),
    "a deletion vector": ("add", {"deletionVector": vector("two", 3)["pathOrInlineDv"]}, "missing"),
    "the time of a removal": (
        "remove",
        {"deletionTimestamp": 1},
        "1 removed file missing or removed at another",
    ),
    "a removed file": ("remove", {"path": "day=9/9.parquet"}, "1 removed file missing"),
    "a transaction number": ("txn", {"version": 8}, "transaction numbers"),
    "an application": ("txn", {"appId": "strean"}, "transaction numbers"),
    "a feature's metadata": ("domainMetadata", {"configuration": '{"high":8}'}, "domain metadata"),
    "a property": ("metaData", {"configuration": [("delta.appendOnly", "true")]}, "other metadata"),
    "the table's id": ("metaData", {"id": "0"}, "other metadata"),
    "the schema": ("metaData", {"schemaString": '{"type":"struct","fields":[]}'}, "other metadata"),
    "a feature": ("protocol", {"writerFeatures": ["deletionVectorz"]}, "another protocol"),
}


@pytest.mark.parametrize(("column", "values", "sentence"), ALTERED.values(), ids=ALTERED)
def test_whatever_else_was_altered_is_found_and_keeps_the_log(
    tmp_path: Path, column: str, values: Body, sentence: str
) -> None:
    table = written(tmp_path / "t")
    (checkpoint,) = table.log.glob("*.checkpoint.parquet")
    place = {"add": "day=3/3.parquet", "remove": "day=0/0.parquet"}.get(column)
    if "deletionVector" in values:
        place, values = "day=1/1.parquet", {"deletionVector": vector("two", 3)}
    altered(checkpoint, column, where=place, **values)
    before = log(table.root)
    (problem,) = cleaned(table.root).problems
    assert sentence in problem and log(table.root) == before


REWRITTEN = '{"nullCount":{},"maxValues":{"at":"2024-01-01T00:00:00.123Z","n":9},"numRecords":1e1}'
ORIGINAL = (
    '{"numRecords":10,"minValues":{"n":1},"maxValues":{"n":9.0,"at":"2024-01-01T00:00:00.123456+00:00"}}'
)


@pytest.mark.parametrize(
    ("old", "new", "usable"), [("9}", "9}", True), ("9}", "8}", False), ("123Z", "124Z", False)]
)
def test_statistics_that_a_writer_spelled_anew_are_the_same(
    tmp_path: Path, old: str, new: str, usable: bool
) -> None:
    table = LogWriter(root=tmp_path / "t").create()
    one = add("a.parquet")
    one["add"]["stats"] = ORIGINAL
    table.commit(one, add("b.parquet"))
    table.checkpoint()
    (checkpoint,) = table.log.glob("*.checkpoint.parquet")
    altered(checkpoint, "add", where="a.parquet", stats=REWRITTEN.replace(old, new).replace("1e1", "10"))
    change = cleaned(table.root, 1)
    assert (change.version == 1, change.problems) == (
        usable,
        ()
        if usable
        else (
            (
                "The checkpoint of version 1 is not what the commits before it give: "
                "1 file with other statistics."
            ),
        ),
    )


def test_lost_and_doubled_files_are_found(tmp_path: Path) -> None:
    for name, change, sentence in (
        ("lost", lambda rows: rows[:-1], "1 removed file missing"),
        ("doubled", lambda rows: [*rows, rows[4]], "files named twice"),
    ):
        table = written(tmp_path / name)
        (checkpoint,) = table.log.glob("*.checkpoint.parquet")
        content, written_at = pq.read_table(checkpoint), checkpoint.stat().st_mtime
        pq.write_table(pa.Table.from_pylist(change(content.to_pylist()), content.schema), checkpoint)
        os.utime(checkpoint, (written_at, written_at))
        assert sentence in cleaned(table.root).problems[0]


def test_removals_past_the_tables_own_retention_may_be_forgotten(tmp_path: Path) -> None:
    table = written(tmp_path / "young", checkpoints=())
    table.checkpoint(forget_before=table.now)
    assert "2 removed files missing" in cleaned(table.root).problems[0]
    table = written(tmp_path / "old", checkpoints=())
    table.now += timedelta(days=8)
    table.checkpoint(forget_before=table.now)
    assert cleaned(table.root).version == HEAD


def test_an_older_sound_checkpoint_is_used_instead(tmp_path: Path) -> None:
    table = written(tmp_path / "t", checkpoints=(4, 6))
    (checkpoint,) = table.log.glob("*6.checkpoint.parquet")
    altered(checkpoint, "add", path="day=3/X.parquet", where="day=3/3.parquet")
    change = cleaned(table.root)
    assert change.version == 4 and "The checkpoint of version 6 is not what" in change.problems[0]


def test_damage_that_a_checkpoint_inherited_from_the_one_before_is_found(tmp_path: Path) -> None:
    table = written(tmp_path / "t", checkpoints=(4, 6))
    for checkpoint in table.log.glob("*.checkpoint.parquet"):
        altered(checkpoint, "add", path="day=3/X.parquet", where="day=3/3.parquet")
    change = cleaned(table.root)
    assert change.version is None and len(change.problems) == 2


def test_where_nothing_before_can_be_read_nothing_is_lost_with_it(tmp_path: Path) -> None:
    """Readers start from this checkpoint anyway; what the commits before it still say has to be in it."""
    sound, damaged = written(tmp_path / "sound"), written(tmp_path / "damaged")
    (checkpoint,) = damaged.log.glob("*.checkpoint.parquet")
    altered(checkpoint, "add", path="/elsewhere/absolut%.parquet", where="/elsewhere/absolute.parquet")
    for table in (sound, damaged):
        table.clean(2)
    assert cleaned(sound.root).version == 6
    (problem,) = cleaned(damaged.root).problems
    assert problem == "The checkpoint of version 6 is not what the commits before it say: 1 file missing."


def test_what_can_be_read_before_an_unproved_checkpoint_stays(tmp_path: Path) -> None:
    table = written(tmp_path / "t", checkpoints=(2, 6))
    (table.log / f"{4:020d}.json").unlink()
    before = log(table.root)
    assert cleaned(table.root) == FileChange(version=None) and log(table.root) == before


@pytest.mark.heavy
def test_no_single_flipped_byte_costs_a_promised_version_its_files(tmp_path: Path) -> None:
    """Wherever something was deleted, delta-rs finds the same files as before, or refuses the checkpoint for
    a footer that is not up to the format although all that the proof read from it is right:
    that can be written anew."""
    plain = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
    origin, dice = tmp_path / "origin", random.Random(9)
    for number in range(6):
        rows = pa.table({"id": [number, number + 1], "day": [f"d{number}"] * 2})
        write_deltalake(
            str(origin), rows, mode="append", partition_by=["day"], post_commithook_properties=plain
        )
    DeltaTable(str(origin)).create_checkpoint()
    write_deltalake(str(origin), rows, mode="append", post_commithook_properties=plain)
    (checkpoint,) = (origin / "_delta_log").glob("*.checkpoint.parquet")
    pq.write_table(pq.read_table(checkpoint), checkpoint, compression="none", use_dictionary=False)
    whole, truth = checkpoint.read_bytes(), by_delta_rs(origin)
    outcomes: Counter[str] = Counter()
    for trial in range(80):
        copy = tmp_path / f"t{trial}"
        shutil.copytree(origin, copy)
        place = dice.randrange(4, len(whole) - 8)
        flipped = bytes([*whole[:place], whole[place] ^ (1 << dice.randrange(8)), *whole[place + 1 :]])
        (copy / "_delta_log" / checkpoint.name).write_bytes(flipped)
        change = cleaned(copy, 5)
        if change.version is None:
            assert change.problems, f"byte {place}"
            outcomes["kept"] += 1
            continue
        try:
            assert by_delta_rs(copy) == truth, f"byte {place}"
            outcomes["the same"] += 1
        except DeltaError:
            files = DeltaReader().files(canonical(str(copy)), version=6)
            assert sorted((file.path, file.size_bytes) for file in files) == truth, f"byte {place}"
            outcomes["to be written anew"] += 1
    assert outcomes["kept"] > 10 and outcomes["the same"] > 10 and outcomes["to be written anew"] < 10, (
        outcomes
    )


def by_delta_rs(table: Path) -> list[tuple[str, int]]:
    actions = pa.table(DeltaTable(str(table)).get_add_actions(flatten=True)).to_pylist()
    return sorted((one["path"], one["size_bytes"]) for one in actions)


def test_deletions_are_allowed_a_hundred_at_a_time(tmp_path: Path) -> None:
    table = LogWriter(root=tmp_path / "t").create()
    for number in range(2 * BATCH + 10):
        table.commit(add(f"{number}.parquet"))
    table.checkpoint()
    asked: list[int] = []

    def revoked() -> None:
        asked.append(len(log(table.root)))
        if len(asked) == 3:
            raise InterruptedError

    before = len(log(table.root))
    with pytest.raises(InterruptedError):
        cleaned(table.root, table.head, revoked)
    assert asked == [before, before - BATCH, before - 2 * BATCH] and len(log(table.root)) == asked[-1]
    table.commit(add("still.parquet"))
    assert cleaned(table.root, table.head).version == table.head - 1


def altered(checkpoint: Path, column: str, *, where: str | None = None, **values: Any) -> None:
    """Rewrite a checkpoint's file with other values in one of its rows, as of the time it was written."""
    content, written_at = pq.read_table(checkpoint), checkpoint.stat().st_mtime
    rows = content.to_pylist()
    for row in rows:
        body = row.get(column)
        if body is not None and (where is None or body["path"] == where):
            body.update(values)
    pq.write_table(pa.Table.from_pylist(rows, content.schema), checkpoint)
    os.utime(checkpoint, (written_at, written_at))


def test_json_checkpoints_with_files_in_them_are_compared_too(tmp_path: Path) -> None:
    table = written(tmp_path / "t", "v2-json")
    (checkpoint,) = table.log.glob("*.checkpoint.*.json")
    lines = [json.loads(line) for line in checkpoint.read_text().splitlines()]
    head = [one for one in lines if "sidecar" not in one]
    files = [{"add": one} for one in table.live.values() if "late" not in one["path"]]
    gone = [{"remove": one} for one in table.removed.values()]
    checkpoint.write_text("\n".join(json.dumps(one) for one in [*head, *files[:-1], *gone]))
    assert "1 file missing" in cleaned(table.root).problems[0]
    checkpoint.write_text("\n".join(json.dumps(one) for one in [*head, *files, *gone]))
    assert cleaned(table.root).version == 6
