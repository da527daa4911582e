"""Convert a Parquet table: check everything before anything is touched, convert, set the properties.

Every step can be done again: a conversion that was killed anywhere is finished by the next one.
"""

import json
from collections.abc import Mapping

from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.formats.registry import retention_of
from lakewarden.catalog.storage.file_store import open_store
from lakewarden.catalog.units import about_bytes, count_of
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.executors.convert_checks import check_again, check_source, refuse_foreign
from lakewarden.jobs.executors.convert_words import few
from lakewarden.jobs.runs.head import observe
from lakewarden.jobs.runs.parquet_folder import data_files
from lakewarden.jobs.runs.port import JobContext, Report
from lakewarden.jobs.runs.properties_ledger import keep_before

__all__ = ["convert"]


def convert(ctx: JobContext, action: Convert) -> Report:
    """Convert the table that `action` names.

    Raises `RefusedError` for what is not a plain Parquet table or has a log already, `ConflictError` while somebody
    writes to it, `RevokedError` where other files lie there than when it was asked for.
    Files that a writer adds during the conversion are not part of the table: the report names them.
    """
    before: frozenset[str] | None = None
    ctx.engine.resume_conversion(action.location, name=action.name)
    if ctx.reader.is_table(action.location):
        refuse_foreign(action, ctx.reader)
    else:
        found = check_source(
            action,
            format_=ctx.reader.format,
            metastore=ctx.metastore,
            storage=ctx.storage,
            now=ctx.clock.now(),
        )
        before = frozenset(file.path for file in found)
    reach("convert.checked")

    def proceed() -> None:
        if before is not None:
            check_again(
                action,
                format_=ctx.reader.format,
                metastore=ctx.metastore,
                storage=ctx.storage,
                now=ctx.clock.now(),
            )
        ctx.require_allowed()

    ctx.engine.convert(
        name=action.name,
        location=action.location,
        partitioned_by=action.partitioned_by,
        statistics=action.statistics,
        run_id=ctx.run_id,
        proceed=proceed,
    )
    reach("convert.converted")
    ctx.require_allowed()
    seen = observe(ctx)
    version = _set_properties(ctx, action, seen)
    reach("convert.properties")
    return _report(seen, version, _left_out(ctx, action, seen, before))


def _set_properties(ctx: JobContext, action: Convert, seen: Observation) -> int:
    """All in one commit; none where they are there already, or longer: Delta takes them over from the metastore."""
    missing = retention_of(ctx.target.format).still_to_set(
        seen.properties, action.properties, lowers=action.lowers
    )
    if not missing:
        return seen.version
    keep_before(ctx, seen, missing, made_here=True)
    ctx.require_allowed()
    return ctx.engine.set_properties(action.location, requires=seen.at, properties=missing, run_id=ctx.run_id)


def _left_out(
    ctx: JobContext, action: Convert, seen: Observation, before: frozenset[str] | None
) -> tuple[str, ...]:
    """Data files that came while the table was being converted and are not in it; none when it had been interrupted."""
    if before is None:
        return ()
    now = {
        file.path for file in data_files(open_store(action.location, ctx.storage).list("", recursive=True))
    }
    new = now - before
    if new:
        new -= {file.path for file in ctx.reader.files(action.location, version=seen.version)}
    return tuple(sorted(new))


def _report(seen: Observation, version: int, left_out: tuple[str, ...]) -> Report:
    message = f"converted {count_of(seen.files, 'file')} ({about_bytes(seen.bytes)})"
    details: Mapping[str, object] = {}
    if left_out:
        message += (
            f"; {count_of(len(left_out), 'file')} that came meanwhile are not in the table: {few(left_out)}"
        )
        details = {"left_out": left_out}
    return Report(
        message=message,
        committed_version=version,
        files=seen.files,
        bytes=seen.bytes,
        details=json.dumps(details) if details else None,
    )
