"""The reference tables of UPDATE, DELETE and upserts: every row is a case that is run on Spark and on PostgreSQL."""

import re
from itertools import chain
from pathlib import Path

from support.builders.warehouse_changes import CASES, SEVERAL
from support.builders.warehouse_upserts import MERGES, REFUSED, UPSERTS

PAGE = (Path(__file__).parents[4] / "docs" / "sql.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([\w, ]+) \| `(.+)` \|$", re.MULTILINE)
REFUSALS = re.compile(r"^\| `(.+)` \| `(.+)` \|$", re.MULTILINE)
NAMES = {
    "PostgreSQL": "postgres",
    "SQL Server": "tsql",
    "Teradata": "teradata",
    "MySQL": "mysql",
    "Spark": "spark",
    "lakewarden": "lakewarden",
}


def test_every_row_of_the_page_is_a_case() -> None:
    rows = ROW.findall(PAGE)
    run = {
        (name.partition(":")[0], statement)
        for name, (statement, _) in chain(CASES.items(), SEVERAL.items(), UPSERTS.items())
    } | {(name.partition(":")[0], statement) for name, statement in MERGES.items()}
    assert len(rows) >= 27
    shown = [({NAMES[one] for one in dialects.split(", ")}, statement) for dialects, statement in rows]
    assert [one for names, one in shown if not all((name, one) in run for name in names)] == []


def test_every_refusal_of_the_page_is_a_case() -> None:
    assert dict(REFUSALS.findall(PAGE)) == REFUSED
