"""Governed statements as values: a closed union that the CLI, `attach(spark).sql` and later the gateway execute."""

from dataclasses import dataclass

from lakewarden.catalog.policies import Value

__all__ = ["ConvertToDelta", "Query", "RollbackTable", "SetRows", "Statement", "Unmanaged"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvertToDelta:
    """CONVERT TO DELTA t [PARTITIONED BY ...] [NO STATISTICS] [VACUUM RETAIN n DAYS|HOURS] [OWNER x]."""

    where: str
    partitioned_by: tuple[tuple[str, str], ...] = ()
    statistics: bool = True
    retain_seconds: int | None = None
    owner: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SetRows:
    """UPDATE lakewarden.tables SET policy.<key> = ..., owner = ... WHERE <condition>; `condition` is SQL text."""

    policy: tuple[tuple[str, Value | None], ...] = ()
    owner: str | None = None
    condition: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """A SELECT on system tables alone: answered without a JVM."""

    sql: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Unmanaged:
    """Anything else: a Spark session runs it as it is, the CLI refuses it."""

    sql: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RollbackTable:
    """ROLLBACK TABLE t TO VERSION n | TO TIMESTAMP '...' [CASCADE] [REAPPLY]. Exactly one of `version` and `timestamp` is
    set."""

    where: str
    version: int | None = None
    timestamp: str | None = None
    cascade: bool = False
    reapply: bool = False


Statement = ConvertToDelta | RollbackTable | SetRows | Query | Unmanaged
