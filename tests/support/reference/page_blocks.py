"""The blocks of code on the pages of the documentation, for tests that run or read them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.reference.page_commands import ROOT

__all__ = ["DOCS", "Block", "blocks", "code"]

DOCS: Final = ROOT / "docs"
_BLOCK: Final = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A block: the page and line where it begins, its language, and what stands in it."""

    where: str
    language: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """Those that name their language, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        lines = (line.removeprefix(found[1]) for line in found[3].splitlines())
        line = text.count("\n", 0, found.start()) + 1
        yield Block(where=f"{page.name}:{line}", language=found[2], text="\n".join(lines))


def code(page: str, language: str) -> list[str]:
    """What stands in the blocks of one language on a page below docs."""
    return [block.text for block in blocks(DOCS / f"{page}.md") if block.language == language]
