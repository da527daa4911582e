"""Results on stdout: `table` for people, `json`, `yaml` and `csv` for programs. Everything else goes to stderr."""

import csv
import dataclasses
import io
import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import typer
import yaml

from lakewarden.catalog.units import printable
from lakewarden.daemon.cli.format import Format, Output

__all__ = ["Format", "Output", "human_bytes", "human_time", "note", "plain", "show", "show_one"]


def plain(value: Any) -> Any:
    """A value of ours as JSON knows it: dataclasses to objects, times to ISO 8601 in UTC with Z."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [plain(item) for item in value]
    return value


def show(rows: Iterable[Any], *, columns: Sequence[str], format: Format, title: str | None = None) -> None:
    """Print rows (dataclasses or mappings). `columns` are what a table shows; programs get every key."""
    items = [plain(row) for row in rows]
    match format:
        case Format.JSON:
            typer.echo(json.dumps(items, ensure_ascii=False, indent=2))
        case Format.YAML:
            typer.echo(yaml.safe_dump(items, sort_keys=False, allow_unicode=True), nl=False)
        case Format.CSV:
            typer.echo(_csv(items, columns), nl=False)
        case Format.TABLE:
            _table(items, columns, title)


def show_one(row: Any, *, format: Format) -> None:
    """Print one row: key by key for people, one object for programs."""
    item = plain(row)
    match format:
        case Format.JSON:
            typer.echo(json.dumps(item, ensure_ascii=False, indent=2))
        case Format.YAML:
            typer.echo(yaml.safe_dump(item, sort_keys=False, allow_unicode=True), nl=False)
        case Format.CSV:
            typer.echo(_csv([item], list(item)), nl=False)
        case Format.TABLE:
            width = max(map(len, item), default=0)
            for key, value in item.items():
                typer.echo(f"{key:<{width}}  {_cell(key, value)}")


def note(text: str) -> None:
    """A remark for people, on stderr."""
    typer.echo(printable(text), err=True)


def human_bytes(size: int | None) -> str:
    """1536 -> 1.5 KiB."""
    if size is None:
        return ""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def human_time(text: str | None) -> str:
    """An ISO time to the second, without the T."""
    return text[:19].replace("T", " ") if text else ""


def _cell(column: str, value: Any) -> str:
    return printable(_text(column, value), keep="")


def _text(column: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column == "bytes" or column.endswith("_bytes"):
        return human_bytes(value)
    if column == "at" or column.endswith("_at"):
        return human_time(value)
    if column == "findings" and isinstance(value, list):
        return "; ".join(f"{one['check']}: {one['message']}" for one in value)
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items() if item is not None)
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return str(value)


def _csv(items: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    names = list(dict.fromkeys(key for item in items for key in item)) or list(columns)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    for item in items:
        writer.writerow([_csv_cell(item.get(name)) for name in names])
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _table(items: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str | None) -> None:
    if title:
        note(title)
    if not items:
        note("Nothing to show.")
        return
    cells = [[_cell(column, item.get(column)) for column in columns] for item in items]
    widths = [max(len(column), *(len(row[i]) for row in cells)) for i, column in enumerate(columns)]
    limit = _terminal_width() - sum(widths[:-1]) - 2 * len(columns)
    widths[-1] = min(widths[-1], max(limit, 20))
    typer.echo(
        "  ".join(column.upper().ljust(width) for column, width in zip(columns, widths, strict=True)).rstrip()
    )
    for row in cells:
        fitted = [
            text if len(text) <= width else text[: width - 1] + "…"
            for text, width in zip(row, widths, strict=True)
        ]
        typer.echo("  ".join(text.ljust(width) for text, width in zip(fitted, widths, strict=True)).rstrip())


def _terminal_width() -> int:
    return shutil.get_terminal_size((160, 40)).columns if sys.stdout.isatty() else 200
