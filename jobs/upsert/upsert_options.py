"""What can be asked of an upsert: words of its caller, read into values. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypedDict, TypeVar, Unpack

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.bucket_layout import MOST_BUCKETS
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.jobs.upsert.changes import GONE, ORDER, ORDERED, Cdc

__all__ = [
    "Drift",
    "Duplicates",
    "DuplicatesRule",
    "NullKeys",
    "UpsertOptions",
    "UpsertWords",
    "buckets_asked",
    "options_of",
]


class DuplicatesRule(StrEnum):
    """What happens to several rows of the source with one key: an error; the one with the largest value of a column;
    the one with the smallest values."""

    ERROR = "error"
    LAST = "last"
    ANY = "any"


class NullKeys(StrEnum):
    """What a row of the source with NULL in a key means: a new row each time, as in SQL; a mistake; or the row of the
    target that has NULL there, too."""

    INSERT = "insert"
    REFUSE = "refuse"
    MATCH = "match"


class Drift(StrEnum):
    """What happens when the source has other columns or wider types than the target; each allows what those before it
    do."""

    REFUSE = "refuse"
    ADD = "add"
    WIDEN = "widen"


@dataclass(frozen=True, kw_only=True, slots=True)
class Duplicates:
    """Which of several rows of a key counts."""

    rule: DuplicatesRule = DuplicatesRule.ERROR
    by: str | None = None
    """The column whose largest value wins; set for `LAST` alone."""
    then: str | None = None
    """Tells apart what has the same: of change data that has an order of its own, what the caller names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UpsertOptions:
    """Columns are names without quotes, in any case."""

    keys: tuple[str, ...]
    newer_by: str | None = None
    delete_when: str | None = None
    """A condition in SQL on the source's columns."""
    duplicates: Duplicates = Duplicates()
    partial: tuple[str, ...] = ()
    """Only these are updated, and a new row has nothing but them and its keys; empty for all."""
    null_keys: NullKeys = NullKeys.INSERT
    drift: Drift = Drift.REFUSE
    cdc: Cdc | None = None
    """The source has changes, not rows."""
    op: str = "op"
    """The changes' column of codes."""
    write: RowsWrite | None = None
    """None: as the session, the table or its namespace asks."""


Word = TypeVar("Word", bound=StrEnum)
_ONE_OF: Final = "It is one of: {}."


class UpsertWords(TypedDict, total=False):
    """The options as a caller writes them; docs/upsert.md says what they mean."""

    when: str | None
    delete_when: str | None
    duplicates: str
    partial: Sequence[str] | str | None
    null_keys: str
    drift: str
    cdc: str | None
    op: str
    write: str | None


def buckets_asked(buckets: int | None, partitioned: Sequence[str]) -> int | None:
    """The buckets of a table that an upsert makes. Raises `UsageError` for so many as no table has, and for a table
    that would be partitioned as well."""
    if buckets is None:
        return None
    if isinstance(buckets, bool) or not isinstance(buckets, int) or not 0 < buckets <= MOST_BUCKETS:
        raise UsageError(
            f"A table has no {buckets} buckets.", hint=f"It has at least one, and at most {MOST_BUCKETS}."
        )
    if partitioned:
        raise UsageError(
            "A table with buckets is not partitioned.", hint="Leave out `buckets`, or `partitioned`."
        )
    return buckets


def options_of(keys: Sequence[str] | str, **words: Unpack[UpsertWords]) -> UpsertOptions:
    """Read what a caller says. Raises `UsageError` for words that say nothing."""
    unknown = words.keys() - UpsertWords.__annotations__.keys()
    if unknown:
        raise UsageError(
            f"An upsert has no option {min(unknown)}.",
            hint=_ONE_OF.format(", ".join(UpsertWords.__annotations__)),
        )
    names = _names(keys)
    if not names:
        raise UsageError("An upsert needs keys.", hint='Name the columns that tell rows apart: keys=["id"].')
    when = words.get("when")
    newer = None if when is None else _column_by("newer", when)
    if when is not None and newer is None:
        raise UsageError(
            f"'{when}' does not say when a row is replaced.", hint='Write when="newer by <column>".'
        )
    cdc = None if words.get("cdc") is None else _word(Cdc, str(words["cdc"]), "cdc")
    return UpsertOptions(
        keys=names,
        newer_by=None if newer is None else _bare(newer),
        delete_when=_deleting(words.get("delete_when"), cdc),
        duplicates=_duplicates(words.get("duplicates"), cdc),
        partial=_partial(words.get("partial")),
        null_keys=_word(NullKeys, words.get("null_keys", NullKeys.INSERT), "null_keys"),
        drift=_word(Drift, words.get("drift", Drift.REFUSE), "drift"),
        cdc=cdc,
        op=_bare(words.get("op", "op")),
        write=None if words.get("write") is None else _word(RowsWrite, str(words["write"]), "write"),
    )


def _deleting(condition: str | None, cdc: Cdc | None) -> str | None:
    if cdc is None or condition is None:
        return condition if cdc is None else GONE
    return f"{GONE} OR (\n{condition}\n)"


def _duplicates(text: str | None, cdc: Cdc | None) -> Duplicates:
    """What is said; of changes that have an order the last one counts, whatever else tells them apart."""
    if text is None:
        return Duplicates(rule=DuplicatesRule.LAST, by=ORDER) if cdc in ORDERED else Duplicates()
    last = _column_by("last", text)
    if last is not None:
        named = _bare(last)
        if cdc in ORDERED:
            return Duplicates(rule=DuplicatesRule.LAST, by=ORDER, then=named)
        return Duplicates(rule=DuplicatesRule.LAST, by=named)
    word = text.strip().lower()
    if word not in (DuplicatesRule.ERROR, DuplicatesRule.ANY):
        raise UsageError(
            f"'{text}' is no rule for duplicates.", hint=_ONE_OF.format("error, any, last by <column>")
        )
    return Duplicates(rule=DuplicatesRule(word))


def _column_by(word: str, text: str) -> str | None:
    """The column in `newer by column`; None where another word, or nothing, stands there."""
    match text.split(maxsplit=2):
        case [first, by, column] if (first.lower(), by.lower()) == (word, "by"):
            return column.strip()
        case _:
            return None


def _partial(names: Sequence[str] | str | None) -> tuple[str, ...]:
    listed = () if names is None else _names(names)
    if names is not None and not listed:
        raise UsageError("`partial` names no column.", hint="Leave it out, and all columns are updated.")
    return listed


def _word(words: type[Word], text: str, option: str) -> Word:
    if text not in set(words):
        raise UsageError(f"{option}={text!r} says nothing.", hint=_ONE_OF.format(", ".join(words)))
    return words(text)


def _names(names: Sequence[str] | str) -> tuple[str, ...]:
    listed = tuple(_bare(name) for name in ([names] if isinstance(names, str) else names))
    twice = next((name for place, name in enumerate(listed) if name in listed[:place]), None)
    if twice is not None:
        raise UsageError(f"The column {twice} is named twice.", hint="Name each column once.")
    return listed


def _bare(name: str) -> str:
    """A column's name without backticks, in lower case: names are compared like that."""
    whole = name[1:-1].replace("``", "`") if len(name) > 1 and name[0] == name[-1] == "`" else name
    return whole.lower()
