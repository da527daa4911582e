"""`lakewarden tables policy | owner | hold` and `lakewarden policy ...`: what is asked for, and by whom."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.policy.differences import Difference, Wanted
from lakewarden.catalog.policy.effective import POLICY_KEYS, Value, format_value, parse_value
from lakewarden.catalog.policy.scopes import is_scope
from lakewarden.catalog.registry.governance import governed, set_hold, set_owner, set_policy
from lakewarden.catalog.units import count_of
from lakewarden.daemon.cli.common import DryRun, Home, calling, opened, tell_empty_scope
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.output import Format, Output, note, show, show_one
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.policies import apply_policies, compared, exported, foresee_policies
from lakewarden.daemon.usecases.policy_files import as_text, in_words, read_policies
from lakewarden.daemon.usecases.runs.revocation import HELD, PLANNED, take_back_runs

__all__ = ["add_to", "app"]

Scope = Annotated[str, typer.Argument(help="A table, a namespace (db.*) or everything (*).")]
policy = commands("Show and set the policy of a table or scope.")
app = commands("Keep the policies of all tables in a file, for git.")
File = Annotated[
    str, typer.Argument(metavar="FILE", help="A file in the format of `policy export`; - is stdin.")
]


def add_to(tables: typer.Typer) -> None:
    """Add the commands on one table or scope to the group."""
    tables.add_typer(policy, name="policy")
    tables.command("owner")(owner)
    tables.command("hold")(hold)


@policy.command("show")
def policy_show(where: Scope, home: Home = None, output: Output = Format.TABLE) -> None:
    """Show every policy key with its value and the level it comes from."""
    services = opened(home)
    if is_scope(where):
        raise UsageError(
            "A scope has no merged policy.", hint="Show a table of it; `origin` names the scope."
        )
    merged = governed(services.registry, where).policy
    rows = [
        {
            "key": key.key,
            "value": format_value(key.key, getattr(merged.settings, key.field)),
            "origin": merged.origins.get(key.key, "default"),
            "doc": key.doc,
        }
        for key in POLICY_KEYS
    ]
    show(rows, columns=["key", "value", "origin", "doc"], format=output)


@policy.command("set")
def policy_set(
    where: Scope,
    assignments: Annotated[list[str], typer.Argument(help="key=value, such as vacuum.retention='30 days'.")],
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Set policy keys; an empty value (key=) restores that of the level above."""
    values: dict[str, Value | None] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"'{assignment}' is not key=value.", hint="Write vacuum.retention='30 days'.")
        values[key.strip()] = parse_value(key.strip(), text) if text.strip() else None
    services = opened(home)
    with run(services, calling(services), declared.SET_POLICY, where) as actor:
        row = set_policy(services.registry, where, values, actor=actor)
    take_back_runs(services, row, PLANNED, f"the policy of {row.name} changed", ordered=False)
    unset = ", ".join(sorted(key for key, value in values.items() if value is None))
    note(f"Policy of {row.name} set.{f' From the level above again: {unset}.' if unset else ''}")
    tell_empty_scope(services, where)
    show_one({"name": row.name, "policy": row.policy}, format=output)


def owner(where: Scope, new_owner: str, home: Home = None, output: Output = Format.TABLE) -> None:
    """Make somebody else responsible for a table."""
    services = opened(home)
    with run(services, calling(services), declared.SET_OWNER, where) as actor:
        row = set_owner(services.registry, where, new_owner, actor=actor)
    tell_empty_scope(services, where)
    show_one({"name": row.name, "owner": row.owner}, format=output)


def hold(
    where: Scope,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why nothing may be deleted or rewound.")
    ] = None,
    lift: Annotated[bool, typer.Option("--lift", help="Lift the hold.")] = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Put a table or scope under legal hold, or lift the hold. Admins only."""
    if lift == (reason is not None):
        raise UsageError("A hold takes either --reason or --lift.", hint="--reason 'case 4711', or --lift.")
    services = opened(home)
    with run(services, calling(services), declared.HOLD, where) as actor:
        row = set_hold(services.registry, where, reason, actor=actor)
    if reason is not None:
        take_back_runs(services, row, HELD, f"{row.name} came under legal hold ({reason})")
    tell_empty_scope(services, where)
    show_one({"name": row.name, "hold": row.hold}, format=output)


@app.command("export")
def export(home: Home = None, output: Output = Format.TABLE) -> None:
    """Print every table and scope with the policy keys set there, as YAML; -o json: as JSON, which apply takes too."""
    found = exported(opened(home))
    if output is Format.JSON:
        show_one(in_words(found), format=output)
    elif output is Format.CSV:
        rows = [
            {"name": name, "key": key, "value": value}
            for name, said in in_words(found).items()
            for key, value in said.items()
        ]
        show(rows, columns=["name", "key", "value"], format=output)
    else:
        sys.stdout.write(as_text(found))


@app.command("diff")
def diff(file: File, home: Home = None, output: Output = Format.TABLE) -> None:
    """Show what a file would change. For what it names, keys that it leaves out are unset; everything else stays."""
    _show_differences(compared(opened(home), _wanted(file)), "to change", output)


@app.command("apply")
def apply(file: File, dry_run: DryRun = False, home: Home = None, output: Output = Format.TABLE) -> None:
    """Set the policies of everything that a file names to exactly what it says, in one commit or not at all."""
    services, wanted = opened(home), _wanted(file)
    do = foresee_policies if dry_run else apply_policies
    found = do(services, calling(services), wanted)
    _show_differences(found, "would change" if dry_run else "changed", output)


def _wanted(file: str) -> Wanted:
    try:
        text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return read_policies(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not a text file.", hint="Save it as UTF-8.") from error
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError(
            f"There is no file {file}.", hint="`lakewarden policy export` writes one."
        ) from error


def _show_differences(found: Sequence[Difference], verb: str, output: Format) -> None:
    note(f"{count_of(len(found), 'key')} {verb}." if found else "Everything is as the file says.")
    rows = [
        {
            "name": one.name,
            "key": one.key,
            "now": format_value(one.key, one.now),
            "wanted": format_value(one.key, one.wanted),
        }
        for one in found
    ]
    if rows or output is not Format.TABLE:
        show(rows, columns=["name", "key", "now", "wanted"], format=output)
