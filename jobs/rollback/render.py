"""The plan as people and programs read it: a tree, a mermaid picture, a JSON value. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from lakewarden.catalog.units import count_of
from lakewarden.jobs.rollback.consents import by_words
from lakewarden.jobs.rollback.facts import PropertyChange
from lakewarden.jobs.rollback.values import Blocked, Blocker, Lost, RollbackPlan, Step, TablePlan

__all__ = ["as_json", "as_mermaid", "as_tree"]


def as_json(plan: RollbackPlan) -> dict[str, Any]:
    """The plan for `-o json`. The keys of a table that others rely on: table_id, name, from, to, tainted, collateral,
    unknown, blocked_by; `to` is null for a table that was born tainted."""
    return {
        "hash": plan.hash,
        "applicable": plan.applicable,
        "why_not": [blocker.message for _, blocker in plan.blockers()],
        "consents": list(plan.request.consents.kinds()),
        "agreed_to": list(by_words(plan.request.consents.named)),
        "marked_clean": [
            {"table_id": one.table_id, "name": one.name, "version": one.version} for one in plan.spared
        ],
        "tables": [_table_as_json(one) for one in plan.tables],
    }


def as_tree(plan: RollbackPlan) -> str:
    """The plan as text: each table below the one its taint came from first, with its versions before -> after.

    A table with several upstream tables is drawn once; the others it read from are named. Ends with a sentence.
    """
    by_id = {one.table_id: one for one in plan.tables}
    children: dict[str | None, list[TablePlan]] = {}
    for one in plan.tables:
        children.setdefault(_drawn_below(one, by_id), []).append(one)
    lines = [line for root in children.get(None, ()) for line in _branch(root, "", children, by_id)]
    spared = [
        f"Version {one.version} of {one.name} is marked clean and does not count." for one in plan.spared
    ]
    return "\n".join([*lines, "", *spared, _sentence(plan)])


def as_mermaid(plan: RollbackPlan) -> str:
    """The plan as a mermaid flowchart: what is rewound, what waits, what is blocked, what is clean already."""
    number = {one.table_id: f"t{place}" for place, one in enumerate(plan.tables)}
    lines = ["flowchart TD"]
    for one in plan.tables:
        label = f"{one.name}<br/>{_way(one)}".replace('"', "'")
        lines.append(f'    {number[one.table_id]}["{label}"]:::{_look(one)}')
    for one in plan.tables:
        lines += [f"    {number[up]} --> {number[one.table_id]}" for up in one.upstream if up in number]
    lines += [
        "    classDef rewound fill:#fde2c8,stroke:#c05a00",
        "    classDef blocked fill:#f8d0d0,stroke:#a00000",
        "    classDef waits fill:#fff3bf,stroke:#8a6d00",
        "    classDef clean fill:#d9f2d9,stroke:#1a7f37",
    ]
    return "\n".join(lines)


def _drawn_below(table: TablePlan, by_id: Mapping[str, TablePlan]) -> str | None:
    """Its upstream table in the wave before, by name; none for a root and for the first of tables that read one another."""
    above = [by_id[up] for up in table.upstream if up in by_id and by_id[up].wave < table.wave]
    if not above and table.step is Step.NONE and table.trigger is not None:
        above = [by_id[up] for up in table.upstream if up in by_id and by_id[up].step is not Step.NONE]
    return max(above, key=lambda one: (one.wave, one.name)).table_id if above else None


def _branch(
    table: TablePlan,
    indent: str,
    children: Mapping[str | None, list[TablePlan]],
    by_id: Mapping[str, TablePlan],
) -> Iterator[str]:
    yield f"{indent}{table.name}  {_way(table)}{_details(table)}"
    others = [by_id[up].name for up in table.upstream if up in by_id and up != _drawn_below(table, by_id)]
    inner = indent.replace("└─ ", "   ").replace("├─ ", "│  ")
    if others and table.trigger is not None:
        yield f"{inner}     also read {', '.join(others)}"
    if table.acts and table.properties:
        changes = ", ".join(_change(one) for one in table.properties)
        yield f"{inner}     properties that go back: {changes}"
    for stream in table.streams:
        yield f"{inner}     ~ {stream.what_to_do}"
    for one in table.blocked_by:
        yield f"{inner}     ! {one.message}{_lifted_by(table, one)}"
    below = children.get(table.table_id, [])
    for place, child in enumerate(below):
        mark = "└─ " if place == len(below) - 1 else "├─ "
        yield from _branch(child, inner + mark, children, by_id)


def _lifted_by(table: TablePlan, blocker: Blocker) -> str:
    if blocker.why is Blocked.OWNER:
        return f" (--agreed {table.name})"
    again = " or --reapply" if blocker.why is Blocked.COLLATERAL and table.can_reapply else ""
    return f" (--consent {' or '.join(blocker.consents)}{again})" if blocker.consents else ""


def _way(table: TablePlan) -> str:
    match table.step:
        case Step.NONE if table.to_version is None:
            return f"{table.from_version} -> ?"
        case Step.NONE:
            return f"{table.from_version} stays"
        case Step.RESTORE:
            return f"{table.from_version} -> {table.to_version}"
        case Step.REMOVE_FILES:
            gone = ", ".join(str(version) for version in table.undoable)
            return f"{table.from_version} without the files of {gone}"
        case Step.DROP | Step.QUARANTINE:
            return f"{table.from_version} -> {table.step}"


def _details(table: TablePlan) -> str:
    told = []
    if table.tainted:
        told.append(f"tainted {_versions(table.tainted)}")
    if table.step is Step.NONE and table.tainted and table.to_version is not None:
        told.append("its head is clean")
    if table.collateral:
        told.append(f"collateral {', '.join(_lost(one) for one in table.collateral)}")
    if table.unknown:
        told.append(f"unknown {_versions(table.unknown)}")
    if table.waits:
        told.append("waits for its owner")
    return f"  ({'; '.join(told)})" if told else ""


def _lost(one: Lost) -> str:
    size = f" {count_of(one.rows, 'row')}" if one.rows else ""
    return f"{one.version} {one.operation}{size}{' added again' if one.reapplied else ''}"


def _change(one: PropertyChange) -> str:
    head, target = ("unset" if value is None else repr(value) for value in (one.head, one.target))
    return f"{one.key} {head} -> {target}"


def _versions(versions: tuple[int, ...]) -> str:
    """`3, 5-9`."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and version == runs[-1][-1] + 1:
            runs[-1][1:] = [version]
        else:
            runs.append([version])
    return ", ".join("-".join(str(end) for end in run) for run in runs)


def _sentence(plan: RollbackPlan) -> str:
    acting = sum(one.acts for one in plan.tables)
    text = (
        f"Plan {plan.hash}: {count_of(acting, 'table')} to change in {count_of(len(plan.waves()), 'wave')}."
    )
    reasons = sum(1 for _ in plan.blockers())
    return (
        text if plan.applicable else f"{text} It cannot be applied yet: {count_of(reasons, 'reason')} above."
    )


def _look(table: TablePlan) -> str:
    if table.blocked_by:
        return "blocked"
    if table.waits:
        return "waits"
    return "rewound" if table.acts else "clean"


def _table_as_json(table: TablePlan) -> dict[str, Any]:
    return {
        "table_id": table.table_id,
        "name": table.name,
        "from": table.from_version,
        "to": table.to_version,
        "tainted": list(table.tainted),
        "collateral": [_lost_as_json(one) for one in table.collateral],
        "unknown": list(table.unknown),
        "blocked_by": [
            {
                "why": one.why.value,
                "message": one.message,
                "consents": [consent.value for consent in one.consents],
            }
            for one in table.blocked_by
        ],
        "step": table.step.value,
        "wave": table.wave,
        "trigger": None if table.trigger is None else table.trigger.value,
        "waits": table.waits,
        "upstream": list(table.upstream),
        "undoable": list(table.undoable),
        "transactions": [{"app_id": app_id, "version": version} for app_id, version in table.transactions],
        "streams": [
            {
                "query_id": one.query_id,
                "reads": one.reads,
                "sink": one.sink,
                "what_to_do": one.what_to_do,
            }
            for one in table.streams
        ],
        "consumers": list(table.consumers),
        "properties": [{"key": one.key, "head": one.head, "target": one.target} for one in table.properties],
    }


def _lost_as_json(one: Lost) -> dict[str, Any]:
    return {
        "version": one.version,
        "operation": str(one.operation),
        "touch": one.touch.value,
        "rows": one.rows,
        "files": one.files,
        "run_id": one.run_id,
        "user": one.user,
        "can_reapply": one.can_reapply,
        "reapplied": one.reapplied,
    }
