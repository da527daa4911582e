"""The lineage record in a commit: what goes in comes out, and what anybody else wrote there harms nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.model.lineage_record import (
    RECORD_KEY,
    RECORD_LIMIT_BYTES,
    USER_METADATA_LIMIT_BYTES,
    LineageInput,
    LineageRecord,
    Operation,
    RecordVerdict,
    custom_metadata,
    encode_record,
    read_record,
    user_metadata,
)
from lakewarden.catalog.storage.file_store import canonical
from support.builders.delta_logs import LogWriter, add

FLIGHTS = LineageInput(
    table_id="t1",
    location="hdfs://nn:9000/w/flights",
    format="delta",
    version=7,
    from_version=5,
    format_id="u1",
)
RECORD = LineageRecord(
    run_id="r-1",
    operation=Operation.MERGE,
    user="ana",
    inputs=(FLIGHTS, LineageInput(location="file:///in/a.csv", format="csv")),
    reads_self=True,
    user_metadata='{"ticket": "größe \\u0000"}',
)
versions = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=30)
inputs = st.builds(
    LineageInput,
    table_id=st.none() | texts,
    location=texts,
    format=texts,
    version=st.none() | versions,
    from_version=st.none() | versions,
    format_id=st.none() | texts,
)
records = st.builds(
    LineageRecord,
    run_id=texts,
    operation=st.sampled_from(Operation),
    user=texts,
    inputs=st.lists(inputs, max_size=4).map(tuple),
    reads_self=st.booleans(),
    missing_inputs=st.integers(0, 10**6),
    user_metadata=st.none() | texts,
    dialect=st.none() | texts,
    matches=st.none() | texts,
    query=st.none() | texts,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.heavy
@given(records)
def test_what_is_recorded_is_read_back_from_either_place(record: LineageRecord) -> None:
    for reading in (
        read_record(None, user_metadata(record)),
        read_record(custom_metadata(record)[RECORD_KEY], None),
    ):
        assert reading.record == record
        assert (reading.verdict is RecordVerdict.COMPLETE) == (record.missing_inputs == 0)


def test_the_form_of_version_1_never_changes() -> None:
    assert orjson.loads(user_metadata(RECORD)) == {
        "lakewarden": {
            "v": 1,
            "run_id": "r-1",
            "operation": "merge",
            "user": "ana",
            "inputs": [
                {
                    "table_id": "t1",
                    "location": "hdfs://nn:9000/w/flights",
                    "format": "delta",
                    "version": 7,
                    "from_version": 5,
                    "format_id": "u1",
                },
                {"location": "file:///in/a.csv", "format": "csv"},
            ],
            "reads_self": True,
            "user_metadata": '{"ticket": "größe \\u0000"}',
        }
    }


@given(st.integers(0, 400), st.integers(0, 5))
def test_a_record_that_is_too_large_says_how_many_inputs_are_missing(count: int, missing: int) -> None:
    many = tuple(replace(FLIGHTS, table_id=f"table-{number}") for number in range(count))
    text = encode_record(replace(RECORD, inputs=many, missing_inputs=missing, user_metadata=None))
    assert len(text.encode()) <= RECORD_LIMIT_BYTES
    reading = read_record(text, None)
    assert reading.record is not None
    assert reading.record.inputs == many[: len(reading.record.inputs)]
    assert len(reading.record.inputs) + reading.record.missing_inputs == count + missing
    assert reading.verdict is (
        RecordVerdict.INCOMPLETE if reading.record.missing_inputs else RecordVerdict.COMPLETE
    )


def test_a_usual_number_of_inputs_fits() -> None:
    many = tuple(replace(FLIGHTS, table_id=f"{number:032x}") for number in range(70))
    assert read_record(encode_record(replace(RECORD, inputs=many)), None).verdict is RecordVerdict.COMPLETE


def test_the_users_own_metadata_is_kept_whole_or_refused() -> None:
    long = "x" * USER_METADATA_LIMIT_BYTES
    reading = read_record(None, user_metadata(replace(RECORD, user_metadata=long)))
    assert reading.record is not None and reading.record.user_metadata == long
    with pytest.raises(UsageError, match="larger than 65,536 bytes"):
        encode_record(replace(RECORD, user_metadata=long + "x"))


GARBAGE: dict[str, Any] = {
    "another version": {"v": 2, "run_id": "r", "operation": "append", "user": "u"},
    "no version": {"run_id": "r", "operation": "append", "user": "u"},
    "an operation nobody knows": {"v": 1, "run_id": "r", "operation": "shuffle", "user": "u"},
    "inputs that are no list": {"v": 1, "run_id": "r", "operation": "append", "user": "u",
        "inputs": {"a": 1}},
    "a version that is no number": {
        "v": 1, "run_id": "r", "operation": "append", "user": "u",
        "inputs": [{"location": "l", "format": "delta", "version": "7"}],
    },
    "a version beyond 64 bits": {
        "v": 1, "run_id": "r", "operation": "append", "user": "u",
        "inputs": [{"location": "l", "format": "delta", "version": 2**63}],
    },
    "a truth that is a number": {"v": 1, "run_id": "r", "operation": "append", "user": "u", "reads_self": 1},
    "a text": "hello",
    "a list": [1],
}  # fmt: skip


@pytest.mark.parametrize("body", GARBAGE.values(), ids=list(GARBAGE))
def test_garbage_is_unknown(body: object) -> None:
    for own, user in (
        (orjson.dumps(body).decode(), None),
        (None, orjson.dumps({"lakewarden": body}).decode()),
    ):
        reading = read_record(own, user)
        assert (reading.record, reading.verdict) == (None, RecordVerdict.UNKNOWN)


@pytest.mark.parametrize(
    "user",
    [None, 7, "", "load of Monday", '{"ticket": 12}', '{"lakewarden": {"run_id": "r"}}', '["lakewarden"]'],
    ids=str,
)
def test_what_says_nothing_of_lineage_is_absent(user: object) -> None:
    assert read_record(None, user).verdict is RecordVerdict.ABSENT


def test_a_torn_record_is_unknown() -> None:
    assert read_record(None, user_metadata(RECORD)[:-9]).verdict is RecordVerdict.UNKNOWN
    assert read_record(encode_record(RECORD)[:-9], None).verdict is RecordVerdict.UNKNOWN


@given(json_values, json_values)
def test_no_metadata_raises(own: object, user: object) -> None:
    for value in (own, user, _dumped(own), _dumped({"lakewarden": user})):
        read_record(value, value)
        read_record(None, value)


def _dumped(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # whole numbers beyond 64 bits
        return repr(value)


def _last_commit(folder: Path, **info: Any) -> Commit:
    table = LogWriter(root=folder).create()
    table.commit(add("a.parquet"), **info)
    *_, last = DeltaReader().commits(canonical(str(folder)), after=-1)
    return last


def test_the_log_reader_hands_the_record_out_with_the_commit(tmp_path: Path) -> None:
    spark = _last_commit(tmp_path / "spark", userMetadata=user_metadata(RECORD))
    assert (spark.lineage, spark.run_id) == (RECORD, "r-1")
    info: dict[str, Any] = {**custom_metadata(RECORD), "lakewarden.run_id": "r-1", "userMetadata": "mine"}
    deltars = _last_commit(tmp_path / "deltars", **info)
    assert (deltars.lineage, deltars.run_id, deltars.user_metadata) == (RECORD, "r-1", "mine")
    assert deltars.lineage_verdict is RecordVerdict.COMPLETE
    stranger = _last_commit(tmp_path / "stranger", **custom_metadata(RECORD))
    assert stranger.run_id == "r-1", "a record names its run, also where nothing else does"


def test_the_log_reader_survives_garbage_and_says_so(tmp_path: Path) -> None:
    commit = _last_commit(tmp_path, **{RECORD_KEY: 5})
    assert (commit.lineage, commit.lineage_verdict) == (None, RecordVerdict.UNKNOWN)


def test_a_commit_tells_the_uuid_it_sets(tmp_path: Path) -> None:
    LogWriter(root=tmp_path).create().commit(add("a.parquet"))
    ids = [commit.format_id for commit in DeltaReader().commits(canonical(str(tmp_path)), after=-1)]
    assert ids[0] is not None and ids[1:] == [None]
