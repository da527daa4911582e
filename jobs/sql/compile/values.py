"""What the compiler takes and gives: frozen values that EXPLAIN GOVERNED and the executor read alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lakewarden.catalog.errors import UsageError

__all__ = [
    "DIALECT_KEY",
    "KEYS_PROPERTY",
    "MATCHES_KEY",
    "OPERATION_KEY",
    "Chosen",
    "ColumnType",
    "Compiled",
    "Dialect",
    "MatchPolicy",
    "MatchRule",
    "SqlStep",
    "StepKind",
    "TableName",
    "TableSchema",
    "dialect_of",
    "keys_in",
    "policy_of",
    "quoted",
]

DIALECT_KEY: Final = "lakewarden.dialect"
MATCHES_KEY: Final = "lakewarden.matches"
OPERATION_KEY: Final = "lakewarden.operation"
KEYS_PROPERTY: Final = "lakewarden.keys"
"""The table property that names the columns which tell the rows of a table apart."""


class Dialect(StrEnum):
    """Whose SQL a statement is read as."""

    SPARK = "spark"
    POSTGRES = "postgres"
    MYSQL = "mysql"
    TERADATA = "teradata"
    TSQL = "tsql"


class MatchRule(StrEnum):
    """What happens to a row of the target that several rows of the sources match."""

    ERROR = "error"
    ANY = "any"
    LAST = "last"


@dataclass(frozen=True, kw_only=True, slots=True)
class MatchPolicy:
    """What is done with several matches."""

    rule: MatchRule = MatchRule.ERROR
    by: str | None = None
    """The column, as SQL, whose largest value wins; set for `LAST` alone."""
    agreeing: bool = False
    """Matches that are no error are told from those that are one by what they say, which takes longer than having
    Delta refuse all of them."""

    @property
    def chooses(self) -> bool:
        """Whether of the matches of a row fewer are made."""
        return self.agreeing or self.rule is not MatchRule.ERROR

    def __str__(self) -> str:
        return self.rule.value if self.by is None else f"last by {self.by}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TableName:
    """A table as the statement names it: one to three parts, without quotes."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnType:
    """A column and its type by Spark's name."""

    name: str
    type: str


TableSchema = tuple[ColumnType, ...]


class StepKind(StrEnum):
    """What kind of plain statement a step is."""

    MERGE = "merge"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, kw_only=True, slots=True)
class SqlStep:
    """One plain statement that Spark and Delta run as it is."""

    kind: StepKind
    target: TableName
    """The table that it changes."""
    sql: str
    because: str
    """Why it has this form."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """Whose SQL a statement was read as, by which policy for several matches where there is one."""

    dialect: Dialect
    matches: MatchPolicy | None = None
    notes: tuple[str, ...] = ()
    """What is to be said of that choice."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Compiled:
    """What becomes of a statement: one step for each table that it changes. Each reads all tables as they were before
    the first."""

    dialect: Dialect
    target: TableName
    """The table of the first step."""
    matches: MatchPolicy
    steps: tuple[SqlStep, ...]
    notes: tuple[str, ...] = ()
    """Where the choice of a dialect or a policy matters."""

    @property
    def chosen(self) -> Chosen:
        """What was chosen where there was a choice."""
        return Chosen(dialect=self.dialect, matches=self.matches, notes=self.notes)


def dialect_of(text: str | None) -> Dialect | None:
    """The dialect that a setting names, None where it names none. Raises `UsageError` for one that is not known."""
    name = (text or "").strip().strip("'\"").lower()
    if not name:
        return None
    if name not in set(Dialect):
        raise UsageError(
            f"There is no dialect '{name}'.", hint=f"{DIALECT_KEY} is one of: {', '.join(Dialect)}."
        )
    return Dialect(name)


def keys_in(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The keys that a table's properties name: `lakewarden.keys` = `k1,k2`."""
    return tuple(key.strip() for key in properties.get(KEYS_PROPERTY, "").split(",") if key.strip())


def policy_of(text: str | None) -> MatchPolicy:
    """The policy that a setting names: `error`, `any` or `last by <column>`. Raises `UsageError` for anything else."""
    words = (text or MatchRule.ERROR).strip().strip("'\"").split()
    match [word.lower() for word in words]:
        case ["error"]:
            return MatchPolicy()
        case ["any"]:
            return MatchPolicy(rule=MatchRule.ANY)
        case ["last", "by", _]:
            return MatchPolicy(rule=MatchRule.LAST, by=words[2])
        case _:
            raise UsageError(
                f"'{text}' is no policy for rows with several matches.",
                hint=f"{MATCHES_KEY} is error, any, or last by <column>.",
            )


def quoted(identifier: str) -> str:
    """One identifier between backticks, whatever is in it."""
    return "`" + identifier.replace("`", "``") + "`"
