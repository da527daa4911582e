"""What a governed write asks for, as a plan that knows no tables yet."""

from collections.abc import Mapping
from typing import Any, Final, assert_never

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.session.compiled_changes import compile_change, mean_what_is_written
from lakewarden.jobs.session.frames import is_path, plan_of, sql_name
from lakewarden.jobs.session.plans import JavaPlan, Plans
from lakewarden.jobs.session.session_formats import found_name
from lakewarden.jobs.session.writes import (
    USER_METADATA,
    Append,
    Merge,
    Overwrite,
    Request,
    Sql,
    UncompiledChange,
)
from lakewarden.jobs.sql.compile.merges.merge_drafts import is_merge
from lakewarden.jobs.sql.compile.reading import is_change
from lakewarden.jobs.sql.compile.values import Chosen, Dialect

__all__ = ["RequestedPlans", "asked_way", "is_merged"]

_SOURCE: Final = "__lakewarden_source"


class RequestedPlans:
    """Makes the plans of requests in one Spark application."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans

    def statement(
        self, session: Any, request: Request, parsed: JavaPlan | None
    ) -> tuple[JavaPlan, Mapping[str, str], Chosen | None]:
        """What is asked for as a plan; the writer's options; and, of a change in SQL, whose it was taken for."""
        match request:
            case Sql(text=text):
                chosen = Chosen(dialect=Dialect.SPARK, notes=request.notes) if is_change(text) else None
                return parsed, {}, chosen
            case UncompiledChange(draft=draft, agreeing=agreeing):
                done = compile_change(session, draft, agreeing=agreeing)
                (step,) = done.steps
                mean_what_is_written(session, done.dialect)
                return self._plans.composed(session, step.sql), {}, done.chosen
            case Append():
                return self._append(session, request), request.options, None
            case Overwrite():
                return self._overwrite(session, request), request.options, None
            case Merge():
                return self._merge(session, request), request.options, None
            case _:
                assert_never(request)

    def _append(self, session: Any, request: Append) -> JavaPlan:
        table = self._relation(session, request.table)
        return self._plans.append_by_name(
            table, plan_of(request.frame), self._writer_options(request.options)
        )

    def _overwrite(self, session: Any, request: Overwrite) -> JavaPlan:
        table, query = self._relation(session, request.table), plan_of(request.frame)
        options = self._writer_options(request.options)
        if request.partitions:
            return self._plans.overwrite_partitions_by_name(table, query, options)
        chosen = self._plans.always
        if request.where is not None:
            chosen = session.sessionState().sqlParser().parseExpression(request.where)
        return self._plans.overwrite_by_name(table, query, chosen, options)

    def _merge(self, session: Any, request: Merge) -> JavaPlan:
        unknown = request.options.keys() - {USER_METADATA, "mergeSchema"}
        if unknown:
            raise UsageError(
                f"A merge takes no option {min(unknown)}.", hint="It takes mergeSchema and userMetadata."
            )
        self._plans.frame(session, plan_of(request.frame))._jdf.createOrReplaceTempView(_SOURCE)
        evolving = (
            "WITH SCHEMA EVOLUTION " if request.options.get("mergeSchema", "").lower() == "true" else ""
        )
        parts = self._parts(session, request.table)
        target = ".".join(quoted(str(part)) for part in self._plans.sequence(parts))
        return self._plans.parsed(
            session,
            f"MERGE {evolving}INTO {target} AS target USING {_SOURCE} AS source ON {request.on} "
            + " ".join(request.clauses),
        )

    def _relation(self, session: Any, table: str) -> Any:
        return self._plans.unresolved(self._parts(session, table), self._plans.no_options, False)

    def _parts(self, session: Any, table: str) -> Any:
        name = sql_name(table) if is_path(table) else found_name(self._plans, session, table)
        return session.sessionState().sqlParser().parseMultipartIdentifier(name)

    def _writer_options(self, options: Mapping[str, str]) -> Any:
        return self._plans.scala_map((key, value) for key, value in options.items() if key != USER_METADATA)


def asked_way(request: Request) -> RowsWrite | None:
    """The way of writing rows that came with a statement."""
    return request.write if isinstance(request, Sql | UncompiledChange) else None


def is_merged(request: Request) -> bool:
    """Whether the user wrote a MERGE."""
    match request:
        case Sql(text=text):
            return is_merge(text)
        case UncompiledChange(draft=draft):
            return draft.merge is not None
        case _:
            return isinstance(request, Merge)
