"""Small fleets written down by hand: `history("create", "append <- flights@3", ...)`, one version per line."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from lakewarden.catalog.lineage.graph.build import build_graph
from lakewarden.catalog.lineage.versions import Effect, Touch, Version, effect_of
from lakewarden.catalog.model.lineage_record import LineageInput
from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.jobs.rollback.plan.facts import TableFacts
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.plan.request import RollbackRequest
from lakewarden.jobs.rollback.plan.rollback_planner import plan_rollback

__all__ = ["NO_ROWS", "facts", "history", "plan"]

NO_ROWS: pa.Table = codec(LINEAGE).encode([])
_MAINTENANCE = ("OPTIMIZE", "VACUUM END")
_SPELLED = re.compile(r"(?P<what>[A-Za-z ]+?)(?: (?P<target>\d+))?(?: <- (?P<inputs>.+))?(?P<foreign> \?)?$")


def history(*lines: str) -> tuple[Version, ...]:
    """Versions 0, 1, ...: `append`, `append <- a@1, b@2..4` (changes after 2), `RESTORE 3`, `merge ?` (foreign),
    `overwrite <- self`. Every commit brings one file of 10 rows, by run `run-<version>`."""
    return tuple(_version(number, line) for number, line in enumerate(lines))


def _version(number: int, line: str) -> Version:
    found = _SPELLED.fullmatch(line)
    assert found is not None, line
    what = found["what"]
    inputs = [one.strip() for one in (found["inputs"] or "").split(",") if one.strip()]
    one = Version(
        version=number,
        parent=number - 1 if number > 0 else None,
        operation="replace" if what == "create" else what,
        effect=Effect.FRESH if number == 0 else effect_of(what),
        known=found["foreign"] is None,
        inputs=tuple(_input(text) for text in inputs if text != "self"),
        reads_self="self" in inputs,
        blind=what == "append" and "self" not in inputs,
        rows=10,
        files=1,
        run_id=f"run-{number}",
        user="ana",
        format_id="u1",
    )
    if what == "RESTORE":
        target = None if found["target"] is None else int(found["target"])
        return replace(one, effect=Effect.RESTORE, target=target, known=target is not None, rows=None)
    if what == "remove files":
        return replace(one, target=one.inputs[0].version, rows=None)
    if what.isupper():
        touch = Touch.MAINTENANCE if what in _MAINTENANCE else Touch.SCHEMA
        touch = Touch.PROPERTIES if what == "SET TBLPROPERTIES" else touch
        return replace(one, effect=Effect.ALIAS, touch=touch, known=True, rows=None, files=None)
    return one


def _input(text: str) -> LineageInput:
    table, _, versions = text.partition("@")
    after, _, upto = versions.rpartition("..")
    return LineageInput(
        table_id=table,
        location=f"file:///w/{table}",
        format="delta",
        version=int(upto),
        from_version=int(after) if after else None,
    )


def facts(table_id: str, **known: object) -> TableFacts:
    """Facts of a table that nothing else is known of."""
    bare = TableFacts(table_id=table_id, name=f"db.{table_id}", location=f"file:///w/{table_id}")
    return replace(bare, **known)  # type: ignore[arg-type]  # tests name real fields


def plan(
    request: RollbackRequest, tables: Mapping[str, tuple[Version, ...]], *known: TableFacts
) -> RollbackPlan:
    """The plan for tables by hand; what `known` does not tell is unremarkable."""
    told = {one.table_id: one for one in known}
    every = {table_id: told.get(table_id, facts(table_id)) for table_id in tables}
    graph = build_graph(NO_ROWS, tables, runs=request.runs)
    return plan_rollback(request, graph, tables, every)
