"""Which regular expressions take longer than in step with the text they read: found by reading the expressions.

A repeat without an end is *open* until something is read that it could not have read itself. Where another one begins
that could read what an open one reads, there are as many ways to divide the text between them as it has characters, and
a text that does not match is tried in all of them. The same where an expression is searched for, and the text before
its first repeat could lie in what that repeat reads: each place in it is a beginning that reads to its end.
"""

import re
import re._compiler  # type: ignore[import-not-found]  # Python's own, without types
import re._constants as code  # type: ignore[import-not-found]
import re._parser  # type: ignore[import-not-found]
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

__all__ = ["troubles_of"]

_ALPHABET: Final = "".join(map(chr, range(256))) + "\u2003\u0663\u03a9\u6f22"
"""Of each kind of character one at least."""
_LONG: Final = 100
"""A repeat that may be as long as this counts as one without an end."""
Characters = frozenset[str]
_WORD: Final[Characters] = frozenset(one for one in _ALPHABET if re.fullmatch(r"\w", one))


def troubles_of(pattern: str, flags: int = 0, *, searched: bool = True) -> list[str]:
    """What is slow about it; nothing for one that is fast. `searched`: not only from the beginning of a text."""
    tree = re._parser.parse(pattern, flags)
    walk = _Walk(tree.state.flags, [])
    walk.sequence(tree, frozenset())
    if searched:
        for characters, before in _leading(walk, tree, ()):
            if all(one & characters for one in before):
                walk.found.append("a search begins anew at each place that its first repeat reads")
                break
    return walk.found


@dataclass(frozen=True)
class _Walk:
    flags: int
    found: list[str]

    def sequence(self, items: Any, open_: frozenset[Characters]) -> frozenset[Characters]:
        """What is open behind it."""
        for item in items:
            open_ = self.item(item, open_)
        return open_

    def item(self, item: Any, open_: frozenset[Characters]) -> frozenset[Characters]:
        kind, value = item
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
            return self.repeat(kind, value, open_)
        if kind is code.SUBPATTERN:
            return self.sequence(value[3], open_)
        if kind is code.ATOMIC_GROUP:
            self.sequence(value, open_)
            return frozenset()
        if kind is code.BRANCH:
            return frozenset().union(*(self.sequence(one, open_) for one in value[1]))
        if kind in (code.ASSERT, code.ASSERT_NOT):
            self.sequence(value[1], frozenset())
            return open_
        if kind in (code.AT, code.GROUPREF):
            return open_
        characters = self.characters(item)
        return frozenset(one for one in open_ if one & characters)

    def repeat(self, kind: Any, value: Any, open_: frozenset[Characters]) -> frozenset[Characters]:
        least, most, body = value
        behind = self.sequence(body, open_)
        if most < _LONG:
            return behind | open_ if least == 0 else behind
        if behind & open_:
            self.found.append("two repeats can divide the same text between them")
        own = frozenset([self.all_of(body)])
        again = self.sequence(body, behind - open_)  # its next turn, after what its last one left open
        if again & (behind - open_):
            self.found.append("a repeat is repeated")
        if kind is code.POSSESSIVE_REPEAT:
            return frozenset()
        return open_ | own if least == 0 else behind | own

    def all_of(self, items: Any) -> Characters:
        """Every character that something in it reads."""
        return frozenset().union(*(self.characters(one) for one in _single(items)))

    def characters(self, item: Any) -> Characters:
        """The characters that an item for a single one reads."""
        return _characters(*_hashable(item), self.flags)


@cache
def _characters(kind: Any, value: Any, flags: int) -> Characters:
    state = re._parser.State()
    state.flags, state.str = flags, ""
    single = re._parser.SubPattern(state, [(kind, list(value) if isinstance(value, tuple) else value)])
    compiled = re._compiler.compile(single, flags)
    return frozenset(one for one in _ALPHABET if compiled.fullmatch(one))


def _hashable(item: Any) -> tuple[Any, Any]:
    kind, value = item
    return kind, tuple(value) if isinstance(value, list) else value


def _single(items: Any) -> Iterator[Any]:
    """The items for single characters that it is made of."""
    for item in items:
        kind, value = item
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
            yield from _single(value[2])
        elif kind is code.SUBPATTERN:
            yield from _single(value[3])
        elif kind is code.ATOMIC_GROUP:
            yield from _single(value)
        elif kind is code.BRANCH:
            for one in value[1]:
                yield from _single(one)
        elif kind not in (code.ASSERT, code.ASSERT_NOT, code.AT, code.GROUPREF):
            yield item


def _leading(
    walk: _Walk, items: Any, before: Sequence[Characters], *, more: bool = False, bounded: bool = False
) -> Iterator[tuple[Characters, Sequence[Characters]]]:
    """Repeats without an end that something has to follow, with what has to be read before them."""
    before = list(before)
    for place, item in enumerate(items):
        kind, value = item
        follows = more or _can_fail(items[place + 1 :])
        if kind is code.AT and value in (code.AT_BEGINNING, code.AT_BEGINNING_STRING):
            return
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT):
            _, most, body = value
            characters = walk.all_of(body)
            if most >= _LONG and follows and not (bounded and characters <= _WORD):
                yield characters, tuple(before)
            if most < _LONG:
                yield from _leading(walk, body, before, more=follows)
        elif kind is code.SUBPATTERN:
            yield from _leading(walk, value[3], before, more=follows, bounded=bounded)
        elif kind is code.BRANCH:
            for one in value[1]:
                yield from _leading(walk, one, before, more=follows)
        before += _needed(walk, [item])
        starts = kind is code.AT and value is code.AT_BOUNDARY
        bounded = starts or (bounded and _is_plain(item) and walk.characters(item) <= _WORD)


def _needed(walk: _Walk, items: Any) -> Iterator[Characters]:
    """What cannot be left out, each by its characters."""
    for item in items:
        kind, value = item
        if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
            if value[0]:
                yield from _needed(walk, value[2])
        elif kind is code.SUBPATTERN:
            yield from _needed(walk, value[3])
        elif kind is code.BRANCH or _is_plain(item):
            yield walk.all_of([item])


def _can_fail(items: Any) -> bool:
    """Whether a text may not have it."""
    return any(
        item[0] not in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT) or item[1][0] > 0
        for item in items
    )


def _is_plain(item: Any) -> bool:
    return item[0] in (code.LITERAL, code.NOT_LITERAL, code.ANY, code.IN)
