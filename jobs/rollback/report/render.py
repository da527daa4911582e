"""A plan's tables as people and programs read them: a tree, a mermaid picture, a JSON value. Pure.

jobs/rollback/report/text.py adds what is known of the commits, and the command that comes next.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.units import count_of
from lakewarden.jobs.rollback.plan.consents import by_words
from lakewarden.jobs.rollback.plan.facts import PropertyChange
from lakewarden.jobs.rollback.plan.model import Lost, RollbackPlan, Step, TablePlan
from lakewarden.jobs.rollback.report.next_steps import lifted_by

__all__ = ["WIDTH", "as_json", "as_mermaid", "as_tree", "versions_in_words"]

WIDTH: Final = 110
"""As wide as a text is that somebody reads."""
_LEAST: Final = 40
"""What is left for words however deep the tree is."""
_MOST_LOST: Final = 2
_MOST_RANGES: Final = 8


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


def as_tree(plan: RollbackPlan, *, owners: Mapping[str, str], width: int = WIDTH) -> str:
    """The plan as text: each table below the one its taint came from first, with its versions before -> after and its
    owner (by `table_id`, where there is one).

    A table with several upstream tables is drawn once; the others it read from are named.
    """
    by_id = {one.table_id: one for one in plan.tables}
    children: dict[str | None, list[TablePlan]] = {}
    for one in plan.tables:
        children.setdefault(_drawn_below(one, by_id), []).append(one)
    drawing = _Drawing(children=children, by_id=by_id, owners=owners, width=width)
    lines = [line for root in children.get(None, ()) for line in _branch(root, "", drawing)]
    spared = [
        f"Version {one.version} of {one.name} is marked clean and does not count." for one in plan.spared
    ]
    return "\n".join([*lines, *spared])


def as_mermaid(plan: RollbackPlan) -> str:
    """The plan as a mermaid flowchart: tables to rewind, waiting, blocked, and clean already."""
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
    """Its upstream table in the wave before, by name; none for a root and for the first of tables that read
    one another."""
    above = [by_id[up] for up in table.upstream if up in by_id and by_id[up].wave < table.wave]
    if not above and table.step is Step.NONE and table.trigger is not None:
        above = [by_id[up] for up in table.upstream if up in by_id and by_id[up].step is not Step.NONE]
    return max(above, key=lambda one: (one.wave, one.name)).table_id if above else None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Drawing:
    """The tables below each table, the tables by id, and their owners; as wide as it may be."""

    children: Mapping[str | None, list[TablePlan]]
    by_id: Mapping[str, TablePlan]
    owners: Mapping[str, str]
    width: int

    def wrapped(self, first: str, text: str, others: str) -> Iterable[str]:
        """A text in lines that begin with `first`, then with `others`."""
        return textwrap.wrap(
            text,
            max(self.width, len(others) + _LEAST),
            initial_indent=first,
            subsequent_indent=others,
            break_long_words=False,
            break_on_hyphens=False,
        )


def _branch(table: TablePlan, indent: str, drawing: _Drawing) -> Iterator[str]:
    by_id = drawing.by_id
    below = drawing.children.get(table.table_id, [])
    inner = indent.replace("└─ ", "   ").replace("├─ ", "│  ")
    lead = f"{inner}{'│' if below else ' '}    "
    head = f"{table.name}  {_way(table)}{_details(table, drawing.owners.get(table.table_id))}"
    yield from drawing.wrapped(indent, head, f"{lead}  ")
    others = [by_id[up].name for up in table.upstream if up in by_id and up != _drawn_below(table, by_id)]
    if others and table.trigger is not None:
        yield from drawing.wrapped(lead, f"also read {', '.join(others)}", f"{lead}  ")
    if table.acts and table.properties:
        changes = ", ".join(_change(one) for one in table.properties)
        yield from drawing.wrapped(lead, f"properties that go back: {changes}", f"{lead}  ")
    for stream in table.streams:
        yield from drawing.wrapped(lead, f"~ {stream.what_to_do}", f"{lead}  ")
    for one in table.blocked_by:
        yield from drawing.wrapped(lead, f"! {one.message}{lifted_by(table, one)}", f"{lead}  ")
    for place, child in enumerate(below):
        mark = "└─ " if place == len(below) - 1 else "├─ "
        yield from _branch(child, inner + mark, drawing)


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


def _details(table: TablePlan, owner: str | None) -> str:
    told = [] if owner is None else [f"owner {owner}"]
    if table.tainted:
        told.append(f"tainted {versions_in_words(table.tainted)}")
    if table.step is Step.NONE and table.tainted and table.to_version is not None:
        told.append("its head is tainted and stays so" if table.stays_tainted else "its head is clean")
    if table.collateral:
        told.append(f"collateral {_collateral(table.collateral)}")
    if table.unknown:
        told.append(f"unknown {versions_in_words(table.unknown)}")
    if table.waits:
        told.append("waits for its owner")
    return f"  ({'; '.join(told)})" if told else ""


def _collateral(lost: tuple[Lost, ...]) -> str:
    if len(lost) <= _MOST_LOST:
        return ", ".join(_lost(one) for one in lost)
    again = sum(one.reapplied for one in lost)
    rows = count_of(sum(one.rows or 0 for one in lost), "row")
    return f"{count_of(len(lost), 'commit')}, {rows}{f', {again} of them added again' if again else ''}"


def _lost(one: Lost) -> str:
    size = f" {count_of(one.rows, 'row')}" if one.rows else ""
    origin = " of unknown origin" if one.unknown else ""
    return f"{one.version} {one.operation}{size}{origin}{' added again' if one.reapplied else ''}"


def _change(one: PropertyChange) -> str:
    head, target = ("unset" if value is None else repr(value) for value in (one.head, one.target))
    return f"{one.key} {head} -> {target}"


def versions_in_words(versions: Iterable[int]) -> str:
    """`3, 5-9`; of many ranges the first, and how many versions more."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and version == runs[-1][-1] + 1:
            runs[-1][1:] = [version]
        else:
            runs.append([version])
    told = ", ".join("-".join(str(end) for end in run) for run in runs[:_MOST_RANGES])
    more = sum(run[-1] - run[0] + 1 for run in runs[_MOST_RANGES:])
    return f"{told} and {more} more" if more else told


def _look(table: TablePlan) -> str:
    if table.blocked_by or table.stays_tainted:
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
        "stays_tainted": table.stays_tainted,
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
        "unknown": one.unknown,
    }
