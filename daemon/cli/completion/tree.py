"""Commands, options and what their values are, as a file beside this one: reading it needs no library.

The file is generated (`make docs`) from the commands themselves, and a test compares.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = ["FILE", "Argument", "Command", "Option", "Tree", "ValueKind", "read_tree"]

FILE: Final = Path(__file__).with_name("commands.json")


class ValueKind:
    """What a value is: one of a few words, or something that an installation has names for."""

    TABLE = "table"
    SCOPE = "scope"
    RUN = "run"
    ROLLBACK = "rollback"
    POLICY = "policy"
    SETTING = "setting"
    PROFILE = "profile"
    OTHER = "other"


class Argument(NamedTuple):
    """A value by its place."""

    kind: str
    many: bool = False
    """Whether all that follow are of the same kind."""
    choices: Sequence[str] = ()


class Option(NamedTuple):
    """An option by its names."""

    names: Sequence[str]
    help: str = ""
    kind: str | None = None
    """Its value's; None for a flag."""
    choices: Sequence[str] = ()


class Command(NamedTuple):
    """A command, or a group of them."""

    help: str = ""
    commands: Mapping[str, "Command"] = {}
    options: Sequence[Option] = ()
    arguments: Sequence[Argument] = ()


class Tree(NamedTuple):
    """All commands below the root, and the keys that policies and settings have."""

    root: Command
    policies: Sequence[str]
    settings: Sequence[str]


def read_tree(text: str) -> Tree:
    """What the file says."""
    found = json.loads(text)
    return Tree(root=_command(found["root"]), policies=found["policies"], settings=found["settings"])


def _command(found: Mapping[str, Any]) -> Command:
    return Command(
        help=found.get("help", ""),
        commands={name: _command(one) for name, one in found.get("commands", {}).items()},
        options=[Option(**one) for one in found.get("options", ())],
        arguments=[Argument(**one) for one in found.get("arguments", ())],
    )
