"""Governed SQL: from text to a statement. Pure; sqlglot does the lexing and everything that is standard SQL."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import dropwhile
from typing import Final

import sqlglot
from sqlglot import Token, exp
from sqlglot.errors import SqlglotError

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.catalog.model.rows import DELTA
from lakewarden.catalog.policy.effective import Value, parse_value
from lakewarden.catalog.system.nested import nested_within_reason
from lakewarden.catalog.system.port import SystemTableName
from lakewarden.jobs.sql.beginning import beginning
from lakewarden.jobs.sql.clustering import CLUSTERING_SYNTAX, is_clustering, parse_clustering
from lakewarden.jobs.sql.compile.ambiguities import read_otherwise
from lakewarden.jobs.sql.compile.merges.merge_drafts import merge_draft
from lakewarden.jobs.sql.compile.reading import draft_of, is_change
from lakewarden.jobs.sql.compile.time_travel import in_sparks_words
from lakewarden.jobs.sql.compile.upserts.upsert_drafts import is_upsert, upsert_draft
from lakewarden.jobs.sql.compile.values import Dialect
from lakewarden.jobs.sql.convert import CONVERT_SYNTAX, parse_convert
from lakewarden.jobs.sql.immediate import said_immediately
from lakewarden.jobs.sql.locks import without_locks
from lakewarden.jobs.sql.mark import MARK_SYNTAX, UNMARK_SYNTAX, parse_mark, parse_unmark
from lakewarden.jobs.sql.policy import POLICY_SYNTAX, is_policy, parse_policy
from lakewarden.jobs.sql.rollback import ROLLBACK_SYNTAX, parse_rollback
from lakewarden.jobs.sql.show import (
    DESCRIBE_SYNTAX,
    LINEAGE_SYNTAX,
    ROLLBACKS_SYNTAX,
    RUNS_SYNTAX,
    TABLES_SYNTAX,
    parse_describe,
    parse_lineage,
    parse_rollbacks,
    parse_runs,
    parse_tables,
)
from lakewarden.jobs.sql.statements import ChangeRows, Explain, Query, SetRows, Statement, Unmanaged
from lakewarden.jobs.sql.token_reader import StatementWords, tokens_of
from lakewarden.jobs.sql.vacuum import VACUUM_FORMS, parse_vacuum

__all__ = ["BEGINNINGS", "may_be_ours", "parse"]

_DATABASE = "lakewarden"
_EXPLAIN: Final = ("EXPLAIN", "GOVERNED")
_SYSTEM_TARGET = re.compile(r"\s*UPDATE\s+`?lakewarden`?\s*\.", re.IGNORECASE)
_CHANGING: Final = frozenset(
    {"alter", "create", "drop", "optimize", "reorg", "replace", "restore", "truncate"}
)
_BEFORE_A_NAME: Final = frozenset(
    {"table", "database", "schema", "namespace", "view", "or", "replace", "if", "not", "exists"}
)
_OURS: Final[Sequence[tuple[tuple[str, ...], str, Callable[[StatementWords], Statement]]]] = (
    (("CONVERT", "TO", "DELTA"), CONVERT_SYNTAX, partial(parse_convert, DELTA)),
    (("CONVERT", "TO", "ICEBERG"), CONVERT_SYNTAX, partial(parse_convert, "iceberg")),
    (("ROLLBACK", "TABLE"), ROLLBACK_SYNTAX, parse_rollback),
    (("MARK", "TABLE"), MARK_SYNTAX, parse_mark),
    (("UNMARK", "TABLE"), UNMARK_SYNTAX, parse_unmark),
    (("SHOW", "MANAGED", "TABLES"), TABLES_SYNTAX, parse_tables),
    (("SHOW", "RUNS"), RUNS_SYNTAX, parse_runs),
    (("SHOW", "LINEAGE"), LINEAGE_SYNTAX, parse_lineage),
    (("SHOW", "ROLLBACKS"), ROLLBACKS_SYNTAX, parse_rollbacks),
    (("DESCRIBE", "MANAGED"), DESCRIBE_SYNTAX, parse_describe),
    (("DESC", "MANAGED"), DESCRIBE_SYNTAX, parse_describe),
    (("VACUUM",), VACUUM_FORMS, parse_vacuum),
)
"""The daemon's statements: how they begin, how they go on, and who reads them."""
_ALTERS: Final[
    Sequence[tuple[Callable[[Sequence[Token]], bool], str, Callable[[StatementWords], Statement]]]
] = (
    (is_policy, POLICY_SYNTAX, parse_policy),
    (is_clustering, CLUSTERING_SYNTAX, parse_clustering),
)
"""What an ALTER TABLE of the daemon is about."""
BEGINNINGS: Final = (*(words for words, _, _ in _OURS), _EXPLAIN)


def may_be_ours(text: str) -> bool:
    """Whether a statement can be one that the daemon answers, as far as that is told without reading it."""
    if _DATABASE in text.lower():
        return True
    words = tuple(word.text.upper() for word in beginning(text, max(map(len, BEGINNINGS))))
    begins = (*(each for each, _, _ in _OURS), ("ALTER", "TABLE"))
    return any(words[: len(each)] == each for each in begins)


@nested_within_reason()
def parse(text: str, dialect: Dialect | None = None) -> Statement:
    """Read one statement; `dialect` says whose UPDATE and DELETE it may be, None where it tells by itself.

    Raises `UsageError` with the place of the mistake for a governed one that is wrong, and for one that is nested too
    deeply.
    """
    text = in_sparks_words(said_immediately(text), dialect)
    if dialect in (None, Dialect.TERADATA):
        text, locks = without_locks(text)
        if locks:
            return _noted(parse(text, dialect), locks)
    first = beginning(text, len(_EXPLAIN))
    if tuple(word.text.upper() for word in first) == _EXPLAIN:
        end = first[-1].end
        blank = re.sub(r"[^\n]", " ", text[:end])  # so that errors point at the place in the whole text
        return _explained(blank + text[end:], dialect)
    if is_upsert(text):
        return ChangeRows(draft=upsert_draft(text, dialect))
    merge = merge_draft(text, dialect)
    if merge is not None:
        return ChangeRows(draft=merge)
    if is_change(text) and not _changes_system(text):
        draft = draft_of(text, dialect)
        if draft is None:  # Spark runs it as it is
            return Unmanaged(sql=text, notes=read_otherwise(text) if dialect is None else ())
        return ChangeRows(draft=draft)
    tokens = tokens_of(text)
    if not tokens:
        raise UsageError("There is no statement.", hint="Try: SELECT * FROM lakewarden.tables")
    ours = _ours(tokens)
    if ours is not None:
        return ours
    if tokens[0].text.upper() not in ("SELECT", "WITH", "UPDATE", "DELETE", "INSERT", "MERGE", "("):
        if _commands_system(tokens):
            raise _not_like_this()
        return Unmanaged(sql=text)
    tree = _tree(text) if _DATABASE in text.lower() else None
    if tree is None or not _touches_system(tree):
        return Unmanaged(sql=text)
    if isinstance(tree, exp.Query):
        return Query(sql=text.strip().rstrip(";"))
    if isinstance(tree, exp.Update):
        return _update(tree)
    raise _not_like_this()


def _noted(statement: Statement, notes: tuple[str, ...]) -> Statement:
    """The same with notes before its own, if it has any."""
    match statement:
        case ChangeRows(draft=draft):
            change = replace(draft.change, notes=(*notes, *draft.change.notes))
            return ChangeRows(draft=replace(draft, change=change))
        case Unmanaged():
            return replace(statement, notes=(*notes, *statement.notes))
        case _:
            return statement


def _not_like_this() -> NotAllowedError:
    return NotAllowedError(
        "System tables are changed with UPDATE lakewarden.tables or the CLI, not like this.",
        hint="Rows come and go with CONVERT TO DELTA, register and drop.",
    )


def _explained(text: str, dialect: Dialect | None) -> Explain:
    statement = parse(text, dialect)
    if not isinstance(statement, ChangeRows | Unmanaged):
        raise UsageError(
            "EXPLAIN GOVERNED is for statements that Spark runs.",
            hint="What the daemon does is shown by `lakewarden jobs plan`, `rollback plan` and --dry-run.",
        )
    return Explain(statement=statement)


def _changes_system(text: str) -> bool:
    """Whether an UPDATE or DELETE names a system table, as far as it is Spark's SQL."""
    try:
        return _touches_system(sqlglot.parse_one(text, dialect="spark"))
    except SqlglotError:
        return _SYSTEM_TARGET.match(text) is not None


def _commands_system(tokens: Sequence[Token]) -> bool:
    """Whether a command of Spark's that changes what it names is about a system table, or drops all of them."""
    words = [token.text.lower() for token in tokens]
    if words[0] not in _CHANGING:
        return False
    name = list(dropwhile(lambda word: word in _BEFORE_A_NAME, words[1:]))
    if name[:1] != [_DATABASE]:
        return False
    if name[1:2] != ["."]:
        return words[0] == "drop"
    return any(word in set(SystemTableName) for word in name[2:3])


def _ours(tokens: Sequence[Token]) -> Statement | None:
    """A statement of the daemon; None if it is none."""
    for begins, syntax, read in _OURS:
        words = StatementWords(tokens, syntax=syntax)
        if words.takes(*begins):
            return read(words)
    for is_about, syntax, read in _ALTERS:
        words = StatementWords(tokens, syntax=syntax)
        if words.takes("ALTER", "TABLE") and is_about(tokens):
            return read(words)
    return None


def _tree(text: str) -> exp.Expr | None:
    """The statement as sqlglot reads it; None where Spark's own parser is the judge: of what is not ours."""
    try:
        found = [one for one in sqlglot.parse(text, dialect="spark") if one is not None]
    except RecursionError:
        if _names_ours(text):
            raise
        return None
    except SqlglotError as error:
        if not _names_ours(text):
            return None
        raise UsageError("The statement is not valid SQL.", hint=str(error).splitlines()[0][:200]) from error
    if len(found) > 1 and any(map(_touches_system, found)):
        raise UsageError(
            f"These are {len(found)} statements, and one is run at a time.",
            hint="Give each its own command; through a gateway (--url) semicolons separate several.",
        )
    return found[0] if len(found) == 1 else None


def _names_ours(text: str) -> bool:
    return f"{_DATABASE}." in text.lower()


def _touches_system(tree: exp.Expr) -> bool:
    return any(
        table.db.lower() == _DATABASE and table.name.lower() in set(SystemTableName)
        for table in tree.find_all(exp.Table)
    )


def _update(tree: exp.Update) -> SetRows:
    target = tree.this
    if not isinstance(target, exp.Table) or target.name.lower() != SystemTableName.TABLES:
        raise NotAllowedError(
            "Only lakewarden.tables can be updated.", hint="The other system tables are a record."
        )
    where = tree.args.get("where")
    if where is None:
        raise UsageError(
            "UPDATE lakewarden.tables needs a WHERE.", hint="Name the tables: WHERE name = 'db.t'."
        )
    policy: list[tuple[str, Value | None]] = []
    owner: str | None = None
    for assignment in tree.expressions:
        path, value = _assignment(assignment)
        if path == "owner" and value:
            owner = value
        elif path.startswith("policy."):
            key = path.removeprefix("policy.")
            policy.append((key, None if value is None else parse_value(key, value)))
        else:
            raise NotAllowedError(
                f"Column {path} cannot be set by SQL.",
                hint="SET takes owner and policy.<key>, such as policy.mode.",
            )
    return SetRows(policy=tuple(policy), owner=owner, condition=where.this.sql(dialect="spark"))


def _assignment(tree: exp.Expr) -> tuple[str, str | None]:
    if not isinstance(tree, exp.EQ) or not isinstance(tree.left, exp.Column):
        raise UsageError(f"'{tree.sql()}' is not an assignment.", hint="Write SET policy.mode = 'manage'.")
    path = ".".join(part.name for part in tree.left.parts).lower()
    value = tree.right
    if isinstance(value, exp.Null):
        return path, None
    if isinstance(value, exp.Literal | exp.Boolean):
        return path, str(value.this) if isinstance(value, exp.Literal) else ("yes" if value.this else "no")
    raise UsageError(
        f"{path} takes a literal, not '{value.sql()}'.", hint="Write it like '30 days', 0.1 or NULL."
    )
