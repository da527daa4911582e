"""The hash by which a plan is quoted: equal plans have equal hashes, whatever else changed meanwhile. Pure."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import orjson

from lakewarden.jobs.rollback.plan.consents import by_words
from lakewarden.jobs.rollback.plan.facts import TableFacts
from lakewarden.jobs.rollback.plan.model import TablePlan
from lakewarden.jobs.rollback.plan.request import (
    BadVersions,
    CommitsOf,
    RollbackRequest,
    Seed,
    ToVersion,
    ToVersionAsPlanned,
)

__all__ = ["plan_hash"]


def plan_hash(request: RollbackRequest, tables: Iterable[TablePlan], facts: Mapping[str, TableFacts]) -> str:
    """16 hexadecimal digits over the request, its consents, and the steps by table and order.

    A table made anew at its place is another one, though its versions have the same numbers. Names, counts of rows and
    sentences are left out: a rename does not make a plan stale.
    """
    value = {
        "seeds": sorted(_seed(one) for one in request.seeds),
        "clean": sorted(f"{table_id}@{version}" for table_id, version in request.clean),
        "cascade": request.cascade,
        "consents": (*sorted(request.consents.whole), *by_words(request.consents.named)),
        "agreed": sorted(request.agreed),
        "undo": sorted(request.undo),
        "reapply": request.reapply,
        "tables": sorted(
            (_table(one, facts.get(one.table_id)) for one in tables), key=lambda one: str(one["table_id"])
        ),
    }
    return sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _seed(seed: Seed) -> str:
    match seed:
        case ToVersion(table_id=table_id, version=version):
            return f"{table_id}>{version}"
        case CommitsOf(run_id=run_id):
            return f"run {run_id}"
        case BadVersions(table_id=table_id, versions=versions):
            return f"{table_id}@{sorted(versions)}"
        case ToVersionAsPlanned(table_id=table_id, version=version, head=head, bad=bad):
            return f"{table_id}>{version}..{head}@{sorted(bad)}"


def _table(table: TablePlan, facts: TableFacts | None) -> dict[str, Any]:
    return {
        "table_id": table.table_id,
        "format_id": None if facts is None else facts.format_id,
        "head": None if facts is None else facts.head,
        "location": table.location,
        "from": table.from_version,
        "to": table.to_version,
        "step": table.step,
        "wave": table.wave,
        "waits": table.waits,
        "tainted": table.tainted,
        "collateral": [(one.version, one.reapplied) for one in table.collateral],
        "unknown": table.unknown,
        "undo": table.undoable if table.step == "remove_files" else (),
        "blocked_by": [one.why for one in table.blocked_by],
    }
