"""An action is registered once: what else has to be known of its kind is asked of the registry."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.system.port import RUNS
from lakewarden.jobs.actions.registry import SPECS
from lakewarden.jobs.actions.spec import Settlement
from support.builders.system_samples import sample
from support.sources import parsed, walked

ROOT = Path(__file__).parents[3]
LISTED = {"jobs/worker/dispatch.py"}
"""The executors' one list."""


def test_no_module_lists_kinds_of_actions_beside_the_registry() -> None:
    listing = set()
    for plane in ("catalog", "jobs", "daemon"):
        for path in (ROOT / plane).rglob("*.py"):
            for node in walked(parsed(path)):
                match node:
                    case ast.Dict(keys=keys):
                        kinds = [one for one in keys if one is not None]
                    case ast.Set(elts=kinds) | ast.Tuple(elts=kinds) | ast.List(elts=kinds):
                        pass
                    case _:
                        continue
                if sum(ast.unparse(one).startswith("Action.") for one in kinds) > 1:
                    listing.add(str(path.relative_to(ROOT)))
    assert listing == LISTED


def test_the_caretaker_does_what_the_registry_says_it_does() -> None:
    tree = ast.parse((ROOT / "daemon" / "control" / "system_maintenance.py").read_text(encoding="utf-8"))
    done = {ast.unparse(node.cls) for node in ast.walk(tree) if isinstance(node, ast.MatchClass)}
    assert done == {spec.value.__name__ for spec in SPECS.values() if spec.by_caretaker}


@pytest.mark.parametrize(
    ("action", "outcome", "tried_again", "version", "settled"),
    [
        (Action.CONVERT, Outcome.SUCCEEDED, False, None, Settlement.CONVERTED),
        (Action.CONVERT, Outcome.SKIPPED, True, None, Settlement.CONVERTED),
        (Action.CONVERT, Outcome.FAILED, False, None, Settlement.NOT_CONVERTED),
        (Action.CONVERT, Outcome.FAILED, True, None, None),
        (Action.PROPERTIES, Outcome.SUCCEEDED, False, None, Settlement.GIVEN_BACK),
        (Action.PROPERTIES, Outcome.SUCCEEDED, True, None, None),
        (Action.PROPERTIES, Outcome.SUCCEEDED, False, 4, None),
        (Action.PROPERTIES, Outcome.FAILED, False, None, None),
        (Action.PURGE, Outcome.SUCCEEDED, False, 4, Settlement.PURGED),
        (Action.PURGE, Outcome.SKIPPED, False, 4, Settlement.NOT_PURGED),
        (Action.PURGE, Outcome.ABANDONED, True, 4, Settlement.NOT_PURGED),
        (Action.VACUUM, Outcome.SUCCEEDED, False, 4, None),
    ],
)
def test_what_a_finished_run_settles(
    action: Action, outcome: Outcome, tried_again: bool, version: int | None, settled: Settlement | None
) -> None:
    run = replace(sample(RUNS, 1), action=action, outcome=outcome, requires_version=version)
    assert SPECS[action].settles(run, tried_again) is settled
