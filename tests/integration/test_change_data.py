"""Change data, and streams of it, on a real Spark session: nothing deleted stays, nothing that came is lost."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.errors import PreconditionError, UsageError
from support.builders.lakes import Lake, running_lake
from support.cases import mostly_long

pytestmark = pytest.mark.spark

ROW = "struct<id: bigint, v: string>"
ENVELOPE = f"before {ROW}, after {ROW}, op string, ts_ms bigint"
FED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with running_lake(spark, tmp_path_factory.mktemp("changes")) as lake:
        yield lake


def test_changes_with_a_code_put_and_take_rows(lake: Lake) -> None:
    table = lake.table((1, "a", 1), (2, "b", 1))
    schema = "id bigint, v string, ts int, action string"
    changes = lake.rows(
        (1, None, None, "D"), (2, "B", 2, "update"), (3, "c", 2, "I"), (4, None, None, "d"), schema=schema
    )
    done = lake.lw.upsert(changes, table, keys="id", cdc="op", op="action")
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 1, 1)
    assert lake.held(table) == [(2, "B", 2), (3, "c", 2)]
    with pytest.raises(PreconditionError, match="code 'truncate'"):
        lake.lw.upsert(
            lake.rows((1, "a", 1, "truncate"), schema=schema), table, keys="id", cdc="op", op="action"
        )


def test_debeziums_envelopes_are_applied_in_their_order(lake: Lake) -> None:
    row = "struct<id: bigint, v: string>"
    envelope = f"before {row}, after {row}, op string, ts_ms bigint"
    changes = lake.rows(
        (None, (1, "a"), "c", 10),
        ((1, "a"), (1, "A"), "u", 20),
        (None, (2, "b"), "r", 10),
        ((2, "b"), None, "d", 30),
        (None, None, None, None),  # the tombstone that follows a deletion
        (None, (3, "c"), "c", 10),
        schema=envelope,
    )
    table = str(lake.folder / "mirror")
    assert lake.lw.upsert(changes, table, keys="id", cdc="debezium").rows_inserted == 2
    assert lake.held(table) == [(1, "A"), (3, "c")]
    gone = lake.rows(((3, None), None, "d", 40), schema=envelope)
    assert lake.lw.upsert(gone, table, keys="id", cdc="debezium").rows_deleted == 1


def test_a_change_feed_makes_a_mirror(lake: Lake) -> None:
    source, mirror = lake.table((1, "a", 1), (2, "b", 1)), str(lake.folder / "fed")
    lake.spark.sql(f"ALTER TABLE delta.`{source}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    for statement in (
        "UPDATE {t} SET v = 'A' WHERE id = 1",
        "DELETE FROM {t} WHERE id = 2",
        "INSERT INTO {t} VALUES (3, 'c', 1)",
    ):
        lake.spark.sql(statement.format(t=f"delta.`{source}`"))
    feed = (
        lake.spark.read.option("readChangeFeed", "true")
        .option("startingVersion", 1)
        .format("delta")
        .load(source)
    )
    lake.lw.upsert(lake.lw.table(source, version=0), mirror, keys="id")
    lake.lw.upsert(feed, mirror, keys="id", cdc="delta")
    assert lake.held(mirror) == lake.held(source) == [(1, "A", 1), (3, "c", 1)]
    record = lake.commits(mirror)[-1].lineage
    assert record is not None and [(one.from_version, one.version) for one in record.inputs] == [(0, 4)]


def test_an_envelope_that_changes_its_key_takes_the_old_row_away(lake: Lake) -> None:
    table = lake.table((1, "a"), (2, "b"), schema="id bigint, v string")
    changes = (((1, "a"), (9, "a"), "u", 10), ((2, "b"), (2, "B"), "u", 10), (None, (3, "c"), "u", 10))
    done = lake.lw.upsert(lake.rows(*changes, schema=ENVELOPE), table, keys="id", cdc="debezium")
    assert lake.held(table) == [(2, "B"), (3, "c"), (9, "a")]
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (2, 1, 1)


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        ((None, None, "d", 1), "code 'd' whose before is NULL"),
        ((None, None, "c", 1), "code 'c' whose after is NULL"),
        (((1, "old"), None, "u", 1), "code 'u' whose after is NULL"),
    ],
)
def test_an_envelope_without_its_row_is_refused(lake: Lake, change: tuple[Any, ...], lacks: str) -> None:
    table = lake.table((1, "a"), schema="id bigint, v string")
    with pytest.raises(PreconditionError, match=lacks):
        lake.lw.upsert(lake.rows(change, schema=ENVELOPE), table, keys="id", cdc="debezium")
    assert lake.held(table) == [(1, "a")]


ORDERED = f"before {ROW}, after {ROW}, op string, ts_ms bigint, source struct<lsn: bigint>, at bigint"


def histories(seed: int, rows: int) -> tuple[list[tuple[Any, ...]], dict[int, str]]:
    """Changes of some rows as PostgreSQL's connector sends them, key-only deletions included, several of them in one
    millisecond, in any order; and what is there when all of them are done."""
    chance, there, changes = random.Random(seed), dict[int, str](), list[tuple[Any, ...]]()
    for lsn in range(rows * 4):
        key, value, at = chance.randrange(rows), f"v{lsn}", 1_000 + lsn // 3
        where = ((lsn,), lsn)
        if key not in there:
            changes.append((None, (key, value), chance.choice("cr"), at, *where))
            there[key] = value
        elif chance.random() < 0.4:
            before = (key, there.pop(key) if chance.random() < 0.5 else None)
            there.pop(key, None)
            changes.append((before, None, "d", at, *where))
        elif (moved := chance.randrange(rows)) not in there and chance.random() < 0.5:
            changes.append(((key, there.pop(key)), (moved, value), "u", at, *where))
            there[moved] = value
        else:
            changes.append(((key, there[key]), (key, value), "u", at, *where))
            there[key] = value
    chance.shuffle(changes)
    return changes, there


@pytest.mark.parametrize("by", mostly_long(["source.lsn", "at"], ["source.lsn"]))
@pytest.mark.parametrize("seed", mostly_long(range(8), [0]))
def test_changes_of_one_millisecond_have_the_order_that_the_envelope_says(
    lake: Lake, seed: int, by: str
) -> None:
    changes, there = histories(seed, 30)
    table = lake.table((1_000, "stays"), schema="id bigint, v string")
    lake.lw.upsert(
        lake.rows(*changes, schema=ORDERED), table, keys="id", cdc="debezium", duplicates=f"last by {by}"
    )
    assert dict(lake.held(table)) == {**there, 1_000: "stays"}


def test_the_moment_comes_first_and_a_column_of_the_row_only_tells_ties_apart(lake: Lake) -> None:
    table = lake.table((3, "0"), schema="id bigint, v string")
    changes = (
        (None, (1, "9"), "c", 10, None, None),
        ((1, None), None, "d", 20, None, None),  # key only: PostgreSQL's default
        (None, (2, "9"), "c", 10, None, None),
        ((2, "9"), (2, "1"), "u", 20, None, None),  # later, by a smaller number
        ((3, "0"), (4, "5"), "u", 20, None, None),
        ((4, "5"), (4, "7"), "u", 20, None, None),
    )
    words: dict[str, Any] = {"keys": "id", "cdc": "debezium", "duplicates": "last by v"}
    lake.lw.upsert(lake.rows(*changes, schema=ORDERED), table, **words)
    assert lake.held(table) == [(2, "1"), (4, "7")]
    untold = ((None, (5, "9"), "c", 10, None, None), ((5, None), None, "d", 10, None, None))
    with pytest.raises(PreconditionError, match="2 rows of the source have the key id=5"):
        lake.lw.upsert(lake.rows(*untold, schema=ORDERED), table, **words)
    with pytest.raises(UsageError, match="Neither the envelope nor its rows have source.offset"):
        lake.lw.upsert(
            lake.rows(*untold, schema=ORDERED), table, **{**words, "duplicates": "last by source.offset"}
        )


@pytest.mark.parametrize(
    ("change", "says", "hint"),
    [
        pytest.param((None, None, "t", 5), "a TRUNCATE", "delete the table's rows", id="truncate"),
        pytest.param((None, (1, "x"), None, 5), "code 'NULL'", "Codes are", id="no code, and a row"),
        pytest.param((None, (1, "x"), " c ", 5), "code ' c '", "Codes are", id="blanks"),
    ],
)
def test_what_an_envelope_says_besides_rows_is_told_in_our_words(
    lake: Lake, change: tuple[Any, ...], says: str, hint: str
) -> None:
    table = lake.table((1, "a"), schema="id bigint, v string")
    with pytest.raises(PreconditionError, match=says) as refused:
        lake.lw.upsert(lake.rows(change, schema=ENVELOPE), table, keys="id", cdc="debezium")
    assert hint in refused.value.hint
    assert lake.held(table) == [(1, "a")]


def test_a_code_with_blanks_is_told_in_our_words(lake: Lake) -> None:
    table, schema = lake.table((1, "a"), schema="id bigint, v string"), "id bigint, v string, op string"
    for code in (" d", "d ", "d\n", "<d>", ""):
        with pytest.raises(PreconditionError, match="which is unknown") as refused:
            lake.lw.upsert(lake.rows((1, "a", code), schema=schema), table, keys="id", cdc="op")
        assert "Codes are" in refused.value.hint
    assert lake.held(table) == [(1, "a")]


@pytest.mark.long
def test_names_are_compared_as_delta_does_it_whatever_the_session_says(lake: Lake) -> None:
    table = lake.table((1, "a"), (2, "b"), schema="ID bigint, V string")
    row = "struct<Id: bigint, v: string>"
    lake.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        rows = lake.rows((1, "A"), (3, "c"), schema="Id bigint, v string")
        assert (
            lake.lw.upsert(rows, table, keys="ID", when="newer by V", duplicates="last by v").rows_inserted
            == 1
        )
        envelopes = lake.rows(
            ((2, "b"), (9, "z"), "u", 10), schema=f"Before {row}, AFTER {row}, OP string, Ts_ms bigint"
        )
        lake.lw.upsert(envelopes, table, keys=["iD"], cdc="debezium")
        twice = lake.rows((1, "x", "y"), schema="id bigint, v string, V string")
        with pytest.raises(UsageError, match="differ in nothing but case"):
            lake.lw.upsert(twice, table, keys="ID")
    finally:
        lake.spark.conf.unset("spark.sql.caseSensitive")
    assert lake.held(table) == [(1, "a"), (3, "c"), (9, "z")]


@pytest.mark.long
def test_a_deletion_without_a_key_that_matches_nothing_changes_nothing(lake: Lake) -> None:
    vectors = {"delta.enableDeletionVectors": "true"}
    table = lake.table((1, "a"), schema="id bigint, v string", **vectors)
    changes = lake.rows((1, "b", "u"), (None, None, "d"), schema="id bigint, v string, op string")
    done = lake.lw.upsert(changes, table, keys="id", cdc="op", null_keys="match")
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 1, 0)
    lake.lw.upsert(lake.rows((None, "c"), schema="id bigint, v string"), table, keys="id")
    assert lake.lw.upsert(changes, table, keys="id", cdc="op", null_keys="match").rows_deleted == 1
    held = lake.spark.read.format("delta").load(table).collect()
    assert [tuple(row) for row in held] == [(1, "b")]


def test_an_envelope_of_two_tables_is_refused(lake: Lake) -> None:
    table = lake.table((1, "a"), schema="id bigint, v string")
    schema = f"before struct<id: bigint>, after {ROW}, op string, ts_ms bigint"
    with pytest.raises(UsageError, match="not rows of one table"):
        lake.lw.upsert(lake.rows(((1,), None, "d", 5), schema=schema), table, keys="id", cdc="debezium")


def test_moments_in_a_map_that_differ_by_a_microsecond_are_two_rows(lake: Lake) -> None:
    schema = "id bigint, seen map<string, timestamp>, ts int"
    table = lake.table((1, {}, 0), schema=schema)
    first, second = (datetime(2026, 1, 1, 0, 0, 0, micro, tzinfo=UTC) for micro in (1, 2))
    with pytest.raises(PreconditionError, match="2 rows of the source have the key id=1"):
        lake.lw.upsert(
            lake.rows((1, {"a": first}, 1), (1, {"a": second}, 1), schema=schema),
            table,
            keys="id",
            duplicates="last by ts",
        )


def test_a_feed_whose_files_are_gone_is_a_sentence_and_makes_no_table(lake: Lake) -> None:
    source, mirror = lake.table((1, "a", 1), **FED), lake.folder / "late"
    lake.spark.sql(f"UPDATE delta.`{source}` SET v = 'A'")
    for kept in Path(source).glob("_change_data/*.parquet"):
        kept.unlink()
    feed = lake.spark.read.format("delta").options(readChangeFeed="true", startingVersion="1").load(source)
    with pytest.raises(PreconditionError, match=r"The source cannot be read: .*\.parquet"):
        lake.lw.upsert(feed, str(mirror), keys="id", cdc="delta")
    assert not mirror.exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    mostly_long([{}, {"duplicates": "last by ts"}, {"when": "newer by ts"}], [{"duplicates": "last by ts"}]),
)
def test_a_mirror_follows_a_change_of_a_key(lake: Lake, words: dict[str, Any]) -> None:
    source = lake.table((1, "a", 1), (2, "b", 1), **FED)
    mirror = lake.table((1, "a", 1), (2, "b", 1))
    lake.spark.sql(f"UPDATE delta.`{source}` SET id = 9 WHERE id = 1")
    lake.spark.sql(f"UPDATE delta.`{source}` SET v = 'B' WHERE id = 2")
    lake.spark.sql(f"UPDATE delta.`{source}` SET v = 'A', ts = 2 WHERE id = 9")
    feed = lake.spark.read.format("delta").options(readChangeFeed="true", startingVersion="1").load(source)
    lake.lw.upsert(feed, mirror, keys="id", cdc="delta", **words)
    stays = "b" if "when" in words else "B"  # its ts is a tie
    assert lake.held(mirror) == [(2, stays, 1), (9, "A", 2)]


class Flow:
    """A stream of upserts from a table to a folder, as often as it is asked to go on."""

    def __init__(self, lake: Lake, source: str, **reader: str) -> None:
        self.lake, self.source, self.reader = lake, source, reader
        self.checkpoint, self.sink = Path(f"{source}-checkpoint"), f"{source}-sink"

    def goes_on(self, **options: Any) -> None:
        stream = self.lake.spark.readStream.format("delta").options(**self.reader).load(self.source)
        query = self.lake.lw.upsert_stream(
            stream,
            self.sink,
            keys="id",
            checkpoint=str(self.checkpoint),
            trigger={"availableNow": True},
            **options,
        )
        query.awaitTermination()

    def goes_back_before(self, batch: int) -> None:
        """Take the checkpoint back, as the docs say."""
        for folder in ("offsets", "commits"):
            for file in (self.checkpoint / folder).iterdir():
                number = file.name.removeprefix(".").removesuffix(".crc")
                if number.isdecimal() and int(number) >= batch:
                    file.unlink()

    def comes(self, *rows: tuple[Any, ...]) -> None:
        columns = {"id": pa.int64(), "v": pa.string(), "ts": pa.int32()}
        more = [dict(zip(columns, row, strict=True)) for row in rows]
        frame = pa.Table.from_pylist(more, schema=pa.schema(list(columns.items())))
        write_deltalake(self.source, frame, mode="append")

    def held(self) -> list[tuple[Any, ...]]:
        return self.lake.held(self.sink)


@pytest.mark.long
def test_what_was_undone_is_not_written_over_what_came_later(lake: Lake) -> None:
    flow = Flow(lake, lake.table((0, "a", 0)), maxFilesPerTrigger="1")
    for number in (1, 2, 3):
        flow.comes((number, "a", number))
    flow.goes_on()
    commits = lake.commits(flow.sink)
    assert [number for one in commits for _, number in one.transactions] == [0, 1, 2, 3]
    lake.spark.sql(f"RESTORE TABLE delta.`{flow.sink}` TO VERSION AS OF {commits[-3].version}")
    flow.comes((4, "a", 4))
    flow.goes_on()
    before = flow.held()
    assert [row[0] for row in before] == [0, 1, 4]
    flow.goes_back_before(2)
    with pytest.raises(
        StreamingQueryException, match="Batch 2 was undone, and a later one of its query"
    ) as refused:
        flow.goes_on()
    assert f"`lakewarden rollback plan --run {lake.commits(flow.sink)[-1].run_id}`" in str(refused.value)
    assert flow.held() == before
    later = lake.commits(flow.sink)[-1].version  # as the hint says: undo that as well
    lake.spark.sql(f"RESTORE TABLE delta.`{flow.sink}` TO VERSION AS OF {later - 1}")
    flow.goes_on()
    assert [row[0] for row in flow.held()] == [0, 1, 2, 3, 4]


@pytest.mark.long
def test_a_batch_that_comes_again_with_more_than_it_had_is_refused(lake: Lake) -> None:
    flow = Flow(lake, lake.table((0, "a", 0)))
    for number in (1, 2):
        flow.goes_on()
        flow.comes((number, "a", number))
    flow.goes_on()
    before, (made, *_) = flow.held(), lake.commits(flow.sink)[-2:]
    flow.goes_back_before(1)
    with pytest.raises(
        StreamingQueryException, match=r"Batch 1 was done with the changes of .* up to version 1; now"
    ):
        flow.goes_on()
    assert flow.held() == before
    DeltaTable(flow.sink).restore(made.version - 1)
    flow.goes_on()
    assert flow.held() == lake.held(flow.source)


@pytest.mark.long
def test_a_version_of_the_feed_that_a_rate_limit_splits_is_refused(lake: Lake) -> None:
    source = lake.table((1, "a", 1), (2, "b", 1), **FED)
    flow = Flow(lake, source, readChangeFeed="true", startingVersion="0", maxFilesPerTrigger="1")
    flow.goes_on(cdc="delta")
    flow.comes((3, "c", 1))
    flow.goes_on(cdc="delta")
    assert flow.held() == lake.held(source)
    lake.spark.sql(
        f"INSERT OVERWRITE delta.`{source}` SELECT /*+ COALESCE(1) */ id, upper(v), ts FROM delta.`{source}`"
    )
    whole = flow.held()
    with pytest.raises(StreamingQueryException, match="has a part of version 2 of its change feed"):
        flow.goes_on(cdc="delta")
    assert flow.held() == whole

    def by_hand(frame: DataFrame, number: int) -> None:
        lake.lw.upsert(frame, f"{source}-other", keys="id", cdc="delta")

    stream = lake.spark.readStream.format("delta").options(**flow.reader).load(source)
    writer = stream.writeStream.foreachBatch(by_hand).option("checkpointLocation", f"{source}-others")
    with pytest.raises(StreamingQueryException, match="has a part of version 2 of its change feed"):
        writer.trigger(availableNow=True).start().awaitTermination()
    newest = max(int(one.name) for one in (flow.checkpoint / "offsets").iterdir() if one.name.isdecimal())
    flow.goes_back_before(newest)
    flow.reader["maxFilesPerTrigger"] = "1000"
    flow.goes_on(cdc="delta")
    assert flow.held() == lake.held(source)
