"""What distributions installed beside lakewarden add to it: named objects that they offer as entry points.

Ours are named in the same form, one line each in the registry of their kind, and loaded when they are first asked for.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from lakewarden.catalog.errors import PreconditionError

__all__ = ["loaded", "offered"]

_Kind = TypeVar("_Kind")


def offered(group: str, ours: Mapping[str, str]) -> Mapping[str, EntryPoint]:
    """Everything of a kind by name: `ours` (`module:object` by name) first, then what is installed.
    Raises `PreconditionError` where two go by the same name."""
    found = {name: EntryPoint(name=name, value=value, group=group) for name, value in ours.items()}
    for point in sorted(entry_points(group=group), key=lambda one: one.name):
        if point.name in found:
            raise PreconditionError(
                f"{_source(point)} offers {point.name} ({group}), "
                f"which {_source(found[point.name])} has already.",
                hint=f"Uninstall {_source(point)}.",
            )
        found[point.name] = point
    return found


def loaded(point: EntryPoint, kind: type[_Kind]) -> _Kind:
    """The object behind an entry point. Raises `PreconditionError` with whose it is if it is broken."""
    try:
        made = point.load()
    except Exception as error:
        raise _broken(point, f"{type(error).__name__}: {error}") from error
    if not isinstance(made, kind):
        raise _broken(point, f"it is of type {type(made).__name__}, not {kind.__name__}")
    return made


def _broken(point: EntryPoint, because: str) -> PreconditionError:
    return PreconditionError(
        f"{point.name} ({point.group}) of {_source(point)} cannot be loaded: {because}.",
        hint=f"Repair or uninstall {_source(point)}.",
    )


def _source(point: EntryPoint) -> str:
    return "lakewarden" if point.dist is None else f"{point.dist.name} {point.dist.version}"
