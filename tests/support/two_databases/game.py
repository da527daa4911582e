"""One random change on both sides: what came of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from lakewarden.catalog.errors import PreconditionError, UsageError
from support.two_databases.random_changes import RandomChange, random_change
from support.two_databases.random_mysql import random_mysql_change
from support.two_databases.random_several import random_several_change
from support.two_databases.sides import Both, Rows, Server

__all__ = ["Change", "Outcome", "Played", "change_of", "play", "play_several"]


class Change(Protocol):
    """What was asked, and of which tables."""

    @property
    def text(self) -> str:
        """The statement."""

    @property
    def rows(self) -> Mapping[str, Rows]:
        """What the tables held."""


class Outcome(StrEnum):
    """How a change ended."""

    SAME = "same"
    CHOSEN = "chosen"  # the same, by the smallest of several matches
    AGREED = "the same, by several matches that agree"
    BOTH_REFUSED = "refused for several matches"
    REFUSED = "refused"  # the compiler asks for other words
    UNKNOWN_TO_SPARK = "refused by Spark"
    DIFFERENT = "different"


@dataclass(frozen=True, kw_only=True)
class Played:
    """One change and what came of it; `why` has what differs or was refused."""

    seed: int
    change: Change
    outcome: Outcome
    why: str = ""

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.outcome}: {self.change.text}\n  {self.why}\n  {self.change.rows}"


def change_of(server: Server, seed: int) -> RandomChange:
    """A random change in the words of a server."""
    return random_mysql_change(seed) if server.dialect == "mysql" else random_change(seed)


def play(both: Both, seed: int, *, anew: bool = True) -> Played:
    """Run it on both sides. A row with several matches must be refused by us first, unless all of them say the same,
    and then be chosen for alike. Unless `anew`, t stays as it is."""
    change = change_of(both.server, seed)
    named = set(re.findall(r"\w+", change.text)) | {"t"}
    both.fill({name: rows for name, rows in change.rows.items() if name in named and (anew or name != "t")})
    both.spark.conf.set("lakewarden.dialect", both.server.dialect)
    both.spark.conf.set("lakewarden.matches", "error")
    (several,) = both.connection.execute(change.several.encode()).fetchone() or (0,)
    statement, outcome = change.text, Outcome.SAME
    if several and change.sets:
        before = both.ours()
        try:
            both.sql(change.text)
        except PreconditionError:
            if both.ours() != before:
                return Played(seed=seed, change=change, outcome=Outcome.DIFFERENT, why="refused, yet changed")
        except UsageError as error:
            return Played(seed=seed, change=change, outcome=Outcome.REFUSED, why=str(error))
        else:
            both.connection.execute(change.smallest.encode())
            found, wanted = both.ours(), both.theirs()
            outcome = Outcome.AGREED if found == wanted else Outcome.DIFFERENT
            return Played(seed=seed, change=change, outcome=outcome, why=f"{several}: {found}, {wanted}")
        both.spark.conf.set("lakewarden.matches", "any")
        statement, outcome = change.smallest, Outcome.CHOSEN
    try:
        (ours,) = both.sql(change.text).collect()
    except UsageError as error:
        return Played(seed=seed, change=change, outcome=Outcome.REFUSED, why=str(error))
    try:
        theirs = both.connection.execute(statement.encode()).rowcount
    except both.server.refusals as error:
        return Played(seed=seed, change=change, outcome=Outcome.DIFFERENT, why=f"only they refuse: {error}")
    counted = ours["num_affected_rows"]
    counts = f"{counted} rows here, {theirs} there"
    found, wanted = both.ours(), both.theirs()
    is_untold = counted is None and bool(change.sets) and not both.stored.tells_updates
    if found != wanted or (counted != theirs and not is_untold):
        why = f"{counts}\n  ours:   {found}\n  theirs: {wanted}"
        return Played(seed=seed, change=change, outcome=Outcome.DIFFERENT, why=why)
    return Played(seed=seed, change=change, outcome=outcome, why=counts)


def play_several(both: Both, seed: int) -> Played:
    """Run a change of several tables on both sides. One with several matches of a row is refused by us, unless they say
    the same; then nothing may be changed."""
    change = random_several_change(seed)
    both.fill(change.rows)
    both.spark.conf.set("lakewarden.dialect", both.server.dialect)
    both.spark.conf.set("lakewarden.matches", "error")
    (several,) = both.connection.execute(change.several.encode()).fetchone() or (0,)
    before = [both.ours(name) for name in change.rows]
    try:
        both.lw.sql(change.text)
    except UsageError as error:
        return Played(seed=seed, change=change, outcome=Outcome.REFUSED, why=str(error))
    except PreconditionError as error:
        kept = [both.ours(name) for name in change.rows] == before
        outcome = Outcome.BOTH_REFUSED if several and kept else Outcome.DIFFERENT
        return Played(seed=seed, change=change, outcome=outcome, why=str(error))
    try:
        both.connection.execute(change.text.encode())
    except both.server.refusals as error:
        return Played(seed=seed, change=change, outcome=Outcome.DIFFERENT, why=f"only they refuse: {error}")
    found, wanted = ([look(name) for name in change.rows] for look in (both.ours, both.theirs))
    outcome = Outcome.SAME if found == wanted else Outcome.DIFFERENT
    return Played(seed=seed, change=change, outcome=outcome, why=f"ours:   {found}\n  theirs: {wanted}")
