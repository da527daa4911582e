"""What a setting is: how its value is written, read and shown. The settings themselves are the fields of `Settings`."""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from lakewarden.catalog.bounds import LARGEST_BYTES, LONGEST_SECONDS, MOST, as_whole
from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.units import format_bytes, format_seconds, parse_bytes, parse_seconds

__all__ = [
    "Count", "Duration", "Folder", "Knob", "KnobValue", "Location", "Names", "Port", "Size", "Switch", "Text",
    "knob_of", "parse_knob", "setting", "shown",
]  # fmt: skip

KnobValue = str | int | bool | timedelta | Path | tuple[str, ...] | None


class KnobKind(StrEnum):
    """How a setting's value is written. The value doubles as the unit that `config show` prints."""

    TEXT = "text"
    PATH = "path"
    LOCATION = "location"
    DURATION = "duration"
    SIZE = "size"
    COUNT = "count"
    PORT = "port"
    SWITCH = "yes/no"
    LIST = "list"


Text = Annotated[str, KnobKind.TEXT]
Folder = Annotated[Path, KnobKind.PATH]
Location = Annotated[str, KnobKind.LOCATION]
Duration = Annotated[timedelta, KnobKind.DURATION]
Size = Annotated[int, KnobKind.SIZE]
Count = Annotated[int, KnobKind.COUNT]
Port = Annotated[int, KnobKind.PORT]
Switch = Annotated[bool, KnobKind.SWITCH]
Names = Annotated[tuple[str, ...], KnobKind.LIST]


@dataclass(frozen=True, kw_only=True, slots=True)
class Knob:
    """One setting."""

    field: str
    """The field of `Settings` it is stored in."""
    kind: KnobKind
    choices: tuple[str, ...]
    """What a text may be; empty if it may be any."""
    default: str
    """As a user would write it (`{home}` stands for the home folder); "" means unset."""
    doc: str
    secret: bool
    """Whether its value is never printed."""
    file_only: bool
    """Whether environment and flags cannot set it."""

    @property
    def key(self) -> str:
        """Its name in files and flags: `sweep.interval` is the field `sweep_interval`."""
        return self.field.replace("_", ".", 1)

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"LAKEWARDEN_{self.field.upper()}"


def setting(default: str, doc: str, *, secret: bool = False, file_only: bool = False) -> Any:
    """A field of `Settings`; its type says how the value is written."""
    return field(metadata={"default": default, "doc": doc, "secret": secret, "file_only": file_only})


def knob_of(declared: Field[Any]) -> Knob:
    """The setting that a field declares."""
    kind, choices = _kind_of(declared.type)
    return Knob(field=declared.name, kind=kind, choices=choices, **declared.metadata)


def _kind_of(annotation: Any) -> tuple[KnobKind, tuple[str, ...]]:
    for one in (annotation, *get_args(annotation)):
        if get_origin(one) is Literal:
            return KnobKind.TEXT, get_args(one)
        if get_origin(one) is Annotated:
            return one.__metadata__[0], ()
    raise TypeError(f"{annotation} does not say how a setting is written")


def parse_knob(knob: Knob, text: str) -> KnobValue:
    """Read what was written for a setting. Raises `UsageError` with an example of what would be right."""
    text = text.strip()
    if text == "" and knob.kind is not KnobKind.LIST:
        return None
    parse, example = _READ[knob.kind]
    value = parse(text)
    if value is None or (knob.choices and value not in knob.choices):
        wanted = f"one of {', '.join(knob.choices)}" if knob.choices else example
        said = "that" if knob.secret else f"'{text}'"
        raise UsageError(f"The setting {knob.key} cannot be {said}.", hint=f"Write {wanted}.")
    return value


def _path(text: str) -> KnobValue:
    return Path(text).expanduser().absolute()


def _duration(text: str) -> KnobValue:
    seconds = parse_seconds(text)
    return timedelta(seconds=seconds) if seconds and seconds <= LONGEST_SECONDS else None


def _count(text: str) -> KnobValue:
    count = as_whole(text)
    return count if count and count <= MOST else None


def _size(text: str) -> KnobValue:
    size = parse_bytes(text)
    return size if size is not None and size <= LARGEST_BYTES else None


def _port(text: str) -> KnobValue:
    port = as_whole(text)
    return port if port is not None and port < 65_536 else None


def _switch(text: str) -> KnobValue:
    words = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
    return words.get(text.lower())


def _list(text: str) -> KnobValue:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_READ: Final[Mapping[KnobKind, tuple[Callable[[str], KnobValue], str]]] = {
    KnobKind.TEXT: (str, "a text"),
    KnobKind.PATH: (_path, "a folder"),
    KnobKind.LOCATION: (canonical, "a path or URI"),
    KnobKind.DURATION: (_duration, "a duration such as `30 s` or `2 hours`, at most 36500 days"),
    KnobKind.SIZE: (_size, "a size such as `1 GiB`, at most 1 TiB"),
    KnobKind.COUNT: (_count, "a whole number from 1 to 1000000"),
    KnobKind.PORT: (_port, "a port from 0 to 65535"),
    KnobKind.SWITCH: (_switch, "`yes` or `no`"),
    KnobKind.LIST: (_list, "names separated by commas"),
}
"""How each kind is read, and an example for who wrote something else."""


def shown(knob: Knob, value: KnobValue) -> str:
    """The value as `config show` prints it."""
    if value is None:
        return ""
    if knob.secret:
        return _without_password(str(value))
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return format_seconds(int(seconds)) if seconds.is_integer() else f"{seconds:g} s"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value)
    return format_bytes(value) if knob.kind is KnobKind.SIZE and isinstance(value, int) else str(value)


def _without_password(url: str) -> str:
    """What of a URL may be shown: of a database its scheme, host and path, of a web address only the host."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return "set"
    place, _, _ = rest.partition("?")
    _, at, host = place.rpartition("@")
    shown = host.partition("/")[0] if scheme.startswith("http") else host
    return f"{scheme}://{'***@' if at else ''}{shown}"
