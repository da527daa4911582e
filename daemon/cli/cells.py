"""How a value is shown to people: sizes and times rounded, policies in the words they are set in. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from lakewarden.catalog.policy.effective import POLICY_KEYS, format_value
from lakewarden.catalog.units import printable

__all__ = ["Time", "as_times", "cell", "csv_cell", "heading", "human_bytes"]

_ISO: Final = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What spreadsheets take for the beginning of a formula, in either width."""
_POLICIES: Final = {key.field: key.key for key in POLICY_KEYS}


class Time(str):
    """A time as programs get it, ISO 8601 in UTC with Z. What is only a text that looks like one is no `Time`."""

    __slots__ = ()

    @property
    def for_people(self) -> str:
        """To the second, in UTC: `2026-11-23 12:00:01`."""
        return self[:19].replace("T", " ")


def as_times(text: str) -> str:
    """A text of ours in which times stand, with these as people read them. Pure."""
    return _ISO.sub(r"\1 \2", text)


def cell(column: str, value: Any) -> str:
    """A value in one line, without anything that a terminal would obey. Pure."""
    return printable(_text(column, value), keep="")


def heading(name: str) -> str:
    """A column's name, which may be whatever somebody wrote behind AS. Pure."""
    return printable(name, keep="")


def csv_cell(value: Any) -> Any:
    """A value as CSV has it: no text that a terminal would obey, nor one that a spreadsheet would compute. Pure."""
    if isinstance(value, dict | list):
        return printable(json.dumps(value, ensure_ascii=False))
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


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


def _text(column: str, value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Time():
            return value.for_people
        case int() if column == "bytes" or column.endswith("_bytes"):
            return human_bytes(value)
        case float():
            return f"{value:.3g}"
        case dict():
            return _of_mapping(column, value)
        case [*pairs] if column == "properties" and pairs and all(_is_pair(one) for one in pairs):
            return _of_mapping(column, dict(pairs))
        case list() if column == "findings" and all(isinstance(one, dict) for one in value):
            return "; ".join(f"{one['check']}: {one['message']}" for one in value)
        case list() if column == "deletes" and all(isinstance(one, dict) for one in value):
            return "; ".join(_of_deletes(one) for one in value)
        case list() if column == "references":
            return ", ".join(_reference(one) for one in value)
        case list():
            return (" " if column == "attention" else ", ").join(str(item) for item in value)
        case _:
            return str(value)


def _of_deletes(one: Mapping[str, Any]) -> str:
    size = "" if one["bytes"] is None else f" ({human_bytes(one['bytes'])})"
    return f"{one['kind']}: {one['rows']:,} in {one['files']:,} files{size}"


def _reference(value: Mapping[str, Any]) -> str:
    """`branch main at 7`, `tag q1 at 3 until 2026-12-01 00:00:00`."""
    until = "" if value["ends_at"] is None else f" until {value['ends_at'].for_people}"
    at = "" if value["version"] is None else f" at {value['version']}"
    return f"{value['kind']} {value['name']}{at}{until}"


def _is_pair(value: Any) -> bool:
    """An entry of a map, as Arrow gives it."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)


def _of_mapping(column: str, value: Mapping[str, Any]) -> str:
    filled = {key: item for key, item in value.items() if item is not None}
    if column == "policy":
        return ", ".join(_policy(field, item) for field, item in filled.items())
    text = ", ".join(f"{key}={item}" for key, item in filled.items())
    return as_times(text) if column == "properties" else text


def _policy(field: str, value: Any) -> str:
    """`vacuum_retention_seconds`, as the system table has it, as it is set: `vacuum.retention 7 days`."""
    key = _POLICIES.get(field)
    return f"{field} {value}" if key is None else f"{key} {format_value(key, value)}"
