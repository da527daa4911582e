"""What a plan says, held against what it has to say. Each difference is a sentence."""

from collections.abc import Iterator
from typing import Any

from support.stranger_oracle.oracle import Answer, Question
from support.stranger_oracle.world import World

__all__ = ["blockers", "differences"]

Place = tuple[str, int]


def differences(
    plan: dict[str, Any],
    world: World,
    question: Question,
    said: dict[str, Answer],
    *,
    agreed: frozenset[str],
    cascade: bool,
) -> Iterator[str]:
    """Compare a plan as JSON. `agreed`: consents as `kind=table@version` or `kind=table`; `reapply` is one of them."""
    tables = {str(one["name"]).removeprefix("db."): one for one in plan["tables"]}
    expected = set(said)
    if set(tables) != expected:
        yield f"tables: {sorted(tables)}, not {sorted(expected)}"
    blocked = False
    for name in sorted(set(tables) & set(said)):
        one, mine = tables[name], said[name]
        yield from _versions(name, one, mine)
        yield from _lost(name, one, mine)
        yield from _reads(name, one, mine)
        waits = _waits(world, question, name, mine) and not cascade
        if bool(one["waits"]) != waits:
            yield f"{name} waits: {one['waits']}, not {waits}"
        mine_blocked = blockers(name, mine, agreed)
        if {block["why"] for block in one["blocked_by"]} != mine_blocked:
            yield (
                f"{name} blocked by: {[block['why'] for block in one['blocked_by']]}, "
                f"not {sorted(mine_blocked)}"
            )
        blocked |= bool(mine_blocked) and not waits
    if plan["applicable"] == blocked:
        yield f"applicable: {plan['applicable']}, not {not blocked}"
    if set(tables) == expected:
        yield from _waves(tables, said)


def blockers(name: str, mine: Answer, agreed: frozenset[str]) -> set[str]:
    """What keeps a table from going back that nobody has agreed to."""
    found = set()
    if mine.asked:
        found.add("unknown")
    if mine.to is None:
        return found | (
            set()
            if {f"{kind}={name}" for kind in ("drop_born_tainted", "quarantine_born_tainted")} & agreed
            else {"born_tainted"}
        )
    again = set(mine.reapplied) if "reapply" in agreed else set()
    lost = {*mine.clean_lost, *mine.columns_lost, *mine.unknown_lost} - again
    if any(f"collateral={name}@{one}" not in agreed for one in lost):
        found.add("collateral")
    return found


def _versions(name: str, one: dict[str, Any], mine: Answer) -> Iterator[str]:
    if one["from"] != mine.head:
        yield f"{name} from: {one['from']}, not {mine.head}"
    if one["to"] != mine.to:
        yield f"{name} to: {one['to']}, not {mine.to}"
    if sorted(one["tainted"]) != sorted(mine.tainted):
        yield f"{name} tainted: {one['tainted']}, not {list(mine.tainted)}"
    if sorted(one["unknown"]) != sorted(mine.unknown):
        yield f"{name} unknown: {one['unknown']}, not {list(mine.unknown)}"


def _lost(name: str, one: dict[str, Any], mine: Answer) -> Iterator[str]:
    content = [lost for lost in one["collateral"] if lost["touch"] == "content"]
    clean = sorted(lost["version"] for lost in content if not lost["unknown"])
    if mine.to is not None and clean != sorted(mine.clean_lost):
        yield f"{name} clean and lost: {clean}, not {list(mine.clean_lost)}"
    unknown = sorted(lost["version"] for lost in content if lost["unknown"])
    if mine.to is not None and unknown != sorted(mine.unknown_lost):
        yield f"{name} unknown, kept and lost: {unknown}, not {list(mine.unknown_lost)}"
    columns = sorted(lost["version"] for lost in one["collateral"] if lost["touch"] == "schema")
    if mine.to is not None and columns != sorted(mine.columns_lost):
        yield f"{name} columns lost: {columns}, not {list(mine.columns_lost)}"
    again = sorted(lost["version"] for lost in content if lost["can_reapply"])
    if mine.to is not None and again != sorted(mine.reapplied):
        yield f"{name} can be added again: {again}, not {list(mine.reapplied)}"
    odd = sorted({lost["touch"] for lost in one["collateral"]} - {"content", "schema"})
    if odd:
        yield f"{name} loses {odd}"


def _reads(name: str, one: dict[str, Any], mine: Answer) -> Iterator[str]:
    sources = dict(mine.sources)
    for commit in one["commits"]:
        if commit["role"] != "tainted" or commit["version"] not in sources:
            continue
        found = {
            (str(read["name"]).removeprefix("db."), version)
            for read in commit["reads"]
            for version in read["versions"]
        }
        if found != set(sources[commit["version"]]):
            yield (
                f"{name} version {commit['version']} read: {sorted(found)}, "
                f"not {sorted(sources[commit['version']])}"
            )
        if {read["confidence"] for read in commit["reads"]} - {"committed"}:
            yield (
                f"{name} version {commit['version']}: "
                f"confidence {[read['confidence'] for read in commit['reads']]}"
            )


def _waits(world: World, question: Question, name: str, mine: Answer) -> bool:
    if not mine.goes or name == question.named or any(table == name for table, _ in question.seeds):
        return False
    said = set(world.depends.get(name, {}).values())
    return not said & {"cascade", "block"}


def _waves(tables: dict[str, Any], said: dict[str, Answer]) -> Iterator[str]:
    """What goes back comes after what it was derived from, where that is no circle."""
    made = {(name, place[0]) for name, one in said.items() for _, places in one.sources for place in places}
    for name, source in sorted(made):
        both = name in tables and source in tables and name != source
        if not both or _leads(made, source, name) or "restore" not in tables[name]["step"]:
            continue
        if tables[source]["step"] == "restore" and tables[source]["wave"] >= tables[name]["wave"]:
            yield f"waves: {source} {tables[source]['wave']}, {name} {tables[name]['wave']}"


def _leads(made: set[tuple[str, str]], start: str, goal: str) -> bool:
    seen, todo = set(), [start]
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += [source for name, source in made if name == one]
    return goal in seen - {start}
