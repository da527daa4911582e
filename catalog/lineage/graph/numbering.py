"""Versions of many tables as numbers 0, 1, 2, ...: sorted by table, then by version. Pure, in Arrow."""

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.lineage.edges import NOT_KNOWN, NOTHING
from lakewarden.catalog.lineage.graph.incarnations import Histories, Incarnations, Uuids
from lakewarden.catalog.model.arrow_columns import coded, whole
from lakewarden.catalog.model.rows import NO_PARENT

__all__ = ["NumberedLineage", "Numbering", "encode_rows", "numbers", "packed"]

_INT64: Final = pa.int64()
_TYPES: Final = {"B": pa.uint8(), "i": pa.int32(), "q": _INT64}


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbering:
    """Numbers nodes. `keys[n]` is table * len(versions) + rank of the version, for node n."""

    known: Incarnations
    versions: pa.Array
    keys: pa.Array

    def nodes(self, tables: pa.Array, versions: pa.Array) -> pa.Array:
        """Node numbers (int32) of pairs; null where either is null or the pair has none."""
        return pc.index_in(_keys(tables, versions, self.versions), value_set=self.keys)

    def owners(self) -> pa.Array:
        """The table's number of each node."""
        return pc.divide(self.keys, max(len(self.versions), 1))

    def values(self) -> pa.Array:
        """The version of each node."""
        ranks = pc.subtract(self.keys, pc.multiply(self.owners(), len(self.versions)))
        return self.versions.take(ranks)


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberedLineage:
    """Rows of `lakewarden.lineage` with tables as numbers."""

    table: pa.Table
    output: pa.Array
    input: pa.Array
    """Null for an input that is no managed table."""
    unsaid: pa.Array
    """Marks rows by which the inputs are not all known."""

    def column(self, name: str) -> pa.Array:
        """One column, in one piece."""
        return whole(self.table.column(name))


def encode_rows(
    rows: pa.Table,
    histories: Histories,
    places: Mapping[str, str],
    newest: Mapping[str, str],
    branching: Collection[str] = (),
) -> tuple[NumberedLineage, Incarnations]:
    """The rows with numbered tables, those of `histories` included.

    `places` gives the `table_id` of a location that is managed now and was not when the row was written, `newest` the
    last UUID of tables whose log is not there, `branching` those whose versions are no line.
    """
    outputs, inputs = coded(rows.column("output_id")), coded(rows.column("input_id"))
    names = pc.unique(pa.concat_arrays([outputs.dictionary, inputs.dictionary]))
    ids = [places.get(name, name) for name in names.to_pylist()]
    tables = sorted({name for name in ids if _is_table(name)} | set(histories))
    index = {name: number for number, name in enumerate(tables)}
    number_of = pa.array([index.get(name) for name in ids], _INT64)
    told, made = (_spread(number_of.take(pc.index_in(of.dictionary, names)), of) for of in (inputs, outputs))
    said = NumberedLineage(
        table=_in_one_piece(rows),
        output=made,
        input=told,
        unsaid=_spread(pc.equal(inputs.dictionary, NOT_KNOWN), inputs),
    )
    cut = [index[name] for name, log in histories.items() if log and log[0].parent is not None]
    logless = {index[name]: one for name, one in newest.items() if name in index and not histories.get(name)}
    nothing = _spread(pc.equal(inputs.dictionary, NOTHING), inputs)
    uuids = replace(_uuids(said, nothing, [*cut, *logless]), newest=logless)
    known = Incarnations(tables, histories, uuids, branching)
    versions, read_id = said.column("input_version"), said.column("input_format_id")
    output = known.locate_all(made, said.column("output_version"), said.column("output_format_id"))
    source = known.locate_all(told, versions, read_id)
    of_itself = pc.fill_null(pc.and_(pc.equal(told, made), pc.is_null(read_id)), False)
    source = pc.if_else(of_itself, output, source)
    lost = pc.and_(pc.is_valid(told), pc.or_(pc.is_null(source), pc.is_null(versions)))
    # A UUID beside a place is that of a table, and nobody manages it.
    foreign = pa.array([index.get(one) is None and "://" in one for one in ids], pa.bool_())
    outside = _spread(foreign.take(pc.index_in(inputs.dictionary, names)), inputs)
    lost = pc.or_(lost, pc.and_(outside, pc.is_valid(read_id)))
    return replace(said, output=output, input=source, unsaid=pc.or_(said.unsaid, lost)), known


def _uuids(said: NumberedLineage, nothing: pa.Array, cut: Sequence[int]) -> Uuids:
    """What rows tell of UUIDs; of tables by number. `nothing` marks rows of versions that read nothing, `cut`
    the tables whose log is not there or no longer begins with their first version."""
    made, before = said.column("output_format_id"), said.column("input_format_id")
    anew = pc.and_(nothing, pc.and_(pc.is_valid(made), pc.is_valid(before)))
    parents = pc.coalesce(said.column("output_parent"), pc.subtract(said.column("output_version"), 1))
    born = pc.and_(pc.equal(parents, NO_PARENT), pc.is_valid(made))
    begun = pc.and_(born, pc.is_in(said.output, value_set=pa.array(cut, _INT64)))
    replaced = (said.output.filter(anew), made.filter(anew), before.filter(anew))
    return Uuids(
        replaced={
            (table, uuid): old
            for table, uuid, old in zip(*(one.to_pylist() for one in replaced), strict=True)
        },
        begun=frozenset(
            zip(said.output.filter(begun).to_pylist(), made.filter(begun).to_pylist(), strict=True)
        ),
    )


def numbers(known: Incarnations, pairs: Iterable[tuple[pa.Array, pa.Array]]) -> Numbering:
    """Number every (table, version) that occurs; pairs with a null are left out."""
    pairs = list(pairs)
    every = pa.concat_arrays([pc.unique(versions) for _, versions in pairs])
    versions = _sorted(pc.unique(every).drop_null())
    keys = [pc.unique(_keys(owners, values, versions)) for owners, values in pairs]
    return Numbering(
        known=known,
        versions=versions,
        keys=_sorted(pc.unique(pa.concat_arrays(keys)).drop_null()),
    )


def packed(values: pa.Array, code: str) -> "array[int]":
    """An Arrow array of whole numbers without nulls as `array(code)`: `B`, `i` or `q`."""
    made: array[int] = array(code)
    whole = values.cast(_TYPES[code])
    if len(whole):
        width = made.itemsize
        data = memoryview(whole.buffers()[1])
        made.frombytes(data[whole.offset * width : (whole.offset + len(whole)) * width])
    return made


def _keys(tables: pa.Array, versions: pa.Array, universe: pa.Array) -> pa.Array:
    ranks = pc.index_in(versions, value_set=universe, skip_nulls=True).cast(_INT64)
    return pc.add(pc.multiply(tables, len(universe)), ranks)


def _is_table(name: str) -> bool:
    return name not in (NOTHING, NOT_KNOWN) and "://" not in name


def _sorted(values: pa.Array) -> pa.Array:
    return values.take(pc.array_sort_indices(values))


def _in_one_piece(rows: pa.Table) -> pa.Table:
    """The columns that are asked for again and again, copied together once; names are numbers by now."""
    names = (name for name in rows.column_names if name not in ("output_id", "input_id", "run_id"))
    return pa.table({name: whole(rows.column(name)) for name in names}).append_column(
        "run_id", rows.column("run_id")
    )


def _spread(of_names: pa.Array, coded: pa.DictionaryArray) -> pa.Array:
    """What is known of each distinct name, for each row."""
    return of_names.take(coded.indices)
