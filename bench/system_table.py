"""The system table with real columns: upserts of 1, 100 and 10,000 rows at 1,000 and 100,000 rows, beside
bare delta-rs; the commands that read it, and a daemon with 1,000 tables.

`.venv/bin/python -m bench.system_table [--quick] [--processes] -o json`;
`--processes` leaves out all but commands and daemon.
"""

import random
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from bench.fleet import fleet
from bench.measure import Figures, Options, median_ms, parser_of, report
from bench.processes import commands, daemon
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import TABLES
from lakewarden.catalog.system.schema import stored_schema
from lakewarden.catalog.system.store import DeltaSystemStore

SMALL, LARGE = 1_000, 100_000


def main() -> None:
    """Measure everything and print it."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--processes", action="store_true", help="only the commands and the daemon")
    asked = parser.parse_args()
    chosen, rows = Options(quick=asked.quick), fleet(LARGE)
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
        place = Path(folder)
        home = place / "home"
        figures = {} if asked.processes else {**upserts(place, rows, chosen), **floor(place, rows, chosen)}
        filled_store(home / "system", rows)
        figures |= {**commands(home, chosen), **daemon(place, chosen)}
        report(figures)


def upserts(folder: Path, rows: Sequence[TableRow], chosen: Options) -> Figures:
    """Edits that replace random rows, on a warm store; `fresh` opens the store anew each time, as a command does."""
    small = filled_store(folder / "small", rows[:SMALL])
    large = filled_store(folder / "large", rows)
    return {
        "upsert_1_at_1k_ms": upsert_ms(small, rows[:SMALL], 1, chosen.repeat(50)),
        "upsert_1_at_100k_ms": upsert_ms(large, rows, 1, chosen.repeat(50)),
        "upsert_100_at_1k_ms": upsert_ms(small, rows[:SMALL], 100, chosen.repeat(15)),
        "upsert_100_at_100k_ms": upsert_ms(large, rows, 100, chosen.repeat(15)),
        "upsert_10000_at_100k_ms": upsert_ms(large, rows, 10_000, chosen.repeat(10)),
        "upsert_1_at_100k_fresh_ms": fresh_upsert_ms(folder / "large", rows, chosen.repeat(20)),
        "no_change_at_100k_ms": median_ms(lambda _: large.edit(TABLES, lambda _: [], because="idle"), 20),
    }


def filled_store(folder: Path, rows: Sequence[TableRow]) -> DeltaSystemStore:
    """A store with these rows and the seven of the system tables themselves."""
    store = opened(folder)
    store.create(system_rows(store, now=datetime.now(UTC), actor="bench"))
    store.edit(TABLES, lambda _: rows, because="fill")
    return store


def opened(folder: Path) -> DeltaSystemStore:
    """A store object that knows nothing yet."""
    return DeltaSystemStore(canonical(str(folder)), StorageOptions(), actor="bench")


def upsert_ms(store: DeltaSystemStore, rows: Sequence[TableRow], size: int, times: int) -> float:
    """Replace `size` random rows by changed ones in one commit."""
    chance = random.Random(size)
    edits = [_changed(chance.sample(rows, size), f"{size}-{number}") for number in range(times + 1)]

    def edit(number: int) -> None:
        done = store.edit(TABLES, lambda _: edits[number], because="bench")
        assert len(done.rows) == size

    edit(times)
    return median_ms(edit, times)


def fresh_upsert_ms(folder: Path, rows: Sequence[TableRow], times: int) -> float:
    """Replace one random row through a store opened for it."""
    chance = random.Random(0)
    edits = [_changed([chance.choice(rows)], f"fresh-{number}") for number in range(times)]
    return median_ms(
        lambda number: opened(folder).edit(TABLES, lambda _: edits[number], because="bench"), times
    )


def floor(folder: Path, rows: Sequence[TableRow], chosen: Options) -> Figures:
    """What delta-rs itself takes, with the same columns: appending one row blindly, merging one row into 100,000."""
    encoded = codec(TABLES).encode(rows)
    buckets = pa.array([number % 32 for number in range(len(rows))], pa.int32())
    stored = encoded.append_column(stored_schema(TABLES).field("bucket"), buckets)
    location = str(folder / "bare")
    write_deltalake(location, stored, partition_by=["bucket"])
    ones = [stored.slice(number, 1) for number in random.Random(1).sample(range(len(rows)), 20)]

    def merge(number: int) -> None:
        one = ones[number]
        predicate = f"t.bucket = {one.column('bucket')[0].as_py()} AND t.table_id = s.table_id"
        merger = DeltaTable(location).merge(one, predicate, source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def append(number: int) -> None:
        write_deltalake(location, ones[number], mode="append")

    return {
        "delta_rs_merge_1_at_100k_ms": median_ms(merge, chosen.repeat(20)),
        "delta_rs_append_1_at_100k_ms": median_ms(append, chosen.repeat(20)),
    }


def _changed(rows: Sequence[TableRow], mark: str) -> list[TableRow]:
    return [replace(row, updated_by=mark) for row in rows]


if __name__ == "__main__":
    main()
