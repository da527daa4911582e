"""docs/reference/logs.md: every line that daemon, workers and gateway may log, read from the source."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from support.reference.meanings import NOTICE, Undocumented, cell, meant
from support.sources import parsed, walked

__all__ = ["logs_page"]

ROOT = Path(__file__).parents[3]
LEVELS = ("debug", "info", "warning", "error", "exception")
COMPUTED = {
    "report.sentence()": "*the cycle, in one sentence*",
    "kind.value": "`rolled_back` or `plan_waits`",
}
"""Events that are computed: expression -> what it says."""
FIELDS = {
    "action": "The action of a run.",
    "address": "The client's address.",
    "application": "Spark's name for the session (its application id).",
    "attempt": "Which attempt at a run it is.",
    "because": "Why, in a sentence.",
    "client": "The client's address.",
    "closed": "Whether no more failed logins of this user from this address are looked at "
    "until the minute is over.",
    "code": "The process's exit code; negative: the signal that ended it.",
    "exc_info": "In the line as `exception`: the Python trace.",
    "files": "How many files were deleted so far.",
    "first": "The first of those that are meant: a version of `lakewarden.lineage`, or a table.",
    "hint": "What can be done.",
    "host": "The address that is listened on.",
    "id": "The operation.",
    "kind": "The event's `event` ([webhooks](webhooks.md)).",
    "last": "The last version that is meant.",
    "master": "Spark's master.",
    "message": "What came of it, or is waited for, in a sentence.",
    "of": "How many files were to be deleted.",
    "outcome": "How the run ended.",
    "path": "The file.",
    "pid": "The process id.",
    "place": "Where the table lies.",
    "port": "The port that is served.",
    "problem": "What went wrong, in a sentence.",
    "recorded": "Whether the queue took the run's end.",
    "restart_in": "How long until another one is started.",
    "run_id": "The run.",
    "seconds": "How long it took.",
    "silent": "Whether further failed logins from this address are no lines until the minute is over; "
    "`lakewarden_gateway_refused_logins_total` has them all.",
    "sink": "Where lineage events go.",
    "spared": "How many files stay, because something needs them now.",
    "table": "The table, by name.",
    "to": "The name that a table has in the metastore by now.",
    "tables": "How many tables.",
    "token": "The number of this leadership; it only grows.",
    "trace": "Where it happened: the Python trace in short.",
    "user": "Who was claimed to be connecting.",
    "version": "A version of the table: the one decided on, committed, or told of.",
    "waits_for_workers": "Whether planning waits until live workers have reported what they do.",
    "worker": "The worker.",
}
_INTRO = """\
# What is logged

One line per event on standard error: `log.format = json` makes each line one JSON object, `text` is for
people, `auto` (the default) is text on a terminal, with colours unless `NO_COLOR` is set. `log.level` is the
least level. What libraries have to say is logged from warnings on, in the same format, with `logger`, the
library's own name for the one who speaks, in place of `part`. Thrift, which raises whatever it logs, is heard
only with `log.level = debug`.
Every line has `event` (below), `level`, `timestamp` (ISO 8601, UTC) and, where it is named below, `part`;
a line about an error may have `exception`, the Python trace. What a worker logs during a run is kept with the
run, too: `lakewarden jobs logs RUN`.

Levels: `error` needs somebody, `warning` may, `info` tells what was done, `debug` is for those who read the
source. An outage is one line when it begins and one when it is over; that of the metastore is one outage,
whoever meets it.

A session of your own (`lakewarden.attach`) prints nothing: what it has to say goes to Python's `logging`, to
the logger `lakewarden.` with the part as below, as a message like `queued runs stay (because=...)`.

"""


@dataclass(kw_only=True, slots=True)
class Line:
    """A line that may be logged, wherever it is."""

    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)


def logs_page() -> str:
    """The page. Raises `Undocumented` for a field without a meaning, or an event that nobody can tell."""
    found: dict[tuple[str, str], Line] = {}
    for plane in ("catalog", "jobs", "daemon"):
        for path in sorted((ROOT / plane).rglob("*.py")):
            for part, event, level, names in _logged(parsed(path)):
                line = found.setdefault((part, event), Line())
                line.levels.add("error" if level == "exception" else level)
                line.fields |= names
    fields = meant("log fields", sorted({name for line in found.values() for name in line.fields}), FIELDS)
    lines = ["## Events\n", "| part | level | event | fields |", "|---|---|---|---|"]
    for (part, event), line in sorted(found.items()):
        levels = ", ".join(level for level in LEVELS if level in line.levels)
        shown = ", ".join(f"`{name}`" for name in sorted(line.fields))
        lines.append(f"| {part} | {levels} | {cell(event)} | {shown} |")
    lines += ["\n## Fields\n", "| field | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {cell(meaning)} |" for name, meaning in fields.items()]
    return "\n".join([NOTICE, _INTRO + "\n".join(lines)]) + "\n"


def _logged(tree: ast.Module) -> Iterator[tuple[str, str, str, set[str]]]:
    """Part, event, level, fields of each line that a module may log."""
    loggers = _loggers(tree)
    for node in walked(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            yield from _outages(tree, node)
        if not isinstance(node, ast.Call):
            continue
        for receiver, level in _levels(node.func):
            made = receiver if isinstance(receiver, ast.Call) else _given(receiver, node.lineno, loggers)
            if made is not None and _is_logger(made):
                names = {one.arg for one in (*_bound(made), *node.keywords) if one.arg is not None}
                part = _part(made, node)
                if part is not None:
                    yield part, _event(node.args[0]), level, names - {"part"}


def _outages(tree: ast.Module, node: ast.Assign | ast.AnnAssign) -> Iterator[tuple[str, str, str, set[str]]]:
    """The two lines of each outage that is made here, with what it is told where it is met and over."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    name = ast.unparse(target).removeprefix("self.")
    for made in ast.walk(node):
        if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "Outage":
            part, begins, ends = (str(ast.literal_eval(one)) for one in made.args)
            yield part, begins, "warning", {"problem", *_told(tree, f"self.{name}.met")}
            yield part, ends, "info", _told(tree, f"self.{name}.over")


def _told(tree: ast.Module, method: str) -> set[str]:
    calls = (one for one in walked(tree) if isinstance(one, ast.Call) and ast.unparse(one.func) == method)
    return {one.arg for call in calls for one in call.keywords if one.arg is not None}


def _levels(function: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """What a call may go to, with the levels it may have."""
    if isinstance(function, ast.IfExp):
        yield from _levels(function.body)
        yield from _levels(function.orelse)
    elif isinstance(function, ast.Attribute) and function.attr in LEVELS:
        yield function.value, function.attr
    elif isinstance(function, ast.Name):
        yield function, "info"


def _loggers(tree: ast.Module) -> list[tuple[int, str, ast.expr]]:
    """Line, name and value of every assignment of a logger, or of a choice between two levels of one."""
    found = []
    for node in walked(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = (
                zip(target.elts, value.elts, strict=False)
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                else [(target, value)]
            )
            found += [(node.lineno, ast.unparse(name), made) for name, made in pairs]
    return sorted(found, key=lambda one: one[0])


def _given(name: ast.expr, line: int, loggers: list[tuple[int, str, ast.expr]]) -> ast.Call | None:
    """The logger that a name stands for: what it was given last before the line."""
    wanted = ast.unparse(name)
    values = [made for at, what, made in loggers if what == wanted and (at <= line or "." in wanted)]
    last = values[-1] if values else None
    if isinstance(last, ast.IfExp):  # `calm = log.debug if ... else log.info`
        return next((_given(one, line, loggers) for one, _ in _levels(last)), None)
    return last if isinstance(last, ast.Call) else None


def _is_logger(made: ast.Call) -> bool:
    return ast.unparse(made).startswith("get_log(")


def _bound(made: ast.expr) -> Iterator[ast.keyword]:
    """What `get_log(...).bind(...)` binds."""
    while isinstance(made, ast.Call):
        yield from made.keywords
        made = made.func.value if isinstance(made.func, ast.Attribute) else made.func


def _part(made: ast.Call, call: ast.Call) -> str | None:
    """Whose line it is: empty where the line does not say, None where only the caller knows (an outage's)."""
    for one in (*_bound(made), *call.keywords):
        if one.arg == "part" and isinstance(one.value, ast.Constant):
            return str(one.value.value)
    first = next((one for one in ast.walk(made) if isinstance(one, ast.Call) and one.args), None)
    if first is None:
        return ""
    return str(first.args[0].value) if isinstance(first.args[0], ast.Constant) else None


def _event(said: ast.expr) -> str:
    if isinstance(said, ast.Constant):
        return str(said.value)
    text = ast.unparse(said)
    if text not in COMPUTED:
        raise Undocumented(f"Nobody can tell what is logged by {text}: add it to COMPUTED.")
    return COMPUTED[text]
