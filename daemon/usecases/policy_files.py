"""Policies of a fleet as a YAML file that teams keep in git: tables and scopes, each with the keys set there. Pure."""

from collections.abc import Mapping

import yaml

from lakewarden.catalog.errors import LakewardenError, UsageError
from lakewarden.catalog.metastore.lookup import parse_name, parse_scope
from lakewarden.catalog.policy.differences import Wanted
from lakewarden.catalog.policy.effective import Value, format_value, parse_value
from lakewarden.catalog.policy.scopes import is_scope
from lakewarden.catalog.units import storable
from lakewarden.daemon.usecases.onboarding.lists import PLAIN_TAGS, composed

__all__ = ["as_text", "in_words", "read_policies"]

_EXAMPLE = (
    "Write the name of a table or scope ('sales.*':), and below it keys such as vacuum.retention: 30 days."
)


def as_text(policies: Wanted) -> str:
    """The file that says so: scopes first, the widest at the top; `read_policies` reads it back."""
    said = in_words(policies)
    return str(yaml.safe_dump(said, sort_keys=False, allow_unicode=True)) if said else ""


def in_words(policies: Wanted) -> dict[str, dict[str, str]]:
    """Tables and scopes, the widest first, with keys and values as people write them."""
    names = sorted(policies, key=lambda name: (name != "*", not is_scope(name), name))
    return {name: {key: format_value(key, value) for key, value in policies[name].items()} for name in names}


def read_policies(text: str) -> Wanted:
    """What a file wants. Every value is the text that stands there (`no` is no, `30 days` thirty days).

    Raises `UsageError` with the line of the first thing that makes no sense.
    """
    top = composed(text)
    if top is None:
        return {}
    if not isinstance(top, yaml.MappingNode):
        raise UsageError("It is not a policy file.", hint=_EXAMPLE)
    wanted: dict[str, Mapping[str, Value]] = {}
    for key, value in top.value:
        name = _name(key)
        if name in wanted:
            raise _wrong(key, f"{name} stands twice.", "Keep one of them.")
        wanted[name] = _values(name, value)
    return wanted


def _name(node: yaml.Node) -> str:
    text = _scalar(node)
    name = parse_scope(text) if is_scope(text) else parse_name(text)
    if name is None:
        raise _wrong(node, f"'{storable(text)}' is neither a table name nor a scope.", _EXAMPLE)
    return name


def _values(name: str, node: yaml.Node) -> Mapping[str, Value]:
    if isinstance(node, yaml.ScalarNode) and not node.value:
        return {}
    if not isinstance(node, yaml.MappingNode):
        raise _wrong(node, f"{name} has no keys.", _EXAMPLE)
    values: dict[str, Value] = {}
    for key, value in node.value:
        said = _scalar(key)
        if said in values:
            raise _wrong(key, f"{said} of {name} stands twice.", "Keep one of them.")
        try:
            values[said] = parse_value(said, _scalar(value))
        except LakewardenError as error:
            raise _wrong(key, str(error), error.hint) from error
    return values


def _scalar(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag not in PLAIN_TAGS:
        raise _wrong(node, "This is not a single value.", _EXAMPLE)
    return str(node.value)


def _wrong(node: yaml.Node, sentence: str, hint: str) -> UsageError:
    said = sentence if sentence.startswith("Line ") else f"Line {node.start_mark.line + 1}: {sentence}"
    return UsageError(said, hint=hint)
