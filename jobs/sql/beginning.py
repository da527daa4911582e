"""How a statement begins: its first words, read without what comes after them. Pure, and never longer than the text."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

__all__ = ["Word", "beginning"]

_BLANK: Final = re.compile(r"\s+")
_LINE: Final = re.compile(r"--[^\n]*")
_COMMENT: Final = re.compile(r"/\*|\*/")
_WORD: Final = re.compile(r"\w+")


class Word(NamedTuple):
    """A word, or a single other character."""

    text: str
    end: int
    """The index behind the word."""


def beginning(text: str, most: int) -> tuple[Word, ...]:
    """The first words of a text, at most so many, without the blanks and comments between them."""
    return tuple(islice(_words(text), most))


def _words(text: str) -> Iterator[Word]:
    at = 0
    while at < len(text):
        skipped = _BLANK.match(text, at) or _LINE.match(text, at)
        if skipped is not None:
            at = skipped.end()
        elif text.startswith("/*", at):
            at = _behind_comment(text, at)
        else:
            word = _WORD.match(text, at)
            end = at + 1 if word is None else word.end()
            yield Word(text[at:end], end)
            at = end


def _behind_comment(text: str, at: int) -> int:
    """Where a comment ends that begins here. One can hold others; one that does not end goes on to the end."""
    depth = 0
    for mark in _COMMENT.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)
