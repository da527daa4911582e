"""The whole plan as a tired person reads it: what happens in a few lines, the tables, the commits,
the next command. Pure.

Nothing is wider than it may be unless a name is, and nothing is longer than can be read: what is left out is counted.
"""

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.units import count_of, printable
from lakewarden.jobs.rollback.plan.losses import counted
from lakewarden.jobs.rollback.plan.model import RollbackPlan, TablePlan
from lakewarden.jobs.rollback.report.details import (
    CommitDetail,
    CommitReason,
    Details,
    TableDetails,
    TaintedRead,
)
from lakewarden.jobs.rollback.report.next_steps import NextStep
from lakewarden.jobs.rollback.report.render import WIDTH, as_json, as_tree, versions_in_words

__all__ = ["as_text", "commands_in_words", "not_in_plan", "not_in_plan_as_json", "with_details"]

_MOST_NAMES: Final = 5
_MOST_COMMITS: Final = 12
"""Commits of one table in the text; JSON has all that were gathered."""
_INDENT: Final = 16
_BY: Final = 3
"""The column of a commit's writer, which gives way where there is little room."""
_LEAST_BY: Final = 12


def as_text(
    plan: RollbackPlan, details: Details, steps: Sequence[NextStep], caller: Caller, *, width: int = WIDTH
) -> str:
    """For `caller`: summary, tables, commits, and how to go on."""
    width = min(width, WIDTH)
    parts = [
        "\n".join(_summary(plan, details, caller, width)),
        as_tree(plan, owners={one.table_id: one.owner for one in details.tables if one.owner}, width=width),
        *("\n".join(_commits(plan, one, width)) for one in details.tables if one.commits),
        "\n".join(commands_in_words(steps)),
    ]
    return "\n\n".join(part for part in parts if part)


def commands_in_words(steps: Sequence[NextStep]) -> Iterator[str]:
    """Each way to go on and its command, on a line of its own, whole, to be copied."""
    if steps:
        yield "Next:" if len(steps) == 1 else "Next, one of:"
    for one in steps:
        yield f"  # {one.what}"
        yield f"  {one.command}"


def with_details(
    plan: RollbackPlan, details: Details, steps: Sequence[NextStep], caller: Caller
) -> dict[str, Any]:
    """`as_json` with `next` (a command, null if there is none), `next_choices`, `clones`, `not_followed`, and by table
    `owner`, `may_apply` (whether `caller` may), `commits` and `commits_left_out`."""
    told = as_json(plan)
    of = {one.table_id: one for one in details.tables}
    return {
        **told,
        "next": steps[0].command if steps else None,
        "next_choices": [{"what": one.what, "command": one.command} for one in steps],
        **not_in_plan_as_json(details),
        "tables": [
            {
                **table,
                "may_apply": details.may_change(table["table_id"], caller),
                **_table_as_json(of.get(table["table_id"])),
            }
            for table in told["tables"]
        ],
    }


def not_in_plan(plan: RollbackPlan, details: Details) -> Iterator[tuple[str, str]]:
    """The tables that may hold bad rows and are in no plan: as what, and how they become part of one."""
    if details.clones:
        yield "stays as it is", _clones(details)
    if details.beyond:
        yield "not followed", _beyond(plan, details)


def not_in_plan_as_json(details: Details) -> dict[str, Any]:
    """The same, without advice."""
    return {
        "clones": [{"name": clone, "of": source} for clone, source in details.clones],
        "not_followed": [{"name": name, "read": source} for name, source in details.beyond],
    }


def _summary(plan: RollbackPlan, details: Details, caller: Caller, width: int) -> Iterator[str]:
    acting = [one for one in plan.tables if one.acts]
    yield from _wrapped("", f"Plan {plan.hash}: {_state(plan)}", width)
    if not plan.tables:
        return
    tainted = sum(len(one.tainted) for one in acting)
    told = [
        ("goes back", f"{count_of(len(acting), 'table')} in {count_of(len(plan.waves()), 'wave')}, "
                      f"{count_of(tainted, 'bad version')}: {_names(acting)}" if acting else "nothing"),
        *_losses(acting),
        ("nobody knows", _unknown([one for one in plan.tables if one.unknown])),
        ("never clean", _names([one for one in plan.tables if one.to_version is None])),
        ("waits", _waiting([one for one in plan.tables if one.waits], details)),
        ("must agree", _asked(plan, details, caller)),
        *not_in_plan(plan, details),
    ]  # fmt: skip
    for what, text in told:
        if text:
            yield from _wrapped(f"  {what:<{_INDENT - 2}}", text, width)


def _state(plan: RollbackPlan) -> str:
    if plan.applicable:
        acts = any(one.acts for one in plan.tables)
        return "it can be applied." if acts else "there is nothing to do."
    reasons = sum(1 for _ in plan.blockers())
    return f"it cannot be applied yet, for {count_of(reasons, 'reason')} (the lines with ! below)."


def _losses(acting: Sequence[TablePlan]) -> Iterator[tuple[str, str]]:
    for what, again in (("is lost", False), ("comes again", True)):
        lost = [(one, commit) for one in acting for commit in one.collateral if commit.reapplied is again]
        if lost:
            rows = sum(commit.rows or 0 for _, commit in lost)
            tables = list({one.table_id: one for one, _ in lost}.values())
            told = f"{counted([commit for _, commit in lost])}, {count_of(rows, 'row')}: {_names(tables)}"
            yield what, told


def _unknown(tables: Sequence[TablePlan]) -> str:
    commits = sum(len(one.unknown) for one in tables)
    return f"{count_of(commits, 'commit')} that may be bad: {_names(tables)}" if tables else ""


def _waiting(tables: Sequence[TablePlan], details: Details) -> str:
    return f"{_names(tables, details)}: not changed until the owner says so, or --cascade" if tables else ""


def _asked(plan: RollbackPlan, details: Details, caller: Caller) -> str:
    """Whose tables change that the caller may not change."""
    tables = [one for one in plan.tables if one.acts and not details.may_change(one.table_id, caller)]
    return f"{_names(tables, details)}: not yours, so an admin has to apply this" if tables else ""


def _clones(details: Details) -> str:
    """The clones that may hold bad rows, and how they become part of a plan."""
    names = _some([f"{clone} (of {source})" for clone, source in details.clones])
    declare = _declare(*details.clones[0])
    return (
        f"{names}: shallow clones; what they copied is on no record. `{declare}` makes one part of the plan"
    )


def _beyond(plan: RollbackPlan, details: Details) -> str:
    """The tables that may hold bad rows by way of one that no plan follows."""
    names = _some([f"{name} (read {source})" for name, source in details.beyond])
    root = next(table.name for table in plan.tables if table.acts)
    return (
        f"{names}: what a shallow clone, or a table that is not managed, has of the bad rows is on no record. "
        f"`{_declare(details.beyond[0][0], root)}` makes one part of the plan"
    )


def _declare(table: str, upstream: str) -> str:
    return shlex.join(
        ["lakewarden", "lineage", "declare", table, "--upstream", upstream, "--on-rollback", "plan"]
    )


def _names(tables: Sequence[TablePlan], details: Details | None = None) -> str:
    told = []
    for one in tables:
        known = None if details is None else details.of(one.table_id)
        owner = "no owner" if known is None or known.owner is None else f"owner {known.owner}"
        told.append(one.name if details is None else f"{one.name} ({owner})")
    return _some(told)


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _commits(plan: RollbackPlan, table: TableDetails, width: int) -> Iterator[str]:
    """A heading, a line for each commit, and below it why it is tainted."""
    name = next((one.name for one in plan.tables if one.table_id == table.table_id), table.table_id)
    yield f"Commits of {name}"
    shown = _shown(table.commits)
    cells = [
        ("version", "why", "committed (UTC)", "by", "operation", "rows"),
        *(_cells(one) for one in shown),
    ]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    beyond = sum(widths) + 2 * len(widths) - width
    widths[_BY] = max(widths[_BY] - max(beyond, 0), min(widths[_BY], _LEAST_BY))
    for row, one in zip(cells, (None, *shown), strict=True):
        fitted = (_plain(cell, room).ljust(room) for cell, room in zip(row, widths, strict=True))
        yield f"  {'  '.join(fitted)}".rstrip()
        if one is not None:
            for line in _below(one):
                yield from _wrapped(" " * (widths[0] + 4), line, width)
    left = len(table.commits) - len(shown) + table.more
    if left:
        yield (
            f"  and {count_of(left, 'more commit')} (-o json lists {'most' if table.more else 'all'} of them)"
        )


def _shown(commits: Sequence[CommitDetail]) -> Sequence[CommitDetail]:
    """What would be lost before what is tainted; each in order of version."""
    if len(commits) <= _MOST_COMMITS:
        return commits
    order = list(CommitReason)
    first = sorted(commits, key=lambda one: (order.index(one.role), one.version))[:_MOST_COMMITS]
    return sorted(first, key=lambda one: one.version)


def _cells(one: CommitDetail) -> tuple[str, ...]:
    rows = "?" if one.rows is None else f"{one.rows:,}"
    at = "?" if one.at is None else f"{one.at:%Y-%m-%d %H:%M:%S}"
    by = " with ".join(_plain(text, 28) for text in (one.user, one.engine) if text) or "?"
    return str(one.version), one.role.value, at, by, _plain(one.operation, 18), rows


def _below(one: CommitDetail) -> Iterator[str]:
    if one.seed:
        yield "it is what you asked to undo"
    for read in one.reads[:_MOST_NAMES]:
        yield _read(read, sure=one.role is CommitReason.TAINTED)
    if len(one.reads) > _MOST_NAMES:
        yield f"and {count_of(len(one.reads) - _MOST_NAMES, 'more table')} that it read"
    if one.role is CommitReason.UNKNOWN and not one.reads:
        yield "nobody recorded what it read"
    if one.run_id is not None:
        yield f"run {_plain(one.run_id, 80)}"


def _read(read: TaintedRead, *, sure: bool) -> str:
    versions = versions_in_words(read.versions) + (f" and {read.more} more" if read.more else "")
    plural = len(read.versions) > 1 or read.more > 0
    of = f"{'versions' if plural else 'version'} {versions} of {read.name}"
    what = f"what changed in {of}" if read.changes else of
    return f"{'read' if sure else 'may have read'} {what} ({read.confidence.value})"


def _wrapped(lead: str, text: str, width: int) -> Iterable[str]:
    return textwrap.wrap(
        text, width, initial_indent=lead, subsequent_indent=" " * len(lead), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _plain(text: str, width: int) -> str:
    """Somebody else's words on one line of bounded width: nothing that a terminal would act on."""
    told = printable(text, keep="")
    return told if len(told) <= width else f"{told[: width - 1]}…"


def _table_as_json(known: TableDetails | None) -> dict[str, Any]:
    if known is None:
        return {"owner": None, "commits": [], "commits_left_out": 0}
    return {
        "owner": known.owner,
        "commits": [_commit_as_json(one) for one in known.commits],
        "commits_left_out": known.more,
    }


def _commit_as_json(one: CommitDetail) -> dict[str, Any]:
    return {
        "version": one.version,
        "role": one.role.value,
        "operation": one.operation,
        "rows": one.rows,
        "user": one.user,
        "engine": one.engine,
        "at": None if one.at is None else one.at.isoformat().replace("+00:00", "Z"),
        "run_id": one.run_id,
        "seed": one.seed,
        "reads": [
            {
                "table_id": read.table_id,
                "name": read.name,
                "versions": list(read.versions),
                "changes": read.changes,
                "confidence": read.confidence.value,
                "left_out": read.more,
            }
            for read in one.reads
        ],
    }
