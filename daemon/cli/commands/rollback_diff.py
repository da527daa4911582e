"""`rollback plan --diff`: from what was typed and a plan to the versions whose rows are compared."""

from collections.abc import Mapping, Sequence

from lakewarden.catalog.errors import NotFoundError, PreconditionError, UsageError
from lakewarden.catalog.model.rows import DELTA
from lakewarden.catalog.registry.service import Registry
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step, TablePlan
from lakewarden.jobs.runs.row_diff import MOST_SAMPLES, DiffRequest

__all__ = ["diff_requests"]


def diff_requests(
    registry: Registry, plan: RollbackPlan, tables: Sequence[str], keys: Sequence[str], *, samples: int
) -> tuple[DiffRequest, ...]:
    """One for each table, in the order given. `keys` are `column[,column]` for all of them or `table=column[,column]`.

    Raises `NotFoundError` for a table that the plan does not have, `PreconditionError` for one without a
    version to compare with, `UsageError` for a key of a table that is not compared.
    """
    if not 0 <= samples <= MOST_SAMPLES:
        raise UsageError(f"{samples:,} samples are not between 0 and {MOST_SAMPLES:,}.")
    by_id = {one.table_id: one for one in plan.tables}
    wanted = list(dict.fromkeys(registry.resolve(name).table_id for name in tables))
    own = _own_keys(registry, keys, wanted)
    every = tuple(column for one in keys if "=" not in one for column in _columns(one))
    found = []
    for table_id in wanted:
        table = by_id.get(table_id)
        if table is None:
            raise NotFoundError(
                f"{registry.get(table_id).name} is not in the plan.", hint="Its rows stay as they are."
            )
        found.append(
            DiffRequest(
                name=table.name,
                location=table.location or "",
                head=table.from_version,
                target=_target(table),
                keys=own.get(table_id, every),
                samples=samples,
                format=registry.get(table_id).format or DELTA,
            )
        )
    return tuple(found)


def _target(table: TablePlan) -> int:
    if table.step is Step.REMOVE_FILES:
        why = (
            f"{table.name} only loses the files of some versions: "
            "there is no version like that to compare with."
        )
        raise PreconditionError(why, hint="Plan without --remove-files to compare with the version before.")
    if table.to_version is None:
        why = f"{table.name} has no clean version to compare with."
        raise PreconditionError(why, hint="`lakewarden tables history` lists its versions.")
    return table.to_version


def _own_keys(
    registry: Registry, keys: Sequence[str], wanted: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    found = {}
    for one in keys:
        name, given, columns = one.rpartition("=")
        if given:
            table_id = registry.resolve(name).table_id
            if table_id not in wanted:
                raise UsageError(f"--key {one} is about a table that is not compared.", hint=f"--diff {name}")
            found[table_id] = _columns(columns)
    return found


def _columns(text: str) -> tuple[str, ...]:
    columns = tuple(part.strip() for part in text.split(","))
    if not all(columns):
        raise UsageError(f"'{text}' names no column.", hint="Write --key id or --key db.t=id,day.")
    return columns
