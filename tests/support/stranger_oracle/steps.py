"""What happens in a world, as data: so that a world can be played again, and with fewer steps."""

from dataclasses import dataclass
from random import Random
from typing import Final

__all__ = ["TABLES", "Look", "Step", "steps_of"]

TABLES: Final = ("a", "b", "c", "d", "e")
WRITES: Final = (
    *("append",) * 8,
    *("merge",) * 2,
    *("overwrite",) * 3,
    "update",
    "delete",
    "partial",
    "append nothing",
    "overwrite nothing",
    "replace",
)
OTHERS: Final = ("restore", "restore", "optimize", "property", "columns")


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """A read of another table: so many versions behind its head; of a span only the changes."""

    table: str
    behind: int = 0
    span: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One commit. `record`: full, none, short (more was read than it says), or false (of another operation)."""

    deed: str
    table: str
    looks: tuple[Look, ...] = ()
    record: str = "full"
    own: bool = False
    behind: int = 0

    def __str__(self) -> str:
        said = ", ".join(
            f"{one.table}@-{one.behind}" + ("" if one.span is None else f" last {one.span}")
            for one in self.looks
        )
        more = f" back {self.behind}" if self.deed == "restore" else ""
        own = " and itself" if self.own else ""
        return f"{self.table}: {self.deed}{more} <- [{said}]{own} record {self.record}"


def steps_of(random: Random) -> list[Step]:
    """Random steps. Most reads look down the alphabet, some up, so that there are levels, diamonds and circles."""
    tables = TABLES[: random.randint(2, len(TABLES))]
    unknown = random.choice((0.0, 0.05, 0.25))
    restores = random.choice((0.05, 0.15, 0.3))
    first = [Step(deed="append", table=name, looks=_looks(random, name, tables)) for name in tables]
    if random.random() < 0.3:
        random.shuffle(first)
    count = random.randint(6, 6 * len(tables))
    return first + [_step(random, tables, unknown, restores) for _ in range(count)]


def _step(random: Random, tables: tuple[str, ...], unknown: float, restores: float) -> Step:
    table = random.choice(tables)
    if random.random() < restores:
        return Step(deed=random.choice(OTHERS), table=table, behind=random.randint(1, 4))
    record = "full"
    if random.random() < unknown:
        record = random.choice(("none", "none", "short", "false"))
    deed = random.choice(WRITES)
    if deed == "replace":  # only names columns: it has read nothing, and that is known
        return Step(deed=deed, table=table, record=random.choice(("full", "none")))
    return Step(
        deed=deed,
        table=table,
        looks=_looks(random, table, tables),
        record=record,
        own=random.random() < 0.1,
    )


def _looks(random: Random, table: str, tables: tuple[str, ...]) -> tuple[Look, ...]:
    others = (
        [one for one in tables if one < table]
        if random.random() < 0.9
        else [one for one in tables if one != table]
    )
    chosen = random.sample(others, min(len(others), random.choice((0, 1, 1, 1, 2, 2))))
    return tuple(
        Look(
            table=one,
            behind=random.choice((0, 0, 0, 1, 2)),
            span=random.randint(1, 3) if random.random() < 0.2 else None,
        )
        for one in chosen
    )
