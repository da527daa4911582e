"""Names, scopes and filters that mean no table today, because of a misspelling maybe: what they are nearest to."""

from collections.abc import Collection, Iterable
from difflib import SequenceMatcher, get_close_matches
from typing import Final

from lakewarden.catalog.policy.scopes import GLOBAL, is_scope, scope_names
from lakewarden.catalog.system.port import SystemStore
from lakewarden.catalog.validation.checks import CHECKS
from lakewarden.daemon.usecases.tables import TableFilter, fleet

__all__ = ["nearest_table", "unmatched_filters", "unmatched_scope"]

_ALIKE: Final = 0.6
_CANDIDATES: Final = 20


def nearest_table(where: str, names: Iterable[str]) -> str | None:
    """The table whose name is like this one, in the database as well as after it: a long name of a database makes
    all of its tables alike. Pure."""
    near = get_close_matches(where, list(names), n=_CANDIDATES, cutoff=_ALIKE)
    return next((name for name in near if _likeness(where, name) >= _ALIKE), None)


def unmatched_scope(store: SystemStore, where: str) -> str | None:
    """What to say of a scope that no table is in; None for a table, and for a scope with tables."""
    if not is_scope(where) or where == GLOBAL:
        return None
    known = _scopes(_names(store))
    return None if where in known else _nothing(f"No table matches {where} today", where, known)


def unmatched_filters(store: SystemStore, wanted: TableFilter) -> list[str]:
    """The hint for each filter that no table meets even alone."""
    everything = fleet(store, TableFilter(gone=True))
    names: list[str] = everything.column("name").to_pylist()
    said = []
    if wanted.names is not None and not fleet(store, TableFilter(names=wanted.names, gone=True)).num_rows:
        known = [*_scopes(names), *names] if wanted.names.endswith("*") else names
        said.append(_nothing(f"No table has a name like {wanted.names}", wanted.names, known))
    for what, asked in (("owner", wanted.owner), ("format", wanted.format)):
        values = set(filter(None, everything.column(what).to_pylist()))
        if asked is not None and asked not in values:
            said.append(_nothing(f"No table has the {what} {asked}", asked, values))
    spaces = {name.rpartition(".")[0] for name in names}
    if wanted.namespace is not None and not any(one.startswith(f"{wanted.namespace}.") for one in names):
        said.append(_nothing(f"No table is in {wanted.namespace}", wanted.namespace, spaces))
    checks = [check.name for check in CHECKS]
    if wanted.finding not in (None, "*", *checks):
        said.append(_nothing(f"There is no check {wanted.finding}", str(wanted.finding), checks))
    return said


def _likeness(one: str, other: str) -> float:
    pairs = zip(one.rpartition("."), other.rpartition("."), strict=True)
    return min(SequenceMatcher(None, left, right).ratio() for left, right in pairs)


def _names(store: SystemStore) -> list[str]:
    names: list[str] = fleet(store).column("name").to_pylist()
    return names


def _scopes(names: Iterable[str]) -> Collection[str]:
    return {scope for name in names for scope in scope_names(name) if scope != GLOBAL}


def _nothing(said: str, word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, sorted(known), n=1, cutoff=_ALIKE)
    return f"{said}; did you mean {near[0]}?" if near else f"{said}."
