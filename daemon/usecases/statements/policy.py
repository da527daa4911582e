"""ALTER TABLE ... SET POLICY and UNSET POLICY: `tables policy set` in SQL."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.policy.keys import Value, format_value, policy_key
from lakewarden.catalog.registry.governance import set_policy
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.runs.revocation import PLANNED, take_back_runs
from lakewarden.daemon.usecases.statements.statement_answers import table_of

__all__ = ["change_policy"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Set:
    """What a table or scope asks for now; None: nothing, so that the level above counts."""

    name: str
    key: str
    value: str | None


def change_policy(
    services: Services, where: str, values: Mapping[str, Value | None], *, caller: Caller
) -> pa.Table:
    """Set the keys of a table or scope, None takes one back; what is queued and was decided by the old ones is taken
    out of the queue. A row per key."""
    with run(services, caller, declared.SET_POLICY, where) as actor:
        row = set_policy(services.registry, where, values, actor=actor)
    take_back_runs(services, row, PLANNED, f"the policy of {row.name} changed", ordered=False)
    now = ((key, getattr(row.policy, policy_key(key).field)) for key in values)
    told = (
        _Set(name=row.name, key=key, value=None if value is None else format_value(key, value))
        for key, value in now
    )
    return table_of(_Set, told)
