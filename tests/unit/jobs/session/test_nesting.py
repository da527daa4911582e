"""Statements that Spark's parser could not end with are refused before it sees them."""

import pytest

from lakewarden.catalog.errors import RefusedError
from lakewarden.jobs.session.statement_depth import require_shallow


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {'(' * 300}1{')' * 300}",
        f"INSERT INTO t VALUES {', '.join(['(1)'] * 100_000)}",
        f"INSERT INTO t VALUES ('{':( ' * 1_000}')",
        f"SELECT \"{'(' * 1_000}\", `{'(' * 1_000}`, 'it\\'s {'(' * 1_000}'",
        f"SELECT 1{')' * 1_000}{'(' * 300}",
    ],
    ids=["as deep as it may be", "many rows", "in a literal", "in each kind of quotes", "closed before"],
)
def test_what_can_be_read_is_let_through(text: str) -> None:
    require_shallow(text)


@pytest.mark.parametrize("inside", ["1", "'a)b)c)'"])
def test_what_nests_deeper_is_refused(inside: str) -> None:
    with pytest.raises(RefusedError, match="nests more than 300 parentheses"):
        require_shallow(f"SELECT {'(' * 20_000}{inside}{')' * 20_000}")
