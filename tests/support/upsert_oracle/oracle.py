"""What docs/upsert.md says that an upsert leaves in its table, row by row. Shares nothing with the product."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from support.upsert_oracle.values import Value, same, smaller_first

__all__ = ["BY", "Change", "Outcome", "Words", "changes_of_envelopes", "changes_of_rows", "expected"]

Row = Mapping[str, Value]
Key = tuple[Value, ...]

BY: Final = "ts"
"""The column that `newer by` and `last by` name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """How the upsert is asked for. `kinds` has the type of each column, in the source's order; of `emptied` columns an
    empty text is NULL. `lsn`: `last by source.lsn`, for envelopes."""

    kinds: Mapping[str, str]
    keys: tuple[str, ...]
    duplicates: str = "error"
    newer: bool = False
    null_keys: str = "insert"
    partial: tuple[str, ...] = ()
    emptied: frozenset[str] = frozenset()
    envelopes: bool = False
    lsn: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A row of the source: it is put, or (`gone`) the row with its key goes. `at` and `lsn` order envelopes."""

    row: Row
    gone: bool
    at: int = 0
    lsn: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What is in the table afterwards. `refused`: nothing has changed, and why."""

    rows: list[Row]
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    refused: str | None = field(default=None)


def changes_of_rows(rows: Iterable[Row], gone: Iterable[bool]) -> list[Change]:
    """Rows of which some delete."""
    return [Change(row=row, gone=goes) for row, goes in zip(rows, gone, strict=True)]


def changes_of_envelopes(
    envelopes: Iterable[tuple[Row | None, Row | None, str | None, int, int]], words: Words
) -> list[Change]:
    """`before`, `after`, `op`, `ts_ms`, `lsn`: tombstones and messages are nothing, a new key is a deletion, too."""
    found = []
    for before, after, op, at, lsn in envelopes:
        if op == "m" or (op is None and before is None and after is None):
            continue
        if op == "d":
            assert before is not None
            found.append(Change(row=before, gone=True, at=at, lsn=lsn))
            continue
        assert after is not None
        if before is not None and _key(before, words) != _key(after, words):
            found.append(Change(row=before, gone=True, at=at, lsn=lsn))
        found.append(Change(row=after, gone=False, at=at, lsn=lsn))
    return found


def expected(table: Sequence[Row], changes: Iterable[Change], words: Words) -> Outcome:
    """The table after the upsert."""
    alone, groups = list[Change](), dict[Key, list[Change]]()
    for change in changes:
        key = _key(change.row, words)
        if None in key and words.null_keys != "match":
            alone.append(change)
        else:
            groups.setdefault(key, []).append(change)
    if alone and words.null_keys == "refuse":
        return Outcome(rows=list(table), refused="a NULL in a key")
    settled = dict[Key, Change]()
    for key, several in groups.items():
        one = _one_of(several, words)
        if one is None:
            return Outcome(rows=list(table), refused=f"several rows with the key {key}")
        settled[key] = one
    return _merged(table, settled, alone, words)


def _merged(
    table: Sequence[Row], settled: Mapping[Key, Change], alone: Sequence[Change], words: Words
) -> Outcome:
    rows, matched, updated, deleted = list[Row](), set[Key](), 0, 0
    for row in table:
        key = _key(row, words)
        change = settled.get(key)
        if change is None:
            rows.append(row)
            continue
        matched.add(key)
        if not _replaces(change, row, words):
            rows.append(row)
        elif change.gone:
            deleted += 1
        else:
            updated += 1
            rows.append({**row, **{name: change.row[name] for name in _set_by(words) - {*words.keys}}})
    new = [change for key, change in settled.items() if key not in matched]
    added = [_new(change.row, words) for change in (*new, *alone) if not change.gone]
    return Outcome(rows=[*rows, *added], inserted=len(added), updated=updated, deleted=deleted)


def _key(row: Row, words: Words) -> Key:
    return tuple(
        None if row[name] == "" and name in words.emptied else same(row[name]) for name in words.keys
    )


def _set_by(words: Words) -> set[str]:
    if not words.partial:
        return set(words.kinds)
    return {*words.keys, *words.partial, *([BY] if words.newer else [])}


def _new(row: Row, words: Words) -> Row:
    given = _set_by(words)
    made = {name: row[name] if name in given else None for name in words.kinds}
    return {name: None if name in words.emptied and value == "" else value for name, value in made.items()}


def _replaces(change: Change, row: Row, words: Words) -> bool:
    ours, theirs = change.row[BY], row[BY]
    if not words.newer:
        return True
    if ours is None:
        return False
    if theirs is None or int(ours) > int(theirs):
        return True
    return words.envelopes and change.gone and int(ours) == int(theirs)


def _one_of(several: Sequence[Change], words: Words) -> Change | None:
    """The one that counts; None where they may not be several."""
    if words.envelopes:
        last = max(one.at for one in several)
        several = [one for one in several if one.at == last]
        if words.lsn:
            return max(several, key=lambda one: one.lsn)
        return several[0] if len({_whole(one, words) for one in several}) == 1 else None
    if words.duplicates == "error":
        return several[0] if len(several) == 1 else None
    if words.duplicates == "any":
        return min(
            several,
            key=lambda one: [smaller_first(kind, one.row[name]) for name, kind in words.kinds.items()],
        )
    newest = max(smaller_first("int", one.row[BY]) for one in several)
    several = [one for one in several if smaller_first("int", one.row[BY]) == newest]
    return several[0] if len({_whole(one, words) for one in several}) == 1 else None


def _whole(change: Change, words: Words) -> tuple[object, ...]:
    return (change.gone, *(same(change.row[name]) for name in words.kinds))
