"""Results on stdout: `table` for people, `json`, `yaml` and `csv` for programs. Everything else goes to stderr."""

import csv
import dataclasses
import io
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer
import yaml

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.units import did_you_mean, printable
from lakewarden.daemon.cli.cells import Time, cell, csv_cell, heading
from lakewarden.daemon.cli.format import Format, ListView, Output, echo_to_stderr, view
from lakewarden.daemon.cli.layout import Panel, Shown, print_lines
from lakewarden.daemon.installation.lazily import later
from lakewarden.daemon.process.spared_libraries import have_rich

if TYPE_CHECKING:
    from lakewarden.daemon.cli import terminal
else:
    terminal = later("lakewarden.daemon.cli.terminal")

__all__ = [
    "Format",
    "Output",
    "note",
    "plain",
    "show",
    "show_one",
    "show_panels",
    "shown_as",
    "watch",
    "width_to_read",
]


def plain(value: Any) -> Any:
    """A value of ours as JSON knows it: dataclasses to objects, times to ISO 8601 in UTC with Z."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return Time(value.astimezone(UTC).isoformat().replace("+00:00", "Z"))
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [plain(item) for item in value]
    return value


def show(
    rows: Iterable[Any],
    *,
    columns: Sequence[str],
    format: Format,
    title: str | None = None,
    limit: int | None = None,
) -> None:
    """Print rows (dataclasses or mappings), as the options of the list ask: sorted, then a page of them; at most
    `limit` unless they say another. `columns` are what a table shows; programs get every key. Raises `UsageError` for
    a column that there is none of."""
    seen = view()
    every = _sorted([plain(row) for row in rows], seen, columns)
    end = None if (most := seen.limit or limit) is None else seen.offset + most
    items = every[seen.offset : end]
    if seen.columns is not None:
        columns = [_known(name, items, columns) for name in seen.columns]
        items = [{name: item.get(name) for name in columns} for item in items]
    elif seen.wide:
        columns = _names(items, columns)
    match format:
        case Format.JSON:
            typer.echo(json.dumps(items, ensure_ascii=False, indent=2))
        case Format.YAML:
            typer.echo(_yaml(items), nl=False)
        case Format.CSV:
            typer.echo(_csv(items, columns), nl=False)
        case Format.TABLE | Format.WIDE:
            _table(items, columns, title, whole=seen.wide or seen.whole)
            if end is not None and end < len(every):
                note(f"{len(every) - end:,} more: --offset {end}.")


def show_one(row: Any, *, format: Format) -> None:
    """Print one row: key by key for people, one object for programs."""
    item = plain(row)
    match format:
        case Format.JSON:
            typer.echo(json.dumps(item, ensure_ascii=False, indent=2))
        case Format.YAML:
            typer.echo(_yaml(item), nl=False)
        case Format.CSV:
            typer.echo(_csv([item], list(item)), nl=False)
        case Format.TABLE | Format.WIDE:
            _pairs({heading(key): cell(key, value) for key, value in item.items()})


def shown_as(items: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Shown:
    """Rows, as `plain` gives them, as cells for people."""
    numbers = {heading(name) for name in columns if all(_is_number(item.get(name)) for item in items)}
    cells = tuple(tuple(cell(name, item.get(name)) for name in columns) for item in items)
    return Shown(columns=tuple(map(heading, columns)), rows=cells, numbers=frozenset(numbers))


def show_panels(panels: Sequence[Panel]) -> None:
    """Each table below its title, on stdout."""
    if sys.stdout.isatty():
        have_rich()
        terminal.print_panels(panels)
        return
    for number, panel in enumerate(panels):
        typer.echo(("\n" if number else "") + printable(panel.title))
        if panel.shown.rows:
            print_lines(panel.shown)
        else:
            typer.echo(panel.empty)


def width_to_read() -> int:
    """How wide a text may be: as wide as the terminal is; as it likes where there is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def watch(look: Callable[[], Sequence[Panel]], seconds: float) -> None:
    """Show panels on the whole terminal, looked at anew each time, until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        have_rich()
        terminal.watch(look, seconds)


def note(text: str) -> None:
    """A remark for people, on stderr."""
    echo_to_stderr(printable(text))


class _Dumper(yaml.SafeDumper):
    """Writes times as the texts that they are."""


_Dumper.add_representer(Time, yaml.SafeDumper.represent_str)


def _yaml(what: Any) -> str:
    return str(yaml.dump(what, Dumper=_Dumper, sort_keys=False, allow_unicode=True))


def _csv(items: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    names = list(dict.fromkeys(key for item in items for key in item)) or list(columns)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(csv_cell, names))
    for item in items:
        writer.writerow([csv_cell(item.get(name)) for name in names])
    return text.getvalue()


def _table(
    items: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str | None, *, whole: bool
) -> None:
    if title:
        note(title)
    if not items:
        note("Nothing to show.")
        return
    shown = shown_as(items, columns)
    if whole or not sys.stdout.isatty():
        print_lines(shown)
        return
    have_rich()
    if left_out := terminal.print_table(shown):
        note(f"No room for {', '.join(left_out)}: -o wide shows all, --columns those you name.")


def _pairs(pairs: Mapping[str, str]) -> None:
    if sys.stdout.isatty():
        have_rich()
        terminal.print_pairs(pairs)
        return
    width = max(map(len, pairs), default=0)
    for key, value in pairs.items():
        typer.echo(f"{key:<{width}}  {value}")


def _names(items: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    """Every key there is, those of the command first."""
    return list(dict.fromkeys([*columns, *(key for item in items for key in item)]))


def _known(name: str, items: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    names = _names(items, columns)
    if name in names or not items:
        return name
    hint = did_you_mean(name, names, otherwise=f"The columns are {', '.join(names)}.")
    raise UsageError(f"There is no column {name!r}.", hint=hint)


def _sorted(items: list[dict[str, Any]], seen: ListView, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Rows without a value come last, either way."""
    if seen.sort is None or not items:
        return items
    name = _known(seen.sort, items, columns)
    filled = [item for item in items if item.get(name) is not None]
    empty = [item for item in items if item.get(name) is None]
    return sorted(filled, key=lambda item: _rank(item[name]), reverse=seen.descending) + empty


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers before texts, lists and objects as the text they are shown as."""
    return (0, value) if _is_number(value) else (1, value if isinstance(value, str) else str(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
