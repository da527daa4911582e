"""`make bench-all` runs every benchmark there is, and what it runs exists."""

from pathlib import Path

from bench.__main__ import CHECKS, SPEED

BENCH = Path(__file__).parents[3] / "bench"
NEEDS_ROOT = "deploy"


def test_every_benchmark_that_can_be_started_has_its_turn() -> None:
    started = {
        path.stem for path in BENCH.glob("[a-z]*.py") if "__main__" in path.read_text(encoding="utf-8")
    }
    by_another = {"rollback_apply"}  # a part of `rollback`
    assert {part.split()[0] for part in (*SPEED, *CHECKS)} == started - {NEEDS_ROOT} - by_another


def test_every_part_of_bench_sql_has_its_turn() -> None:
    asked = [part.split() for part in (*SPEED, *CHECKS) if part.startswith("sql ")]
    source = (BENCH / "sql.py").read_text(encoding="utf-8")
    parts = source.partition("PARTS: Final[")[2].partition("\n}")[0]
    named = [line.split('"')[1] for line in parts.splitlines() if line.startswith('    "')]
    assert sorted(name for words in asked for name in words[2].split(",")) == sorted(named)
