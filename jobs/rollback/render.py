"""The plan for people and programs: a tree with before -> after per table, mermaid, JSON. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from lakewarden.catalog.units import count_of
from lakewarden.jobs.rollback.values import Lost, RollbackPlan, Step, TablePlan

__all__ = ["as_json", "as_mermaid", "as_tree"]


def as_json(plan: RollbackPlan) -> Mapping[str, Any]:
    """The stable form: `hash`, `applicable` and `tables`, each with the keys of docs/rollback.md."""
    return {
        "hash": plan.hash,
        "applicable": plan.applicable,
        "tables": [_table(one) for one in plan.tables],
    }


def as_tree(plan: RollbackPlan) -> Iterator[str]:
    """One line per table, indented by wave, with what is lost and what blocks below it."""
    for table in plan.tables:
        indent = "  " * table.wave
        yield f"{indent}{table.name}  {_change(table)}"
        yield from (f"{indent}  {line}" for line in _remarks(table))
    yield f"plan {plan.hash}: {'can be applied' if plan.applicable else 'needs consent'}"


def as_mermaid(plan: RollbackPlan) -> Iterator[str]:
    """The same as a flowchart."""
    yield "flowchart LR"
    numbers = {table.table_id: f"t{number}" for number, table in enumerate(plan.tables)}
    for table in plan.tables:
        label = f"{table.name}<br/>{_change(table)}".replace('"', "'")
        yield f'    {numbers[table.table_id]}["{label}"]'
    for table in plan.tables:
        for upstream in table.upstream:
            if upstream in numbers:
                yield f"    {numbers[upstream]} --> {numbers[table.table_id]}"


def _change(table: TablePlan) -> str:
    if table.step is Step.NONE:
        return f"stays at {table.from_version}"
    if table.waits:
        return f"{table.from_version} -> {table.to_version}, waits for its owner"
    if table.step is Step.RESTORE:
        return f"{table.from_version} -> {table.to_version}"
    return f"{table.from_version}, {table.step.replace('_', ' ')}"


def _remarks(table: TablePlan) -> Iterator[str]:
    if table.tainted:
        yield f"tainted: {_versions(table.tainted)}"
    if table.collateral:
        rows = sum(one.rows or 0 for one in table.collateral)
        versions = _versions(tuple(one.version for one in table.collateral))
        yield f"clean commits lost: {versions} ({count_of(rows, 'row')})"
    if table.unknown:
        yield f"unknown: {_versions(table.unknown)}"
    if table.transactions:
        apps = sorted({app for app, _ in table.transactions})
        yield f"streams that write it start a new epoch: {', '.join(apps)}"
    if table.streams:
        yield f"streams that read it fail until they are restarted: {', '.join(table.streams)}"
    yield from (f"blocked: {one.message}" for one in table.blocked_by)


def _versions(versions: tuple[int, ...]) -> str:
    return ", ".join(f"v{version}" for version in versions)


def _table(table: TablePlan) -> Mapping[str, Any]:
    return {
        "table_id": table.table_id,
        "name": table.name,
        "from": table.from_version,
        "to": table.to_version,
        "step": table.step.value,
        "wave": table.wave,
        "waits": table.waits,
        "tainted": list(table.tainted),
        "collateral": [_lost(one) for one in table.collateral],
        "unknown": list(table.unknown),
        "blocked_by": [
            {"why": one.why.value, "message": one.message, "consents": [c.value for c in one.consents]}
            for one in table.blocked_by
        ],
        "transactions": [{"app": app, "version": version} for app, version in table.transactions],
        "streams": list(table.streams),
        "consumers": list(table.consumers),
    }


def _lost(one: Lost) -> Mapping[str, Any]:
    return {"version": one.version, "operation": one.operation, "rows": one.rows, "files": one.files}
