"""Convert a table from the control plane: row first, then a run on a worker, then the row becomes active."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.metastore.lookup import resolve
from lakewarden.catalog.model.pending_conversion import SourceFiles
from lakewarden.catalog.model.rows import (
    DELTA,
    Action,
    Outcome,
    PolicySettings,
    RowKind,
    TableFormat,
    TableRow,
    TableState,
)
from lakewarden.catalog.policy.access import Actor
from lakewarden.catalog.policy.effective import with_values
from lakewarden.catalog.policy.scopes import govern, scopes_by_name
from lakewarden.catalog.registry.convert import (
    WantedConversion,
    begin_conversion,
    conversion_failed,
    converted,
    foreseen_conversion,
)
from lakewarden.catalog.registry.governance import governed
from lakewarden.catalog.registry.service import Registered
from lakewarden.catalog.state.port import RunRequest, runtime_of
from lakewarden.catalog.storage.file_store import open_store
from lakewarden.catalog.system.port import HEALTH, TABLES
from lakewarden.catalog.units import about_bytes, count_of
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.runs.waiting import raise_for, run_and_wait
from lakewarden.jobs.actions.convert import CONVERT, conversion_action
from lakewarden.jobs.actions.registry import encode
from lakewarden.jobs.engines.registry import require_engine
from lakewarden.jobs.executors.convert_checks import check_source
from lakewarden.jobs.runs.parquet_folder import data_files, source_of

__all__ = ["ConvertRequest", "Foreseen", "convert_table", "foresee_conversion"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvertRequest:
    """What CLI, SQL and Python ask for alike."""

    where: str
    """db.t, a path or a URI."""
    name: str | None = None
    owner: str | None = None
    partitioned_by: tuple[tuple[str, str], ...] = ()
    statistics: bool = True
    retain_seconds: int | None = None
    """The retention."""
    seen: str | None = None
    """The dry run's token for the files that it found; None: there was none."""
    format: TableFormat = DELTA
    """The format that the table gets."""

    def wanted(self, *, admin: bool) -> WantedConversion:
        """What the row is made of. Raises `NotAllowedError` for a retention below the floor, `RefusedError` for a
        format that no engine here works on."""
        require_engine(self.format, Action.CONVERT)
        values = {} if self.retain_seconds is None else {"vacuum.retention": self.retain_seconds}
        return WantedConversion(
            name=self.name,
            owner=self.owner,
            policy=with_values(PolicySettings(), values, admin=admin),
            partitioned_by=self.partitioned_by,
            statistics=self.statistics,
            format=self.format,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreseen:
    """What a conversion would do: the row and the properties it would write, and the data it would take (bytes)."""

    row: TableRow
    files: int
    bytes: int
    properties: tuple[tuple[str, str], ...]
    seen: str
    """Knows that data again."""


def foresee_conversion(services: Services, request: ConvertRequest, *, actor: Actor) -> Foreseen:
    """All checks of `convert_table`, from listings and the metastore, without Spark. Nothing is written.

    Raises what the conversion would raise; `PreconditionError` for a table that is managed already.
    """
    row = foreseen_conversion(
        services.registry, request.where, request.wanted(admin=actor.admin), actor=actor
    )
    if row.state is not TableState.CONVERTING:
        raise PreconditionError(
            f"{row.name} is managed already.", hint="Look at it with `lakewarden tables show`."
        )
    scopes = scopes_by_name(services.store.rows(TABLES).find(kind=RowKind.SCOPE))
    action = conversion_action(govern(row, scopes))
    files = check_source(
        action,
        format_=request.format,
        metastore=services.metastore,
        storage=services.storage(action.location),
        now=services.clock.now(),
    )
    return Foreseen(
        row=row,
        files=len(files),
        bytes=sum(file.size_bytes for file in files),
        properties=action.properties,
        seen=source_of(files).digest,
    )


def convert_table(
    services: Services, request: ConvertRequest, *, actor: Actor, tell: Callable[[str], None]
) -> Registered:
    """Convert and wait. A conversion that fails for good leaves no row; one that is interrupted is finished later.

    Raises `PreconditionError` if other files lie there than the dry run has `seen`."""
    wanted = replace(request.wanted(admin=actor.admin), source=_source(services, request))
    begun = begin_conversion(services.registry, request.where, wanted, actor=actor)
    row = begun.row
    if row.state is not TableState.CONVERTING:
        tell(f"{row.name} is managed already.")
        return Registered(row=row, health=services.store.rows(HEALTH).get(row.table_id), created=False)
    action = conversion_action(governed(services.registry, row.table_id))
    result = run_and_wait(
        services,
        RunRequest(
            run_id=uuid.uuid4().hex,
            table_id=row.table_id,
            name=row.name,
            location=row.location or "",
            action=Action.CONVERT,
            payload=encode(action),
            because=f"{actor.name} asked to convert it",
            rank=float("inf"),
            runtime=runtime_of(row),
        ),
        tell=tell,
    )
    if result.outcome is not Outcome.SUCCEEDED and not result.retry:
        conversion_failed(
            services.registry,
            row.table_id,
            result.message or result.outcome,
            is_for=lambda one: CONVERT.is_for(one, action),
        )
    raise_for(result)
    return converted(services.registry, row.table_id)


def _source(services: Services, request: ConvertRequest) -> SourceFiles:
    """What lies there now, by one listing: what is converted later has to be just that."""
    location = resolve(request.where, services.metastore).location
    store = open_store(location, services.storage(location))
    found = source_of(data_files(store.list("", recursive=True)))
    if request.seen is not None and request.seen != found.digest:
        raise PreconditionError(
            f"{request.where} does not hold what the dry run showed: {count_of(found.files, 'file')} "
            f"({about_bytes(found.bytes)}) lie there now.",
            hint="Repeat the dry run and look again.",
        )
    return found
