"""The options of the classic `upsert` sink, read as ours: a pipeline that is moved here says what it always has. Pure.

Two of its words mean something else here. `operation` is the kind of change ("upsert" or "delete") beside `idCols`, and
an id of the upsert beside `keys`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Final, Unpack, cast

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.lineage_record import OPERATION
from lakewarden.jobs.upsert.changes import ORDERED
from lakewarden.jobs.upsert.upsert_options import DuplicatesRule, UpsertOptions, UpsertWords, options_of

__all__ = ["UpsertOrSinkWords", "UpsertRequest", "asked_of"]

_KINDS: Final = ("upsert", "delete")
_YES: Final = {"true": True, "false": False}
_NOT_IN_STREAMS: Final = (
    "Each batch of a stream has its own number, under which it is done once. Leave it out."
)


class UpsertOrSinkWords(UpsertWords, total=False):
    """Our options, and those of the classic sink; docs/upsert.md says what these become."""

    idCols: Sequence[str] | str
    dropDuplicate: bool | str
    keepFileNum: bool | str
    batchId: int | str


_SINK: Final = UpsertOrSinkWords.__annotations__.keys() - UpsertWords.__annotations__.keys()


@dataclass(frozen=True, kw_only=True, slots=True)
class UpsertRequest:
    """What an upsert is asked for."""

    options: UpsertOptions
    operation: str | None = None
    """With the number it names the upsert; None where nothing does."""
    number: int = 0


def asked_of(
    keys: Sequence[str] | str | None,
    operation: str | None,
    *,
    query: str | None = None,
    is_stream: bool = False,
    **words: Unpack[UpsertOrSinkWords],
) -> UpsertRequest:
    """Read what a caller says, in our words or the sink's. `query` is the id of the streaming query whose batch this
    is, None outside of one; `is_stream`: it is asked for all batches of one. Raises `UsageError` for what says nothing,
    and for what contradicts itself."""
    told: dict[str, Any] = {name: value for name, value in words.items() if name not in _SINK}
    columns = _columns(keys, words)
    kind = _kind_of(operation, is_classic="idCols" in words)
    if kind == "delete":
        _require_none(told, ("delete_when", "cdc", "partial"))
        told["delete_when"] = "true"
    if "dropDuplicate" in words:
        _resolve_duplicates(told, drops=_bool("dropDuplicate", words["dropDuplicate"]))
    if "keepFileNum" in words:
        _bool("keepFileNum", words["keepFileNum"])  # few files are written whatever it says
    options = options_of(columns, **cast(UpsertWords, told))
    id_ = None if kind is not None else operation
    if is_stream and (id_ is not None or "batchId" in words):
        raise UsageError(
            f"{'batchId' if id_ is None else 'operation'} says nothing of a stream.", hint=_NOT_IN_STREAMS
        )
    if "batchId" not in words:
        return UpsertRequest(options=options, operation=None if id_ is None else f"{OPERATION}{id_}")
    if id_ is not None:
        raise UsageError("batchId and operation both name the upsert.", hint="Give one of them.")
    return _numbered(options, _batch(words["batchId"]), query)


def _columns(keys: Sequence[str] | str | None, words: UpsertOrSinkWords) -> Sequence[str] | str:
    if "idCols" not in words:
        return () if keys is None else keys
    if keys is not None:
        raise UsageError(
            "idCols and keys both name the columns that tell rows apart.", hint="Give one of them."
        )
    listed = words["idCols"]
    return [one.strip() for one in listed.split(",") if one.strip()] if isinstance(listed, str) else listed


def _kind_of(operation: str | None, *, is_classic: bool) -> str | None:
    """What the sink's `operation` says; None where it is our id, or nothing."""
    if operation is None or (not is_classic and operation not in _KINDS):
        return None
    if not is_classic:
        raise UsageError(
            f"operation={operation!r} is the sink's word beside `keys`, where an operation is an id.",
            hint='Write idCols instead of keys; or delete_when="true" for a deletion, and an id '
            "that says which load it is.",
        )
    if operation not in _KINDS:
        raise UsageError(
            f"operation={operation!r} says nothing beside idCols: it is upsert or delete.",
            hint="Write keys instead of idCols, and operation is an id; or give the id as batchId.",
        )
    return operation


def _require_none(told: dict[str, Any], names: Sequence[str]) -> None:
    other = next((name for name in names if told.get(name) is not None), None)
    if other is not None:
        raise UsageError(
            'operation="delete" deletes all rows with the keys of the source, '
            f"and {other} says something else.",
            hint=f"Leave {other} away, or operation.",
        )


def _resolve_duplicates(told: dict[str, Any], *, drops: bool) -> None:
    said = told.get("duplicates")
    keeps_none = said is not None and said.strip().lower() != DuplicatesRule.ERROR
    if said is not None and drops != keeps_none:
        raise UsageError(
            f"dropDuplicate={str(drops).lower()} and duplicates={said!r} contradict one another.",
            hint="Give one of them.",
        )
    if said is None and drops and told.get("cdc") not in ORDERED:
        told["duplicates"] = DuplicatesRule.ANY.value


def _bool(name: str, value: bool | str) -> bool:
    found = value if isinstance(value, bool) else _YES.get(str(value).strip().lower())
    if found is None:
        raise UsageError(f"{name}={value!r} says nothing.", hint="It is true or false.")
    return found


def _batch(told: object) -> str:
    """The batch in one spelling: as a float, a number would be the name of another batch."""
    if isinstance(told, bool) or not isinstance(told, str | Integral):
        raise UsageError(
            f"batchId={told!r} is neither a whole number nor a text.",
            hint="Give the number that foreachBatch has, or a text of your own.",
        )
    return str(told).strip()


def _numbered(options: UpsertOptions, batch: str, query: str | None) -> UpsertRequest:
    if not batch:
        raise UsageError(
            "batchId names no batch.", hint="Give the number that foreachBatch has, or a text of your own."
        )
    own = _own_name(options)
    if query is None:
        return UpsertRequest(options=options, operation=f"{OPERATION}batch {batch}{own}")
    if not (batch.isascii() and batch.isdecimal()):
        raise UsageError(
            f"batchId={batch!r} is no number.", hint="In foreachBatch give the number that it has."
        )
    return UpsertRequest(options=options, operation=f"{query}{own}", number=int(batch))


def _own_name(options: UpsertOptions) -> str:
    """What tells deletions and changes of some columns apart from an upsert of whole rows by the same keys: one batch
    may bring each of them into one table."""
    deletes = options.delete_when if options.cdc is None else None  # of changes, each says itself what it is
    if deletes is None and not options.partial:
        return ""
    said = "\0".join((*options.keys, "", " ".join((deletes or "").split()), "", *sorted(options.partial)))
    return f" {hashlib.sha256(said.encode()).hexdigest()[:8]}"
