"""`python -m lakewarden.daemon.cli.completion.generate`: write the file of commands that shells are answered from."""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, get_args

from typer.main import get_command

from lakewarden.catalog.policy.effective import POLICY_KEYS
from lakewarden.daemon.cli.app import COMMANDS, app
from lakewarden.daemon.cli.completion.tree import FILE, ValueKind
from lakewarden.daemon.cli.lazy import command_of
from lakewarden.daemon.settings.settings import KNOBS

__all__ = ["tree_as_text"]

_KINDS: Final = {
    "where": ValueKind.TABLE,
    "upstream": ValueKind.TABLE,
    "run_id": ValueKind.RUN,
    "which": ValueKind.ROLLBACK,
    "assignments": ValueKind.POLICY,
    "settings": ValueKind.SETTING,
    "profile": ValueKind.PROFILE,
}
"""The meaning of a parameter by its name, where its type does not tell."""
_HELP: Final = {"names": ["--help"]}
_SCOPES: Final = ("pause", "resume", "owner", "hold", "set")
"""Commands whose `where` may be a scope."""
_PLACES: Final = ("register", "convert", "adopt")
"""Commands whose `where` is not managed yet: files, as the shell completes them."""


def tree_as_text() -> str:
    """The file: a line for each command, so that changes can be read."""
    commands = [f"{json.dumps(name)}: {_line(one)}" for name, one in _commands()]
    return "\n".join(
        (
            "{",
            f'"policies": {_line([key.key for key in POLICY_KEYS])},',
            f'"settings": {_line([knob.key for knob in KNOBS if not knob.file_only])},',
            f'"root": {{"options": {_line([*_root_options()])}, "commands": {{',
            ",\n".join(commands),
            "}}}\n",
        )
    )


def _root_options() -> Iterator[dict[str, Any]]:
    root: Any = get_command(app)
    yield from (_option("", one) for one in root.params)
    yield _HELP


def _line(what: Any) -> str:
    return json.dumps(what, ensure_ascii=False)


def _commands() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, where in COMMANDS.items():
        command = command_of(where)
        children: Mapping[str, Any] = getattr(command, "commands", {})
        yield name, {**_command(name, children.get(name, command)), "help": where.help}


def _command(name: str, command: Any) -> dict[str, Any]:
    children: Mapping[str, Any] = getattr(command, "commands", {})
    named = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    return _said(
        help=_first_sentence(command.help),
        commands={child: _command(child, one) for child, one in children.items()},
        options=[*(_option(name, one) for one in named), _HELP],
        arguments=[
            _said(kind=_kind(name, one), many=one.nargs != 1, choices=_choices(one))
            for one in command.params
            if one.param_type_name == "argument"
        ],
    )


def _option(command: str, option: Any) -> dict[str, Any]:
    return _said(
        names=[*option.opts, *option.secondary_opts],
        help=_first_sentence(option.help),
        kind=None if option.is_flag else _kind(command, option),
        choices=_choices(option),
    )


def _said(**what: Any) -> dict[str, Any]:
    """Without what there is none of."""
    return {key: value for key, value in what.items() if value}


def _kind(command: str, parameter: Any) -> str:
    kind = _KINDS.get(parameter.name, ValueKind.OTHER)
    if kind != ValueKind.TABLE:
        return kind
    return ValueKind.SCOPE if command in _SCOPES else ValueKind.OTHER if command in _PLACES else kind


def _choices(parameter: Any) -> list[str]:
    said = parameter.type_descriptor.annotation
    kinds = [one for one in (said, *get_args(said)) if isinstance(one, type) and issubclass(one, StrEnum)]
    return [word.value for kind in kinds for word in kind]


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split()).partition(". ")[0]


if __name__ == "__main__":
    FILE.write_text(tree_as_text(), encoding="utf-8")
