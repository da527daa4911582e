"""What an Iceberg table is judged to be: what keeps it from being more than observed, and what is damaged."""

import io
from collections.abc import Callable
from pathlib import Path

import fastavro
import pytest

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import DeleteFiles, DeleteKind, LogProblem, Observation
from lakewarden.catalog.storage.file_store import canonical
from support.builders.iceberg_tables import IcebergWriter

DAMAGED = "cannot be understood."


def made(root: Path, **changes: object) -> IcebergWriter:
    table = IcebergWriter(root=root, **changes)  # type: ignore[arg-type]  # tests name real fields
    table.commit(add=(("a.parquet", 100), ("b.parquet", 200)))
    return table


def observed(table: IcebergWriter) -> Observation:
    seen = IcebergReader().observe(canonical(str(table.root)))
    assert isinstance(seen, Observation)
    return seen


def of_type(kind: str) -> dict[str, object]:
    return {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 1, "name": "x", "required": False, "type": kind}],
    }


@pytest.mark.parametrize(
    ("changes", "feature", "way_out"),
    [
        ({"format_version": 1}, "format version 1", "format-version"),
        ({"properties": {"gc.enabled": "False"}}, "gc.enabled=false", "set it to true"),
        ({"properties": {"gc.enabled": "off"}}, "gc.enabled=false", "set it to true"),
        ({"properties": {"encryption.key-id": "k"}}, "encryption", "Nothing has to be done."),
        ({"more": {"encryption-keys": [{"key-id": "k"}]}}, "encryption", "Nothing has to be done."),
        (
            {"properties": {"write.data.path": "file:/elsewhere/data"}},
            "a data path outside its folder",
            "unset the property",
        ),
        ({"told": "s3a://lake/t"}, "another location", "Register the table there"),
        ({"told": "data/t"}, "a relative location", "rewrite_table_path"),
        ({"schema": of_type("quaternion")}, "the type quaternion", "newer lakewarden"),
    ],
    ids=["v1", "gc", "gc off", "key", "keys", "data path", "a copy", "relative", "type"],
)
def test_it_is_observed_only_for_a_reason_with_a_way_out(
    changes: dict[str, object], feature: str, way_out: str, tmp_path: Path
) -> None:
    table = IcebergWriter(root=tmp_path / "t", **changes)  # type: ignore[arg-type]  # tests name real fields
    table.publish() if table.told == "s3a://lake/t" else table.commit(add=(("a.parquet", 100),))
    seen = observed(table)
    assert seen.capabilities.unsupported == (feature,)
    assert not (seen.capabilities.vacuum or seen.capabilities.compact)
    (warning,) = seen.warnings
    assert warning.check == "features_actionable" and "only observed" in warning.message
    assert way_out in warning.message


def test_snapshots_from_format_version_1_are_not_told_apart_by_numbers(tmp_path: Path) -> None:
    table = IcebergWriter(root=tmp_path / "t", format_version=1)
    table.commit(add=(("a.parquet", 100),))
    table.format_version = 2
    table.commit(add=(("b.parquet", 100),))
    seen = observed(table)
    assert seen.capabilities.unsupported == ("snapshots of format version 1",)
    assert not seen.capabilities.vacuum and "expire_snapshots" in seen.warnings[0].message


def test_files_that_only_a_tag_needs_are_known_to_lie_elsewhere(tmp_path: Path) -> None:
    table = IcebergWriter(root=tmp_path / "t")
    table.commit(add=((f"file:{tmp_path}/src/a.parquet", 100),))
    tagged = table.current
    table.commit(add=(("b.parquet", 100),), remove=(f"file:{tmp_path}/src/a.parquet",), operation="overwrite")
    table.snapshots = [one for one in table.snapshots if one["snapshot-id"] in (tagged, table.current)]
    table.more["refs"] = {
        "main": {"type": "branch", "snapshot-id": table.current},
        "audit": {"type": "tag", "snapshot-id": tagged},
    }
    table.publish()
    assert observed(table).elsewhere == (f"{tmp_path}/src",)
    assert f"{tmp_path}/src/a.parquet" in set(IcebergReader().side_files(canonical(str(table.root))))


@pytest.mark.parametrize("version", [2, 3])
def test_nothing_stands_against_a_plain_table(version: int, tmp_path: Path) -> None:
    inside = {"write.data.path": f"file:{tmp_path}/t/data", "gc.enabled": "true"}
    seen = observed(made(tmp_path / "t", format_version=version, properties=inside))
    assert (seen.capabilities.unsupported, seen.warnings, seen.protocol) == ((), (), (version, version))


def test_an_encrypted_table_is_counted_by_what_its_writer_says(tmp_path: Path) -> None:
    table = made(tmp_path / "t", properties={"encryption.key-id": "k"})
    for path in table.metadata.glob("*.avro"):
        path.write_bytes(b"who knows")
    seen = observed(table)
    assert (seen.files, seen.bytes, seen.rows) == (2, 300, None)
    with pytest.raises(UnreadableError, match="The table is encrypted"):
        list(IcebergReader().files(seen.location))


def test_files_outside_its_folder_are_known_and_named(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.commit(add=((f"file:{tmp_path}/other/c.parquet", 1),))
    seen = observed(table)
    assert seen.capabilities.unsupported == ("files outside its folder",)
    assert seen.elsewhere == (f"{tmp_path}/other",)
    assert f"{tmp_path}/other/c.parquet" in {one.path for one in IcebergReader().files(seen.location)}


def test_one_place_has_many_spellings(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for number, told in enumerate(("file:{}", "file://{}", "{}", "file://{}/")):
        table = made(tmp_path / f"t{number}", told=told.format(tmp_path / f"t{number}"))
        assert {one.path for one in IcebergReader().files(observed(table).location)} == {
            "a.parquet",
            "b.parquet",
        }
    linked = made(tmp_path / "t9", told=f"file:{tmp_path}/link/t9")
    assert (observed(linked).capabilities.unsupported, observed(linked).elsewhere) == ((), ())


@pytest.mark.parametrize(
    ("kind", "how", "rows", "deleted", "vectors"),
    [
        (DeleteKind.POSITION, {"content": 1}, None, 0, 0),
        (DeleteKind.EQUALITY, {"content": 2}, None, 0, 0),
        (DeleteKind.VECTOR, {"content": 1, "format": "PUFFIN", "of": "a.parquet"}, 17, 3, 1),
        (DeleteKind.VECTOR, {"content": 1, "format": "PUFFIN", "of": "gone.parquet"}, 20, 0, 0),
        (DeleteKind.POSITION, {"content": 1, "format": "PUFFIN"}, None, 0, 0),
    ],
    ids=[
        "positions",
        "equality",
        "a vector",
        "a vector of a file that is gone",
        "a vector of nobody knows what",
    ],
)
def test_deletes_are_counted_by_kind_and_rows_only_where_they_are_known(
    kind: DeleteKind, how: dict[str, object], rows: int | None, deleted: int, vectors: int, tmp_path: Path
) -> None:
    table = made(tmp_path / "t", format_version=3)
    table.commit(deletes=(table.delete("d", **how),), operation="delete")  # type: ignore[arg-type]  # real names
    seen = observed(table)
    assert seen.deletes == (DeleteFiles(kind=kind, files=1, rows=3, bytes=50),)
    assert (seen.files, seen.bytes, seen.stored_rows) == (2, 300, 20), "data alone"
    assert (seen.rows, seen.deleted_rows, seen.deletion_vectors) == (rows, deleted, vectors)
    listed = {
        one.deletion_vector or one.path
        for one in IcebergReader().files(seen.location)
        if one.deletes or vectors
    }
    assert "d" in listed or (kind is DeleteKind.VECTOR and not vectors)


def test_columns_have_the_tables_own_ids_and_sparks_types(tmp_path: Path) -> None:
    point = {"type": "struct", "fields": [{"id": 7, "name": "lat", "required": True, "type": "double"}]}
    fields = [
        {"id": 3, "name": "at", "required": True, "type": "timestamptz", "doc": "when"},
        {"id": 4, "name": "n", "required": False, "type": "decimal(10, 2)"},
        {"id": 5, "name": "p", "required": False, "type": point},
        {"id": 8, "name": "l", "required": False,
         "type": {"type": "list", "element-id": 9, "element": point, "element-required": False}},
        {"id": 10, "name": "m", "required": False,
         "type": {"type": "map", "key-id": 11, "key": "string", "value-id": 12, "value": "long",
                  "value-required": True}},
        {"id": 13, "name": "f", "required": False, "type": "fixed[16]"},
    ]  # fmt: skip
    spec = {"partition-specs": [{"spec-id": 0, "fields": [
        {"source-id": 3, "field-id": 1000, "name": "at_day", "transform": "day"},
        {"source-id": 4, "field-id": 1001, "name": "n", "transform": "identity"},
        {"source-id": 5, "field-id": 1002, "name": "p", "transform": "void"},
    ]}]}  # fmt: skip
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    table = IcebergWriter(root=tmp_path / "t", schema=schema, more=spec)
    table.commit()
    seen = observed(table)
    assert [(one.id, one.path, one.type, one.nullable) for one in seen.schema] == [
        (3, "at", "timestamp", False),
        (4, "n", "decimal(10,2)", True),
        (5, "p", "struct<lat:double>", True),
        (7, "p.lat", "double", False),
        (8, "l", "array<struct<lat:double>>", True),
        (7, "l.element.lat", "double", False),
        (10, "m", "map<string,bigint>", True),
        (13, "f", "binary", True),
    ]
    assert (seen.schema[0].comment, seen.partition_columns) == ("when", ("day(at)", "n"))


def _manifest(table: IcebergWriter) -> Path:
    return next(table.metadata.glob("*-m0.avro"))


def _list(table: IcebergWriter) -> Path:
    return next(table.metadata.glob("snap-*.avro"))


@pytest.mark.parametrize("of", [_manifest, _list], ids=["manifest", "list"])
@pytest.mark.parametrize(
    ("how", "check"),
    [
        (lambda path: path.unlink(), "log_contiguous"),
        (lambda path: path.write_bytes(b""), "log_readable"),
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "log_readable"),
        (lambda path: path.write_bytes(b"PAR1" * 20), "log_readable"),
    ],
    ids=["missing", "empty", "cut", "something else"],
)
def test_manifests_that_are_missing_or_damaged_are_one_sentence(
    of: Callable[[IcebergWriter], Path], how: Callable[[Path], object], check: str, tmp_path: Path
) -> None:
    table = made(tmp_path / "t")
    path = of(table)
    how(path)
    found = IcebergReader().observe(canonical(str(table.root)))
    assert isinstance(found, LogProblem)
    assert (found.check, found.message.count(".") > 0, found.message.endswith(".")) == (check, True, True)
    assert f"metadata/{path.name}" in found.message


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"{}", b'{"format-version": true}', b"\x1f\x8bno", b'{"format-version": 2}', b"null"],
)
def test_damaged_metadata_is_one_sentence(body: bytes, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.head.write_bytes(body)
    found = IcebergReader().observe(canonical(str(table.root)))
    assert found == LogProblem(check="log_readable", message=f"metadata/v1.metadata.json {DAMAGED}")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format_version": 4}, "The table has format version 4; this lakewarden reads 1 to 3."),
        (
            {"format_version": 1, "more": {"table-uuid": None}},
            "The table has no UUID, so nothing tells it from another one at its place.",
        ),
    ],
    ids=["of tomorrow", "without a UUID"],
)
def test_what_cannot_be_read_at_all_is_left_alone(
    changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    table = IcebergWriter(root=tmp_path / "t", **changes)  # type: ignore[arg-type]  # tests name real fields
    table.publish()
    found = IcebergReader().observe(canonical(str(table.root)))
    assert found == LogProblem(check="protocol_supported", message=said)


@pytest.mark.parametrize("at", range(0, 600, 7))
def test_a_flipped_bit_in_a_manifest_ends_in_words_or_changes_a_value(at: int, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    path = _manifest(table)
    data = bytearray(path.read_bytes())
    data[-1 - at % len(data)] ^= 1 << at % 8
    path.write_bytes(bytes(data))
    found = IcebergReader().observe(canonical(str(table.root)))
    assert isinstance(found, Observation) or found.message.endswith(".")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"type": "array", "items": {"type": "record", "name": "none", "fields": []}}, [{}]),
        ({"type": "array", "items": "null"}, [None]),
        ({"type": "array", "items": {"type": "fixed", "name": "none", "size": 0}}, [b""]),
    ],
    ids=["empty records", "nulls", "no bytes"],
)
def test_a_list_of_nothing_keeps_nobody_busy(kind: object, value: object, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    schema = {"type": "record", "name": "manifest_file", "fields": [{"name": "x", "type": kind}]}
    written = io.BytesIO()
    fastavro.writer(written, schema, [{"x": value}], codec="null")
    many = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
    damaged = written.getvalue()[:-18] + many + written.getvalue()[-17:]
    _list(table).write_bytes(damaged)
    found = IcebergReader().observe(canonical(str(table.root)))
    assert isinstance(found, LogProblem) and found.message.endswith(DAMAGED)


def test_older_snapshots_that_are_not_whole_keep_nobody_from_reading_head(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    _list(table).unlink()
    table.commit(add=(("c.parquet", 1),))
    seen = observed(table)
    assert (seen.version, seen.files) == (2, 3)
    (warning,) = seen.warnings
    assert warning.check == "history_complete" and "Older versions are not whole" in warning.message
