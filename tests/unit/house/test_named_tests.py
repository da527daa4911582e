"""The tests that the documentation names are there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NAMED = re.compile(r"`((?:tests/)?(?:(?:unit|integration|contract)/[\w/]+/?)?test_\w+\.py)`")


def test_they_exist() -> None:
    named = set(NAMED.findall((ROOT / "docs" / "development.md").read_text(encoding="utf-8")))
    assert len(named) >= 25
    there = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    missing = [
        one for one in named if not any(path.endswith(f"/{one.removeprefix('tests/')}") for path in there)
    ]
    assert not missing
