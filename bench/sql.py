"""Governed SQL, upserts and the gateway: what they cost beside the same by hand, and whether they say what others say.

`--parts` chooses among: `overhead` (bench.sql_overhead), `upsert` and `stream` (bench.upsert), `gateway`
(bench.gateway), `tpch` (bench.tpch), `random`, `wide`, `mysql`, `paired`, `placed`, `names`. The last six compare
random statements with other databases, `--statements N` of each kind. `random` runs changes of PostgreSQL's dialect, of
MySQL's, and MySQL's of several tables, here and there. The others compile statements over many types and odd names,
and ask Spark what the steps would do: `wide` changes of PostgreSQL's dialect, `mysql` those of MySQL's and its upserts,
`paired` those of Teradata's and SQL Server's, which PostgreSQL gets in its own words, `placed` MERGEs and upserts of
every dialect, `names` conditions whose names collide, as many of PostgreSQL's and of MySQL's. `--seed S` begins
elsewhere; what differs or is refused is printed with its seed.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

import lakewarden
from bench.gateway import gateway_figures
from bench.measure import Figures, Options, parser_of, report
from bench.sql_overhead import compile_figures, overhead_figures
from bench.tpch import SCALE, refresh_figures
from bench.upsert import ROWS, SHAPES, pruning_figures, stream_figures
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.engines.spark.session import start_session
from lakewarden.jobs.runs.spark_settings import SparkSettings
from lakewarden.jobs.session.attached import Attached
from support.servers.mariadb import running_mariadb
from support.servers.postgres import running_postgres
from support.two_databases.game import Outcome, Played, play, play_several
from support.two_databases.games import (
    CHANGES_OF_POSTGRES,
    MARIADB_GAMES,
    PAIRED_CHANGES,
    PLACED,
    POSTGRES_GAMES,
    Game,
)
from support.two_databases.names_game import named_tables, play_names
from support.two_databases.sides import Server, two_sides
from support.two_databases.wide_game import FAST, create_wide

__all__ = ["main"]

STATEMENTS: Final = 300


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--parts", default=",".join(PARTS), help="what to measure, with commas between")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the table that is upserted into")
    parser.add_argument("--shapes", default=",".join(SHAPES), help="of that table, with commas between")
    parser.add_argument("--scale", type=float, default=SCALE, help="of TPC-H")
    parser.add_argument("--statements", type=int, default=STATEMENTS, help="random changes to compare")
    parser.add_argument("--seed", type=int, default=0, help="the first of their seeds")
    asked = parser.parse_args()
    parts = asked.parts.split(",")
    if unknown := set(parts) - PARTS.keys():
        parser.error(f"there is no part {min(unknown)}; there are {', '.join(PARTS)}")
    if unknown := set(asked.shapes.split(",")) - SHAPES.keys():
        parser.error(f"there is no shape {min(unknown)}; there are {', '.join(SHAPES)}")
    figures: Figures = {}
    for name in parts:
        with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
            figures |= PARTS[name](Path(folder), asked, Options(quick=asked.quick))
    report(figures)


def _overhead(folder: Path, _: argparse.Namespace, options: Options) -> Figures:
    figures = compile_figures(options)
    with _attached(folder, shuffles=2) as (spark, lw):
        return figures | overhead_figures(spark, lw, folder / "pairs", options)


def _upsert(folder: Path, asked: argparse.Namespace, options: Options) -> Figures:
    with _attached(folder, shuffles=8) as (spark, lw):
        return pruning_figures(spark, lw, folder / "pruned", asked.rows, asked.shapes.split(","), options)


def _stream(folder: Path, _: argparse.Namespace, options: Options) -> Figures:
    with _attached(folder, shuffles=8) as (spark, lw):
        return stream_figures(spark, lw, folder / "streams", options)


def _gateway(folder: Path, _: argparse.Namespace, options: Options) -> Figures:
    return gateway_figures(folder, options)


def _tpch(folder: Path, asked: argparse.Namespace, options: Options) -> Figures:
    with _attached(folder, shuffles=8) as (spark, lw):
        return refresh_figures(spark, lw, folder / "tpch", asked.scale, options)


def _random(folder: Path, asked: argparse.Namespace, options: Options) -> Figures:
    count = asked.statements // 10 if options.quick else asked.statements
    seeds = range(asked.seed, asked.seed + count)
    with _session(folder, shuffles=2) as spark:
        with running_postgres() as postgres:
            figures = _compared(spark, postgres, folder / "postgres", seeds)
        with running_mariadb() as mariadb:
            figures |= _compared(spark, mariadb, folder / "mysql", seeds)
            return figures | _several(spark, mariadb, folder / "several", seeds)


def _rehearsed(
    games: Mapping[str, Game], folder: Path, asked: argparse.Namespace, options: Options
) -> Figures:
    """What came of random statements of each kind whose steps Spark was only asked about."""
    count = asked.statements // 10 if options.quick else asked.statements
    seeds = range(asked.seed, asked.seed + count)
    figures: Figures = {}
    with _session(folder, shuffles=1) as spark:
        for key, value in FAST.items():
            spark.conf.set(key, value)
        for running, there in ((running_postgres, POSTGRES_GAMES), (running_mariadb, MARIADB_GAMES)):
            wanted = [name for name in games if name in there]
            if wanted:
                with running() as server, server.connected() as connection:
                    create_wide(server, connection)
                    for name in wanted:
                        played = (games[name](spark, server, connection, seed) for seed in seeds)
                        found = _figures(name, count, _outcomes(played))
                        sys.stderr.write(f"{found}\n")
                        figures |= found
    return figures


def _figures(name: str, count: int, found: Mapping[Outcome, int]) -> Figures:
    return {
        f"{name}_statements": count,
        f"{name}_same": found[Outcome.SAME],
        f"{name}_chosen": found[Outcome.CHOSEN],
        f"{name}_both_refuse": found[Outcome.BOTH_REFUSED],
        f"{name}_refused": found[Outcome.REFUSED],
        f"{name}_differ": found[Outcome.DIFFERENT],
    }


def _names(folder: Path, asked: argparse.Namespace, options: Options) -> Figures:
    """What came of conditions whose names collide."""
    count = asked.statements // 10 if options.quick else asked.statements
    figures: Figures = {}
    with _session(folder, shuffles=1) as spark:
        for key, value in FAST.items():
            spark.conf.set(key, value)
        for running in (running_postgres, running_mariadb):
            with (
                running() as server,
                server.connected() as connection,
                named_tables(spark, server, connection),
            ):
                seeds = range(asked.seed, asked.seed + 1000 * count)
                found: Counter[Outcome] = Counter()
                for one in play_names(spark, server, connection, seeds, count):
                    found[one.outcome] += 1
                    if one.outcome is Outcome.DIFFERENT:
                        sys.stderr.write(f"{one}\n")
                figures |= {
                    f"names_{server.dialect}_{outcome.name.lower()}": found[outcome] for outcome in found
                }
    return figures


PARTS: Final[Mapping[str, Callable[[Path, argparse.Namespace, Options], Figures]]] = {
    "overhead": _overhead,
    "upsert": _upsert,
    "stream": _stream,
    "gateway": _gateway,
    "tpch": _tpch,
    "random": _random,
    "wide": partial(_rehearsed, CHANGES_OF_POSTGRES),
    "mysql": partial(_rehearsed, MARIADB_GAMES),
    "paired": partial(_rehearsed, PAIRED_CHANGES),
    "placed": partial(_rehearsed, PLACED),
    "names": _names,
}


def _compared(spark: SparkSession, server: Server, folder: Path, seeds: range) -> Figures:
    """How many random changes of a server's dialect there were, and what came of them."""
    with two_sides(spark, server, folder) as both:
        found = _outcomes(play(both, seed) for seed in seeds)
    return {
        f"{server.dialect}_statements": len(seeds),
        f"{server.dialect}_same": found[Outcome.SAME],
        f"{server.dialect}_chosen": found[Outcome.CHOSEN],
        f"{server.dialect}_refused": found[Outcome.REFUSED],
        f"{server.dialect}_differ": found[Outcome.DIFFERENT],
    }


def _several(spark: SparkSession, server: Server, folder: Path, seeds: range) -> Figures:
    """How many random changes of several tables there were, and what came of them."""
    with two_sides(spark, server, folder) as both:
        both.manage()
        found = _outcomes(play_several(both, seed) for seed in seeds)
    return {
        "several_statements": len(seeds),
        "several_same": found[Outcome.SAME],
        "several_matches": found[Outcome.BOTH_REFUSED],
        "several_refused": found[Outcome.REFUSED],
        "several_differ": found[Outcome.DIFFERENT],
    }


def _outcomes(played: Iterable[Played]) -> Counter[Outcome]:
    """How often each came; what differs or was refused is told as it comes."""
    found: Counter[Outcome] = Counter()
    for one in played:
        found[one.outcome] += 1
        if one.outcome in (Outcome.DIFFERENT, Outcome.REFUSED):
            sys.stderr.write(f"{one}\n")
    return found


@contextmanager
def _session(folder: Path, *, shuffles: int) -> Iterator[SparkSession]:
    own = (
        ("spark.sql.warehouse.dir", folder.as_uri()),
        ("spark.sql.shuffle.partitions", str(shuffles)),
        ("spark.databricks.delta.snapshotPartitions", "2"),
    )
    spark = start_session(SparkSettings(conf=own))
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _attached(folder: Path, *, shuffles: int) -> Iterator[tuple[SparkSession, Attached]]:
    services = open_services(home=folder / "home", flags={})
    initialise(services, services.user)
    with (
        _session(folder, shuffles=shuffles) as spark,
        lakewarden.attach(spark, home=services.settings.home) as lw,
    ):
        yield spark, lw


if __name__ == "__main__":
    main()
