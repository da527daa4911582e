"""The commands that stand on the pages of the documentation: lakewarden's, to be typed or named in a sentence, and what
else is typed in a shell."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lakewarden.daemon.cli.app import COMMANDS

__all__ = ["PAGES", "ROOT", "PageCommand", "commands_of", "shell_lines"]

ROOT: Final = Path(__file__).parents[3]
_GENERATED: Final = ROOT / "docs" / "reference"
PAGES: Final = (
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent != _GENERATED),
)

_BLOCK: Final = re.compile(r"^( *)```([^\n]*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_TYPED: Final = re.compile(
    r"^ *(?:\$ )?(?:sudo (?:-\S+ )*(?:lakewarden )?)?(?:[A-Z_]+=\S+ )*(?:source "
    r"<\()?(?:\S*/)?lakewarden (?=[a-z-])(.+)$",
    re.MULTILINE,
)
_PROGRAM: Final = re.compile(
    r"(?:sudo |[A-Z_]+=\S+ )*(?:\S*/)?(?:beeline|cd|cp|export|hdfs|helm|install|kubectl|make|pip|podman"
    r"|python3?[.\d]*|rm|set|source|systemctl|touch|useradd) \S|[A-Z_]+=\S+$"
)
"""How lines begin, in a block without a language, that are typed in a shell."""
_NAMED: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_ENDS: Final = frozenset({"||", "|", "&&", ">", ">>", "<", ";", ")", "&"})
_LEFT_OUT: Final = frozenset({"...", "\u2026"})


@dataclass(frozen=True, kw_only=True, slots=True)
class PageCommand:
    """One command: where it stands, the words after `lakewarden`, whether it is meant to be typed as it stands, and the
    file that its output goes to."""

    where: str
    words: tuple[str, ...]
    typed: bool
    into: str | None = None


def commands_of(page: Path) -> Iterator[PageCommand]:
    """Those in blocks and indented lines (to be typed), then those between backticks (which may leave things out)."""
    text = page.read_text(encoding="utf-8")
    for found in _TYPED.finditer(text):
        if found[0].startswith("    ") or _in_a_block(text, found.start()):
            yield _command(page, text, found.start(1), found[1], typed=True)
    sentences = _BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    for found in _NAMED.finditer(sentences):
        words = found[1].replace("\\|", "|").removeprefix("lakewarden ")
        named = words.partition(" ")[0].strip() in COMMANDS
        if words != found[1] or (named and " " in words):
            yield _command(page, sentences, found.start(), words, typed=False)


def shell_lines(page: Path) -> Iterator[str]:
    """What else a page types in a shell: the lines of blocks, and indented ones, that are not a lakewarden command."""
    text = page.read_text(encoding="utf-8")
    for indent, language, block in _BLOCK.findall(text):
        if language not in ("bash", "console", ""):
            continue
        for line in block.replace("\\\n", " ").splitlines():
            said = line.removeprefix(indent)
            if language == "console":
                typed = said.startswith("$ ")
            else:
                typed = bool(_PROGRAM.match(said)) if not language else bool(said.partition("#")[0].strip())
            if typed and not _TYPED.fullmatch(said):
                yield " ".join(said.removeprefix("$ ").split())
    for line in _BLOCK.sub("", text).splitlines():
        if line.startswith("    ") and _PROGRAM.match(line.strip()) and not _TYPED.fullmatch(line):
            yield " ".join(line.split())


def _in_a_block(text: str, at: int) -> bool:
    return any(block.start() < at < block.end() for block in _BLOCK.finditer(text))


def _command(page: Path, text: str, at: int, said: str, *, typed: bool) -> PageCommand:
    lexer = shlex.shlex(said, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    words = list(lexer)
    end = next((number for number, word in enumerate(words) if word in _ENDS), len(words))
    kept = words[:end] if typed else [word for word in words[:end] if word not in _LEFT_OUT]
    return PageCommand(
        where=f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, at) + 1}",
        words=tuple(kept),
        typed=typed,
        into=words[end + 1] if words[end : end + 1] == [">"] else None,
    )
