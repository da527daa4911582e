"""The rollback plan over a million version edges, as a process of its own: reading the rows, graph, closure, plan.

`.venv/bin/python -m bench.rollback [--quick] -o json`

A fleet of tables with ten versions each; every version reads five versions of the fifty tables before it, so that a bad
load into an early table reaches nearly all of them. Tables, versions and edges grow together; the curve is on standard
error. `plan_seconds` is the process from start to end, `plan_rss_mb` the most memory it had. `apply_ms_per_table` and
`bare_restore_ms` come from bench/rollback_apply.py.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow.compute as pc

from bench.measure import Figures, Options, options, report
from bench.rollback_apply import SIZES, apply_figures
from lakewarden.catalog.garbage_collection import uncollected
from lakewarden.catalog.lineage.graph.build import ROW_COLUMNS, build_graph
from lakewarden.catalog.lineage.graph.incarnations import Histories
from lakewarden.catalog.lineage.versions import Effect, Version
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.model.rows import Confidence, LineageRow
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.jobs.rollback.plan.facts import TableFacts
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.plan.request import RollbackRequest, ToVersion
from lakewarden.jobs.rollback.plan.rollback_planner import plan_rollback

EDGES: Final = 1_000_000
CURVE: Final = (10_000, 100_000)
VERSIONS: Final = 10
INPUTS: Final = 5
REACH: Final = 50
AT_ONCE: Final = 100_000
"""Rows written in one commit."""
_AS_A_COMMAND: Final = (
    "from lakewarden.daemon.process.spared_libraries import spare_unused_libraries; spare_unused_libraries();"
    "from bench.rollback import main; main()"
)
"""What the script `lakewarden` does first, too."""
_APPEND: Final = Operation.APPEND.value
_REPLACE: Final = Operation.REPLACE.value
KEPT: Final = 4
"""The version that the bad table goes back to."""


def main() -> None:
    """Measure everything and print it; with `--plan`, as a child, make one plan."""
    child = argparse.ArgumentParser(add_help=False)
    child.add_argument("--plan", type=Path)
    chosen, _ = child.parse_known_args()
    if chosen.plan is not None:
        sys.stdout.write(json.dumps(planned(chosen.plan)) + "\n")
        return
    wanted = options(__doc__ or "")
    report({**plans(wanted), **applied(wanted), **_append_overheads(wanted)})


def plans(chosen: Options) -> Figures:
    """The curve, and the figures of its last point: the median of three, or of one if quick."""
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
        for edges in CURVE:
            _tell(_measured(Path(folder), edges))
        runs = [_measured(Path(folder), EDGES) for _ in range(1 if chosen.quick else 3)]
    runs.sort(key=lambda run: run["plan_seconds"])
    _tell(runs[len(runs) // 2])
    return {name: runs[len(runs) // 2][name] for name in ("plan_edges", "plan_seconds", "plan_rss_mb")}


def applied(chosen: Options) -> Figures:
    """The slower of both sizes, per table; only the smaller one if quick."""
    runs = [apply_figures(*size) for size in (SIZES[:1] if chosen.quick else SIZES)]
    return max(runs, key=lambda run: run["apply_ms_per_table"])


def _append_overheads(chosen: Options) -> Mapping[str, float]:
    """What governed appends cost (bench/lineage_capture.py):
    apart, because importing PySpark here would count as ours."""
    command = [sys.executable, "-c", "from bench.lineage_capture import main; main()"]
    done = subprocess.run(
        [*command, *(["--quick"] if chosen.quick else [])], check=True, stdout=subprocess.PIPE
    )
    measured: Mapping[str, float] = json.loads(done.stdout)
    return measured


def _tell(run: Mapping[str, float]) -> None:
    sys.stderr.write(
        f"{run['plan_edges']:>9,.0f} edges, {run['tables']:>6,.0f} tables rewound: "
        f"{run['plan_seconds']:.2f} s, {run['plan_rss_mb']:.0f} MB; "
        f"of these graph {run['graph']:.2f} s, plan {run['plan']:.2f} s; {run['cpu']:.2f} s of CPU\n"
    )


def _measured(folder: Path, edges: int) -> dict[str, float]:
    """One plan in a process of its own."""
    home = folder / str(edges)
    if not home.exists():
        store_lineage(home, edges)
    begin = time.perf_counter()
    command = [sys.executable, "-c", _AS_A_COMMAND, "--plan", str(home)]
    # As installed: modules are compiled once, not by every process.
    cached = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=cached).stdout
    seconds = time.perf_counter() - begin
    told: dict[str, float] = json.loads(output)
    return {**told, "plan_seconds": seconds}


def store_lineage(home: Path, edges: int) -> None:
    """Write that many rows of `lakewarden.lineage`, shuffled as in a table that was appended to by many."""
    store = _store(home)
    store.create([])
    rows = lineage(edges)
    for begin in range(0, len(rows), AT_ONCE):
        store.append(LINEAGE, rows[begin : begin + AT_ONCE], because="bench")


def lineage(edges: int) -> list[LineageRow]:
    """The rows, shuffled."""
    chance = random.Random(edges)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    rows = []
    for table in range(1, edges // (VERSIONS * INPUTS) + 2):
        for version in range(VERSIONS):
            nearest = range(max(0, table - REACH), table)
            for source in chance.sample(nearest, min(INPUTS, table)):
                row = LineageRow(
                    output_id=table_id(table),
                    output_version=version,
                    output_parent=version - 1,
                    input_id=table_id(source),
                    input_version=max(0, version - chance.randint(0, 1)),
                    operation=_APPEND,
                    run_id=f"{table:016x}{version:016x}",
                    confidence=Confidence.COMMITTED,
                    recorded_at=at,
                )
                rows.append(row)
    chance.shuffle(rows)
    return rows


def _store(home: Path) -> DeltaSystemStore:
    return DeltaSystemStore(canonical(str(home)), StorageOptions(), actor="bench")


def table_id(number: int) -> str:
    """The id of a table, as long as those that are minted."""
    return f"{number:032x}"


def planned(home: Path) -> dict[str, float]:
    """One plan from stored rows, with what the logs of all tables said; how much it rewinds, how long what took."""
    begin = time.perf_counter()
    with uncollected():  # as `jobs/rollback/planning_service.py` does
        rows, plan, built = _plan(home)
    return {
        "plan_edges": rows,
        "tables": sum(table.acts for table in plan.tables),
        "graph": built - begin,
        "plan": time.perf_counter() - built,
        "cpu": sum(os.times()[:2]),
        "plan_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,  # kilobytes on Linux
    }


def _plan(home: Path) -> tuple[int, RollbackPlan, float]:
    rows = _store(home).rows(LINEAGE).arrow(ROW_COLUMNS)
    ids = [table_id(0), *pc.unique(rows["output_id"]).to_pylist()]
    histories: Histories = {one: _history() for one in ids}
    graph = build_graph(rows, histories)
    built = time.perf_counter()
    facts = {one: TableFacts(table_id=one, name=f"db.{one}", location=f"file:///{one}") for one in ids}
    request = RollbackRequest(seeds=(ToVersion(table_id=ids[0], version=KEPT),), cascade=True)
    plan = plan_rollback(request, graph, histories, facts)
    return rows.num_rows, plan, built


def _history() -> tuple[Version, ...]:
    created = Version(
        version=0, parent=None, operation=_REPLACE, effect=Effect.FRESH, known=True, rows=1000, files=1
    )
    appended = (
        Version(
            version=version,
            parent=version - 1,
            operation=_APPEND,
            effect=Effect.APPEND,
            known=True,
            blind=True,
            rows=1000,
            files=1,
        )
        for version in range(1, VERSIONS)
    )
    return (created, *appended)


if __name__ == "__main__":
    main()
