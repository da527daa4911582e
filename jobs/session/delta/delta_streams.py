"""Delta tables at both ends of a session's streaming queries, as their progress and their plans name them."""

import re
from collections.abc import Sequence
from typing import Any, Final

from lakewarden.catalog.lineage.streams.offsets import NOT_SAID, Began
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.session.plans import kind, location_of

__all__ = ["began_with_delta", "place_of_sink", "place_of_source"]

_SINK: Final = re.compile(r"DeltaSink\[(.*)\]")
_SOURCE: Final = "DeltaSource"
_VERSION: Final = "StartingVersion"


def place_of_sink(description: str) -> str | None:
    """The canonical location of the table that a sink is; None for another kind of sink. Raises `UsageError` for what
    is no place."""
    place = _SINK.fullmatch(description)
    return None if place is None else canonical(place[1])


def place_of_source(source: Any) -> str | None:
    """The canonical location of the table that a source reads; None for another kind of source."""
    return location_of(source.deltaLog().dataPath()) if kind(source) == _SOURCE else None


def began_with_delta(sources: Sequence[Any]) -> Began:
    """What a query with these sources began with."""
    return _began_of([one.options() for one in sources if kind(one) == _SOURCE])


def _began_of(options: Sequence[Any]) -> Began:
    """From the options of all Delta sources of a query."""
    versions = [one.startingVersion() for one in options]
    if any(one.startingTimestamp().isDefined() for one in options) or not options:
        return NOT_SAID
    if not any(one.isDefined() for one in versions):
        return Began(content=True)
    if len(versions) > 1 or versions[0].get().getClass().getSimpleName() != _VERSION:
        return NOT_SAID
    return Began(version=int(versions[0].get().version()), skips=bool(options[0].skipChangeCommits()))
