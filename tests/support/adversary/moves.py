"""What can happen: the table of moves. Each takes two numbers that choose among what is there, and a fault."""

from collections.abc import Callable
from dataclasses import dataclass

from deltalake.exceptions import DeltaError

from support.adversary.world import World

__all__ = ["MOVES", "Move", "Step", "move", "play"]

Step = tuple[str, int, int, int]
"""The name of a move, two numbers, a fault."""
Deed = Callable[[World, int, int, int], object]


@dataclass(frozen=True, kw_only=True)
class Move:
    """One kind of step: how often it is chosen where everything happens (0: only where a theme names it),
    whether actors of the product move in it (so that faults can hit them)."""

    do: Deed
    weight: int
    ours: bool


MOVES: dict[str, Move] = {}


def play(world: World, step: Step) -> bool:
    """Let one step happen. False if there was nothing that it could happen to."""
    name, x, y, fault = step
    one = MOVES[name]
    world.said = ""
    try:
        done = one.do(world, x, y, fault) is not False
    except (DeltaError, OSError) as error:
        if one.ours:
            raise
        world.said, done = f"failed: {error}", True
    world.book.catch()
    if not one.ours:
        world.settle_strange()
    return done


def move(weight: int, *, ours: bool) -> Callable[[Deed], Deed]:
    """Enter a function into the table, under its own name."""

    def enter(do: Deed) -> Deed:
        MOVES[do.__name__] = Move(do=do, weight=weight, ours=ours)
        return do

    return enter
