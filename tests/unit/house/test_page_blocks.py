"""What stands in blocks on the pages is what its language takes, and settings are ones that lakewarden takes."""

import ast
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.settings.settings import load_settings
from support.reference.page_blocks import DOCS, Block, blocks
from support.reference.page_commands import PAGES

OTHER_FILES = ("[project.entry-points", "[profiles")
"""A block of TOML with one of these is no lakewarden.toml."""


def of_python(text: str) -> None:
    ast.parse(re.sub(r"^%.*$", "", text, flags=re.MULTILINE))  # IPython's own words


def of_yaml(text: str) -> None:
    list(yaml.safe_load_all(text))


TAKES: dict[str, Callable[[str], Any]] = {
    "python": of_python,
    "toml": tomllib.loads,
    "json": json.loads,
    "yaml": of_yaml,
}
PAGE_BLOCKS = [block for page in {*PAGES, *DOCS.rglob("*.md")} for block in blocks(page)]
PARSED = sorted((block for block in PAGE_BLOCKS if block.language in TAKES), key=lambda block: block.where)
SETTINGS = [
    block
    for block in PARSED
    if block.language == "toml" and not any(one in block.text for one in OTHER_FILES)
]


@pytest.mark.parametrize("block", PARSED, ids=lambda block: block.where)
def test_a_block_is_of_its_language(block: Block) -> None:
    TAKES[block.language](block.text)


@pytest.mark.parametrize("block", SETTINGS, ids=lambda block: block.where)
def test_settings_on_a_page_are_taken(block: Block, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    text = re.sub(r'"file:/[^"]*"', f'"file:{tmp_path}/secret"', block.text)
    (tmp_path / "lakewarden.toml").write_text(text)
    assert load_settings(home=tmp_path, environment={"LAKE_KEY": "key"}).home == tmp_path
    (tmp_path / "lakewarden.toml").write_text(f"{text}\n[no_such_section]\nkey = 1\n")
    with pytest.raises(UsageError, match="no_such_section"):
        load_settings(home=tmp_path, environment={"LAKE_KEY": "key"})


def test_every_language_of_the_pages_is_known_and_there_are_many_blocks() -> None:
    found = Counter(block.language for block in PAGE_BLOCKS)
    assert set(found) - set(TAKES) <= {"bash", "console", "csv", "mermaid", "sql"}
    assert len(PARSED) >= 25 and len(SETTINGS) >= 5, found
