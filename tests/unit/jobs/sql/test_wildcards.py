"""Patterns for names, and how a statement begins."""

import pytest

from lakewarden.jobs.sql.beginning import beginning
from lakewarden.jobs.sql.wildcards import Wildcard, fitting

SIGNS = {"%": Wildcard.MANY, "_": Wildcard.ONE}


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("orders", "Orders", True),
        ("orders", "orders2", False),
        ("", "", True),
        ("%", "", True),
        ("o%", "orders", True),
        ("%s", "orders", True),
        ("%d%r%", "orders", True),
        ("%d%r%d%", "orders", False),
        ("a%a", "a", False),
        ("a%a", "aa", True),
        ("%ab%ab", "abab", True),
        ("%ab%ab", "ab", False),
        ("o_d%s", "orders", True),
        ("____", "orders", False),
    ],
)
def test_a_name_fits_a_pattern_or_not(pattern: str, name: str, fits: bool) -> None:
    assert fitting(SIGNS.get(sign, sign) for sign in pattern)(name) is fits


def test_many_wildcards_are_as_quick_as_few() -> None:
    assert not fitting(SIGNS.get(sign, sign) for sign in "%a" * 500 + "b")("a" * 4_000)


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN GOVERNED",
        "-- why\n explain/* and /* how */ */ Governed x",
        "\n\tEXPLAIN--\nGOVERNED(",
    ],
)
def test_the_first_words_are_found_behind_blanks_and_comments(text: str) -> None:
    words = beginning(text, 2)
    assert [word.text.upper() for word in words] == ["EXPLAIN", "GOVERNED"]
    assert text[: words[1].end].upper().endswith("GOVERNED")


@pytest.mark.parametrize(("text", "words"), [("", []), ("/* open", []), ("-- x", []), ("`a` b", ["`", "a"])])
def test_there_may_be_none(text: str, words: list[str]) -> None:
    assert [word.text for word in beginning(text, 2)] == words
