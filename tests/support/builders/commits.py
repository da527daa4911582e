"""Commits and heads of tables whose versions count up, as Delta's do."""

from dataclasses import replace
from typing import Any

from lakewarden.catalog.formats.delta.commit_kind import (
    kind_of,
    named_properties,
    restored_to,
    streamed_batch,
)
from lakewarden.catalog.formats.heads import head_token
from lakewarden.catalog.formats.port import Commit, Observation

__all__ = ["changed", "counted", "observed"]


def counted(*, version: int, **told: Any) -> Commit:
    """The commit that made a version out of the one before it, as the Delta reader would read it."""
    operation, parameters = told["operation"], told.get("parameters", {})
    derived = {
        "parent": version - 1 if version > 0 else None,
        "kind": kind_of(
            operation,
            parameters,
            first=version == 0,
            data_change=told.get("data_change", False),
            redefines=told.get("format_id") is not None,
            added=told.get("added_files", 0),
            removed=told.get("removed_files", 0),
            whole=True,
        ),
        "restored": restored_to(operation, parameters),
        "changed_properties": named_properties(operation, parameters),
        "ends_vacuum": operation == "VACUUM END",
        "batch": streamed_batch(operation, parameters),
    }
    return Commit(version=version, **{**derived, **told})


def observed(**told: Any) -> Observation:
    """What a log says, and the head that follows from it."""
    return changed(Observation(head="", **told))


def changed(seen: Observation, **changes: Any) -> Observation:
    """What a log says after these changes, and the head that follows from it."""
    made = replace(seen, **changes)
    return replace(made, head=head_token(made.format_id, made.version, made.committed_at))
