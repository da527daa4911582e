"""Each action is registered once, and whoever is asked about one finds it."""

import pytest

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Action
from lakewarden.jobs.actions.registry import SPECS, decode, encode, required_version, spec_of
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.worker.dispatch import EXECUTORS


def test_every_action_has_a_spec_and_an_executor() -> None:
    assert set(SPECS) == set(EXECUTORS) == set(Action)
    assert all(SPECS[action].action is action for action in Action)


def test_a_value_says_which_action_it_is() -> None:
    assert all(spec.value.__dataclass_fields__["kind"].default == word for word, spec in SPECS.items())


def test_a_value_comes_back_as_it_was_queued() -> None:
    vacuum = Vacuum(requires=Head(3), retention_seconds=60, excluded=("file:///t/inner",))
    assert decode(encode(vacuum)) == vacuum
    assert spec_of(vacuum).value is Vacuum and required_version(vacuum) == 3
    assert required_version(RollBack(rollback_id="r1")) is None


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"kind": "teleport"}',
        '{"kind": "vacuum"}',
        '{"kind": "vacuum", "requires": "x"}',
    ],
)
def test_what_another_version_queued_is_told_apart(payload: str) -> None:
    with pytest.raises(UnreadableError, match="another version of lakewarden"):
        decode(payload)
