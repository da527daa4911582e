"""Each promise of docs/reference/security.md is held by a test that there is, and each attack has a name of its own."""

import ast
from pathlib import Path

import pytest

from support.security.attacks import ATTACKS, Role
from support.security.iceberg_attacks import ICEBERG_ATTACKS
from support.security.page import PROMISES

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize("file", PROMISES)
def test_promises_are_held_by_tests(file: str) -> None:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    assert PROMISES[file].keys() <= {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}


def test_attacks_have_names_of_their_own_and_every_role_tries_most() -> None:
    attacks = (*ATTACKS, *ICEBERG_ATTACKS)
    assert len({one.name for one in attacks}) == len(attacks)
    for role in Role:
        assert sum(role in one.allowed for one in attacks) >= len(attacks) // 3, role
