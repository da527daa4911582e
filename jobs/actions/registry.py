"""The actions that there are, each registered once; and the queue's form of their values: JSON, tagged by `kind`.

Another action is a module beside this one, its line here, and its executor's line in jobs/worker/dispatch.py.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from pydantic import TypeAdapter

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.port import Commit, Head
from lakewarden.catalog.model.rows import Action, HealthRow
from lakewarden.catalog.state.port import Run
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.compact import COMPACT
from lakewarden.jobs.actions.convert import CONVERT
from lakewarden.jobs.actions.costs import WARM_START, Estimate
from lakewarden.jobs.actions.log_care import LOG_CARE
from lakewarden.jobs.actions.metadata_care import METADATA_CARE
from lakewarden.jobs.actions.properties import PROPERTIES
from lakewarden.jobs.actions.purge import PURGE
from lakewarden.jobs.actions.rollback import ROLLBACK
from lakewarden.jobs.actions.spec import Retry, Spec, Verdict, retry
from lakewarden.jobs.actions.statistics import STATISTICS
from lakewarden.jobs.actions.sync import SYNC
from lakewarden.jobs.actions.vacuum import VACUUM

__all__ = [
    "SPECS",
    "decode",
    "encode",
    "estimate",
    "required_head",
    "required_version",
    "spec_of",
    "verdict_of",
]

_ALL: Final[tuple[Spec[Any], ...]] = (
    ROLLBACK,
    CONVERT,
    PROPERTIES,
    SYNC,
    VACUUM,
    COMPACT,
    STATISTICS,
    LOG_CARE,
    METADATA_CARE,
    PURGE,
)
SPECS: Final = {one.action: one for one in _ALL}
"""By the word that `lakewarden.runs` has for them, in the order in which a table's rules are asked."""
_ADAPTERS: Final = {one.action: TypeAdapter[AnyAction](one.value) for one in _ALL}


def spec_of(action: AnyAction) -> Spec[Any]:
    """What is known of an action's kind."""
    return SPECS[Action(action.kind)]


def encode(action: AnyAction) -> str:
    """The action as the queue stores it: compact JSON."""
    return _ADAPTERS[Action(action.kind)].dump_json(action).decode()


def decode(payload: str) -> AnyAction:
    """The action that `encode` wrote. Raises `UnreadableError` for anything else:
    another version of lakewarden wrote it."""
    try:
        return _ADAPTERS[Action(json.loads(payload)["kind"])].validate_json(payload)
    except (ValueError, TypeError, KeyError) as error:  # pydantic's ValidationError is a ValueError
        raise UnreadableError("It is an action of another version of lakewarden.") from error


def required_head(action: AnyAction) -> Head | None:
    """The head of the table that an action was decided on; None if it was decided on none."""
    return spec_of(action).requires(action)


def required_version(action: AnyAction) -> int | None:
    """Its version, for the record."""
    head = required_head(action)
    return None if head is None else head.version


def estimate(action: AnyAction, health: HealthRow | None) -> Estimate:
    """Predict one action from the table's health (None: nothing is known, only the overhead is predicted)."""
    return Estimate(seconds=WARM_START) if health is None else spec_of(action).estimate(action, health)


def verdict_of(run: Run, commits: Callable[[], Iterable[Commit]]) -> Verdict:
    """What a run whose worker is gone came to: the table's log says, not memory.

    `commits` reads those after the version it was decided on (after -1 where it was on none). One of somebody
    else does not matter here: begun again, the run finds that its version is no longer head. Nor does a log that cannot
    be read: whatever is in its way, the run finds that, too. Raises `UnavailableError`.
    """
    recover = SPECS[run.request.action].recover
    if recover is retry:
        return Retry()
    try:
        ours = [commit for commit in commits() if commit.run_id == run.request.run_id]
    except UnreadableError:
        return Retry()
    return recover(run, ours) if ours else Retry()
