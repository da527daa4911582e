"""What may stand where the cursor is: decided from the words before it, the commands and the names there are. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from lakewarden.daemon.cli.completion.tree import Command, Option, Tree, ValueKind

__all__ = ["CompletionCandidate", "Names", "candidates", "value_of"]

Names = Callable[[str], Sequence[str]]
"""The names of a kind that an installation has. Asked only where such a name may stand."""


class CompletionCandidate(NamedTuple):
    """A word, and what it is for."""

    word: str
    help: str = ""


class _Place(NamedTuple):
    """Where the words before the cursor lead: a command, how many of its arguments there are, an option that waits for
    its value."""

    command: Command
    arguments: int
    option: Option | None
    only_arguments: bool


def candidates(tree: Tree, names: Names, words: Sequence[str], begun: str) -> tuple[CompletionCandidate, ...]:
    """The words that go on as it was `begun`, after `words`."""
    place = _place(tree.root, words)
    if place is None:
        return ()
    return tuple(one for one in _at(place, tree, names, begun) if one.word.startswith(begun))


def value_of(words: Sequence[str], option: str) -> str | None:
    """What the last `option` among the words was given."""
    found = None
    for number, word in enumerate(words):
        if word.startswith(f"{option}="):
            found = word.partition("=")[2]
        elif word == option:
            # bash makes words of their own of the signs between words.
            rest = [one for one in words[number + 1 : number + 3] if one != "="]
            found = rest[0] if rest else None
    return found


def _place(root: Command, words: Sequence[str]) -> _Place | None:
    place = _Place(root, 0, None, False)
    for word in words:
        if word == "=":
            continue
        if place.option is not None:
            place = place._replace(option=None)
        elif word == "--":
            place = place._replace(only_arguments=True)
        elif word.startswith("-") and not place.only_arguments:
            waits = _option(place.command, word)
            place = place._replace(option=None if "=" in word else waits)
        elif place.command.commands:
            inner = place.command.commands.get(word)
            if inner is None:
                return None
            place = _Place(inner, 0, None, False)
        else:
            place = place._replace(arguments=place.arguments + 1)
    return place


def _option(command: Command, word: str) -> Option | None:
    """The option of that name, if it takes a value."""
    return next((one for one in command.options if word in one.names and one.kind is not None), None)


def _at(place: _Place, tree: Tree, names: Names, begun: str) -> Iterator[CompletionCandidate]:
    command = place.command
    if place.option is not None:
        yield from _values(place.option.kind or ValueKind.OTHER, place.option.choices, tree, names)
    elif begun.startswith("-") and not place.only_arguments:
        for option in command.options:
            yield from (
                CompletionCandidate(name, option.help) for name in option.names if name.startswith("--")
            )
    elif command.commands:
        yield from (CompletionCandidate(name, one.help) for name, one in command.commands.items())
    elif command.arguments:
        last = command.arguments[min(place.arguments, len(command.arguments) - 1)]
        if place.arguments < len(command.arguments) or last.many:
            yield from _values(last.kind, last.choices, tree, names)


def _values(kind: str, choices: Sequence[str], tree: Tree, names: Names) -> Iterator[CompletionCandidate]:
    yield from map(CompletionCandidate, choices)
    if kind == ValueKind.POLICY:
        yield from (CompletionCandidate(f"{key}=") for key in tree.policies)
    elif kind == ValueKind.SETTING:
        yield from (CompletionCandidate(f"{key}=") for key in tree.settings)
    elif kind == ValueKind.SCOPE:
        yield from map(CompletionCandidate, (*names(ValueKind.TABLE), *names(ValueKind.SCOPE)))
    elif kind != ValueKind.OTHER:
        yield from map(CompletionCandidate, names(kind))
