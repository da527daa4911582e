"""Lists of tables as people keep them (CSV, YAML, JSON lines, bare paths), read into what is wanted of each. Pure.

A row that makes no sense refuses itself, with its line; a list that cannot be read at all is refused as a whole.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import yaml

from lakewarden.catalog.errors import LakewardenError, UsageError
from lakewarden.catalog.policy.keys import POLICY_BY_KEY, Value, parse_value
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.units import did_you_mean, storable

__all__ = ["PLAIN_TAGS", "ListFormat", "Listed", "composed", "kind_of", "listed_at", "read_list"]

_PATH: Final = "path"
_NAME: Final = "name"
_OWNER: Final = "owner"
_POLICY: Final = "policy"
_COLUMNS: Final = (_PATH, _NAME, _OWNER, *POLICY_BY_KEY)
_SUFFIXES: Final = {
    ".csv": "csv", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The same by libyaml, where PyYAML has it: ten times as fast."""


PLAIN_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{kind}"
    for kind in ("bool", "float", "int", "map", "null", "seq", "str", "timestamp", "value")
)
"""What YAML takes plain text for; not `merge`, with which few lines make millions."""
_BETWEEN: Final = " \t\r\n,"
"""What stands between the values of a JSON array."""
_NOTHING: Final = ("", "~", "null", "Null", "NULL")


class ListFormat(StrEnum):
    """How a list is written."""

    CSV = "csv"
    YAML = "yaml"
    JSON = "json"
    PATHS = "paths"


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """One table of a list."""

    where: str
    asked: WantedTable | LakewardenError
    """The wanted tables, or the mistakes in the list."""
    line: int | None = None
    """None where it comes from the command line."""


def kind_of(name: str, text: str) -> ListFormat:
    """How a list is written: what its name ends in says so, else how it begins."""
    for suffix, kind in _SUFFIXES.items():
        if name.lower().endswith(suffix):
            return ListFormat.YAML if kind == "json" and text.lstrip().startswith("[") else ListFormat(kind)
    first = next((line.strip() for line in text.split("\n") if not _is_remark(line)), "")
    if first.startswith("{"):
        return ListFormat.JSON
    if first.startswith(("- ", "[", "---")) or first == "-":
        return ListFormat.YAML
    heads = {cell.strip().lower() for cell in first.split(",")}
    return ListFormat.CSV if heads & set(_COLUMNS) else ListFormat.PATHS


def read_list(text: str, kind: ListFormat, *, owner: str | None = None) -> list[Listed]:
    """What is wanted of each table in a list; `owner` is whose they are where a row does not say it.

    Raises `UsageError` for what is no such list.
    """
    match kind:
        case ListFormat.CSV:
            rows = _csv_rows(text)
        case ListFormat.YAML:
            rows = _json_array(text) if _is_json(text) else _yaml_rows(text)
        case ListFormat.JSON:
            rows = _json_rows(text)
        case ListFormat.PATHS:
            lines = enumerate(text.split("\n"), start=1)
            rows = ((number, {_PATH: line.strip()}) for number, line in lines if not _is_remark(line))
    return [_listed(number, row, owner) for number, row in rows]


_Row = Mapping[str, str] | UsageError


def _listed(line: int, row: _Row, owner: str | None) -> Listed:
    if isinstance(row, UsageError):
        return Listed(where="", asked=row, line=line)
    said = {key: value.strip() for key, value in row.items() if value.strip()}
    where = storable(said.get(_PATH) or said.get(_NAME) or "")
    try:
        for text in (*said, *said.values()):
            _require_text(text)
        wanted = WantedTable(
            where=where,
            name=said.get(_NAME) if _PATH in said else None,
            owner=said.get(_OWNER) or owner,
            policy=_policy(said),
        )
        if not where:
            raise UsageError(
                "It names no table.", hint="Each table needs a path, or its name in the metastore."
            )
    except UsageError as error:
        return Listed(where=where, asked=error, line=line)
    return Listed(where=where, asked=wanted, line=line)


def listed_at(where: str, *, owner: str | None) -> Listed:
    """A place that somebody, or a search, names."""
    try:
        _require_text(where)
        _require_text(owner or "")
    except UsageError as error:
        return Listed(where=storable(where), asked=error)
    return Listed(where=where, asked=WantedTable(where=where, owner=owner))


def _require_text(text: str) -> None:
    """Raise `UsageError` for what cannot be stored: the name of a folder in another encoding, half a character."""
    if storable(text) != text:
        raise UsageError(
            f"'{storable(text)}' is not UTF-8.", hint="Rename the folder, or save the list as UTF-8."
        )


def _policy(said: Mapping[str, str]) -> dict[str, Value]:
    for key in said:
        _require_known(key)
    return {key: parse_value(key, value) for key, value in said.items() if key in POLICY_BY_KEY}


def _require_known(key: str) -> None:
    """Raise `UsageError` for a column that means nothing."""
    if key in _COLUMNS:
        return
    raise UsageError(
        f"'{key}' is neither path, name, owner nor a policy key.",
        hint=did_you_mean(key.lower(), _COLUMNS, otherwise="docs/reference/policies.md has every key."),
    )


def _is_remark(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _csv_rows(text: str) -> Iterator[tuple[int, _Row]]:
    reader = csv.reader(io.StringIO(text), strict=True)
    heads: Sequence[str] | None = None
    before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not any(map(str.strip, cells)) or cells[0].lstrip().startswith("#"):
                continue
            if heads is None:
                heads = _heads(cells)
            elif any(map(str.strip, cells[len(heads) :])):
                yield (
                    line,
                    UsageError(
                        f"It has {len(cells)} values, the header has {len(heads)}.",
                        hint="A value with a comma stands in double quotes.",
                    ),
                )
            else:
                yield line, dict(zip(heads, cells, strict=False))
    except csv.Error as error:
        raise UsageError(
            f"Line {reader.line_num} is not CSV: {error}.", hint="A quote within quotes is written twice."
        ) from error


def _heads(cells: Sequence[str]) -> Sequence[str]:
    heads = [cell.strip().lower() for cell in cells]
    while not heads[-1]:
        heads.pop()  # a spreadsheet's empty columns
    for head in heads:
        _require_known(head)
    if len(set(heads)) < len(heads):
        raise UsageError("A column occurs twice in the header.", hint="Keep one of them.")
    if not {_PATH, _NAME} & set(heads):
        raise UsageError("The header has no column path.", hint="Begin with path,name,owner, for instance.")
    return heads


def _json_rows(text: str) -> Iterator[tuple[int, _Row]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, _flat(json.loads(line))
        except (ValueError, RecursionError) as error:
            yield number, UsageError(f"It is not JSON: {error}.", hint="Write one object per line.")
        except UsageError as error:
            yield number, error


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith("["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _json_array(text: str) -> Iterator[tuple[int, _Row]]:
    """The rows of an array that is known to be JSON, with their lines."""
    decoder, at, line = json.JSONDecoder(), text.index("[") + 1, 1 + text[: text.index("[")].count("\n")
    while True:
        while text[at] in _BETWEEN:
            line, at = line + (text[at] == "\n"), at + 1
        if text[at] == "]":
            return
        begin = at
        row, at = decoder.raw_decode(text, begin)
        try:
            yield line, _flat(row)
        except UsageError as error:
            yield line, error
        line += text.count("\n", begin, at)


def composed(text: str) -> yaml.Node | None:
    """The nodes of a YAML file; None for an empty one. Raises `UsageError` for what is no YAML."""
    try:
        top: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"Line {mark.line + 1} is" if mark is not None else "It is"
        raise UsageError(f"{where} not YAML: {getattr(error, 'problem', error)}.") from error
    return top


def _yaml_rows(text: str) -> Iterator[tuple[int, _Row]]:
    top = composed(text)
    if top is None:
        return
    if not isinstance(top, yaml.SequenceNode):
        raise UsageError("It is not a list of tables.", hint="Begin each table with '- path: ...'.")
    for node in top.value:
        line = node.start_mark.line + 1
        try:
            yield line, _flat(_as_written(node))
        except UsageError as error:
            yield line, error


def _as_written(node: yaml.Node, *, inner: bool = False) -> object:
    """A table, or its policy, of a YAML list: every value is the text that stands there, whatever YAML would make of
    it (`007`, `on`, `12:30`)."""
    if node.tag not in PLAIN_TAGS:
        raise UsageError(
            f"It cannot be read: {node.tag} is not a plain value.", hint="Write it without a tag."
        )
    if isinstance(node, yaml.ScalarNode):
        return None if not node.style and node.value in _NOTHING else str(node.value)
    if not isinstance(node, yaml.MappingNode):
        return ()
    made: dict[str, object] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag not in PLAIN_TAGS:
            raise UsageError(
                "A key is not a text.", hint="Write path, name, owner, policy; << is not for lists."
            )
        if key.value in made:
            raise UsageError(f"{storable(key.value)} stands twice.", hint="Keep one of them.")
        if isinstance(value, yaml.ScalarNode) or (key.value == _POLICY and not inner):
            made[key.value] = _as_written(value, inner=True)
        else:
            made[key.value] = ()
    return made


def _flat(row: object) -> Mapping[str, str]:
    """A row with the keys of its policy beside the others, every value as people write it."""
    if isinstance(row, str):
        return {_PATH: row}
    if not isinstance(row, dict):
        raise UsageError("It is not a table.", hint="Write an object with path, and name, owner, policy.")
    policy = row.get(_POLICY, {})
    if not isinstance(policy, dict):
        raise UsageError("Its policy is not an object.", hint="Write policy: {vacuum.retention: 30 days}.")
    for key in (_PATH, _NAME, _OWNER):
        if key in policy:
            raise UsageError(f"{key} is not a policy key.", hint="Write it beside policy, not within.")
    both = {**{key: value for key, value in row.items() if key != _POLICY}, **policy}
    return {str(key): _text(str(key), value) for key, value in both.items() if value is not None}


def _text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float):
        return str(value)
    raise UsageError(f"{storable(key)} is not a single value.", hint="Write texts, numbers, yes or no.")
