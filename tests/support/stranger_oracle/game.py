"""Play random worlds, ask for plans, follow the commands that the plans print, and compare."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from support.stranger_oracle.commands import command, pasted
from support.stranger_oracle.compare import differences
from support.stranger_oracle.lake import Lake
from support.stranger_oracle.oracle import Place, Question, answer
from support.stranger_oracle.steps import Step
from support.stranger_oracle.world import World

__all__ = ["Ask", "Difference", "Played", "Table", "asks_of", "played"]

ROUNDS = 5
"""A plan that still is blocked after so many of its own next commands is a difference."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """A question for a plan, as data: it is about the head of a table, so that it stands when steps are left out."""

    table: str
    how: str  # to, bad, run
    behind: tuple[int, ...]
    cascade: bool = True
    consent: str | None = None
    choice: int = 0

    def __str__(self) -> str:
        return (
            f"{self.table} --{self.how} head-{self.behind} cascade={self.cascade} consent={self.consent} "
            f"choice={self.choice}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """What was asked, and in what the plan differs."""

    asked: str
    says: str


@dataclass
class Played:
    """What came of a world."""

    plans: int = 0
    applicable: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)


class Table:
    """Where worlds are played: a folder, with the home of an installation that nothing has happened to yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        made = command(self.home, "init")
        assert made.code == 0, made.err
        shutil.copytree(self.home, folder / "fresh")

    def clear(self) -> Lake:
        shutil.rmtree(self.home)
        shutil.rmtree(self.folder / "lake", ignore_errors=True)
        shutil.copytree(self.folder / "fresh", self.home)
        (self.folder / "lake").mkdir()
        return Lake(self.folder / "lake")


def asks_of(random: Random, tables: Sequence[str], count: int) -> list[Ask]:
    """Random questions."""
    return [
        Ask(
            table=random.choice(tables),
            how=random.choice(("to", "to", "bad", "bad", "run")),
            behind=tuple(random.sample(range(6), random.choice((1, 1, 2)))),
            cascade=random.random() < 0.8,
            consent=random.choice(
                (None, None, None, "keep_unknown", "lose_unknown", "collateral", "reapply")
            ),
            choice=random.randrange(8),
        )
        for _ in range(count)
    ]


def played(table: Table, steps: Sequence[Step], asks: Sequence[Ask], *, daemon: bool = False) -> Played:
    """Play a world on real tables and ask for its plans."""
    lake = table.clear()
    for step in steps:
        lake.play(step)
    for name in sorted(lake.commits):
        done = command(table.home, "tables", "register", lake.path(name), "--name", f"db.{name}")
        assert done.code == 0, done.err
    if daemon:
        done = command(table.home, "daemon", "--once")
        assert done.code == 0, done.err
    world = World(tables={name: tuple(commits) for name, commits in lake.commits.items()}, depends={})
    result = Played()
    for ask in asks:
        for difference in _asked(table, world, ask, result):
            result.differences.append(difference)
    return result


def _asked(table: Table, world: World, ask: Ask, result: Played) -> Iterator[Difference]:
    question, words = _question(world, ask)
    if question is None:
        return
    more = ["--cascade"] * ask.cascade
    agreed: frozenset[str] = frozenset()
    if ask.consent == "reapply":
        more.append("--reapply")
    elif ask.consent is not None:
        more += ["--consent", ask.consent]
    said = command(table.home, "rollback", "plan", f"db.{ask.table}", *words, *more, "-o", "json")
    asked = " ".join(("rollback plan", f"db.{ask.table}", *words, *more))
    for _ in range(ROUNDS):
        result.plans += 1
        if said.code not in (0, 4) or not said.out:
            yield Difference(asked=asked, says=f"exit code {said.code}: {said.err}")
            return
        plan = said.json
        question, agreed = _consents(world, question, agreed, plan, asked)
        found = answer(world, question)
        for says in differences(plan, world, question, found, agreed=agreed, cascade=ask.cascade):
            yield Difference(asked=asked, says=says)
        if (said.code == 0) != plan["applicable"]:
            yield Difference(asked=asked, says=f"exit code {said.code}, applicable {plan['applicable']}")
        if plan["applicable"]:
            to = {
                str(one["name"]).removeprefix("db."): one["to"]
                for one in plan["tables"]
                if one["step"] == "restore"
            }
            if to:
                result.applicable.append((plan["hash"], to))
            return
        choices = plan["next_choices"]
        if not choices:
            yield Difference(asked=asked, says="blocked, and no next command")
            return
        asked = choices[ask.choice % len(choices)]["command"]
        said = pasted(table.home, asked, "-o", "json")
    yield Difference(asked=asked, says=f"still blocked after {ROUNDS} of its own next commands")


def _question(world: World, ask: Ask) -> tuple[Question | None, list[str]]:
    commits = world.tables.get(ask.table, ())
    versions = sorted({len(commits) - 1 - one for one in ask.behind if one < len(commits)})
    if ask.how in ("bad", "run"):
        versions = [one for one in versions if commits[one].makes_rows]
    if ask.how == "run":
        versions = [one for one in versions if commits[one].run][:1]
    if not versions:
        return None, []
    if ask.how == "run":
        return Question(seeds=frozenset({(ask.table, versions[0])})), ["--run", commits[versions[0]].run]
    if ask.how == "bad":
        words = [word for one in versions for word in ("--bad", str(one))]
        return Question(seeds=frozenset((ask.table, one) for one in versions)), words
    after = range(versions[0] + 1, len(commits))
    seeds = frozenset((ask.table, one) for one in after if commits[one].makes_rows)
    return Question(seeds=seeds, named=ask.table, to=versions[0]), ["--to-version", str(versions[0])]


def _consents(
    world: World, question: Question, agreed: frozenset[str], plan: dict[str, Any], asked: str
) -> tuple[Question, frozenset[str]]:
    """What is agreed to, as the plan itself lists it: kind, table and versions."""
    names = {one["table_id"]: str(one["name"]).removeprefix("db.") for one in plan["tables"]}
    found = {"reapply"} if "--reapply" in asked.split() else set()
    for line in plan["agreed_to"]:
        kind, _, where = line.partition(" ")
        table, at, versions = where.partition("@")
        name = names.get(table, table)
        found |= {f"{kind}={name}@{one}" for one in _spread(versions)} if at else {f"{kind}={name}"}
    lost = frozenset(_place(one) for one in found if one.startswith("lose_unknown="))
    kept = frozenset(_place(one) for one in found if one.startswith("keep_unknown="))
    return replace(question, lost=lost, kept=kept), frozenset(found)


def _place(consent: str) -> Place:
    name, _, version = consent.partition("=")[2].partition("@")
    return name, int(version)


def _spread(versions: str) -> Iterator[int]:
    for part in versions.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
