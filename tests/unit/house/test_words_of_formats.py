"""What a format calls its settings, its classes and its nodes of Spark's plans stands in its own rooms alone."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from support.sources import parsed, walked

ROOT: Final = Path(__file__).parents[3]
ROOMS: Final = ("catalog", "jobs", "daemon", "examples")
KINDS: Final = "a closed list of Spark's statements, by the classes of all: what is not on it is refused"
STARTED: Final = "what a session is started with: packages, extensions and catalogs of all formats"
ERRORS: Final = "how libraries call their errors that are told in one sentence"


@dataclass(frozen=True, kw_only=True)
class Words:
    """Those of one format."""

    texts: re.Pattern[str]
    calls: re.Pattern[str]
    """What the JVM's objects are asked, with what it is asked of."""
    rooms: Sequence[str]
    elsewhere: Mapping[str, str]
    """Modules that say some all the same, and why they may."""


FORMATS: Final[Mapping[str, Words]] = {
    "delta": Words(
        texts=re.compile(
            r"spark\.databricks\.delta|\bio\.delta\b|\bsql\.delta\b|Delta[A-Z]\w|[tT]ahoe"
            r"|\b(?:MergeInto|Update|Delete|OptimizeTable|VacuumTable)Command\b"
        ),
        calls=re.compile(r"\.(?:deltaLog|tahoe\w+)$|^(?:sql|io)\.delta$"),
        rooms=("catalog/formats/delta", "catalog/system", "jobs/engines/delta", "jobs/session/delta"),
        elsewhere={
            "jobs/engines/spark/errors.py": ERRORS,
            "jobs/runs/log_stores.py": "who writes to which storage in Delta's name, which a session is started with",
            "jobs/runs/spark_settings.py": STARTED,
            "jobs/session/judgement/statement_kinds.py": KINDS,
            "jobs/session/judgement/unrecorded_rule.py": KINDS,
            "jobs/session/judgement/writing_rules.py": KINDS,
            "jobs/session/plans.py": "what Delta's analysis of a MERGE leaves undone is mended where all are analysed",
        },
    ),
    "iceberg": Words(
        texts=re.compile(
            r"org\.apache\.iceberg|spark\.sql\.iceberg|Iceberg[A-Z]\w|\bSpark(?:Changelog)?Table\b"
        ),
        calls=re.compile(r"^apache\.iceberg$"),
        rooms=("catalog/formats/iceberg", "jobs/engines/iceberg", "jobs/session/iceberg"),
        elsewhere={
            "jobs/engines/spark/errors.py": ERRORS,
            "jobs/runs/catalog_conf.py": STARTED,
            "jobs/runs/spark_settings.py": STARTED,
            "jobs/session/judgement/statement_kinds.py": KINDS,
        },
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_words_of_a_format_stand_in_its_own_rooms(name: str) -> None:
    words, found, lines = FORMATS[name], set[str](), list[str]()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            if not where.startswith(tuple(f"{one}/" for one in words.rooms)):
                for line, said in words_in(parsed(path), words):
                    found.add(where)
                    lines.append(f"{where}:{line}: {said}")
    assert found == set(words.elsewhere), "\n".join(lines)


@pytest.mark.parametrize("room", [one for words in FORMATS.values() for one in words.rooms])
def test_a_room_of_a_format_is_there(room: str) -> None:
    assert (ROOT / room / "__init__.py").exists()


def words_in(tree: ast.AST, words: Words) -> Iterator[tuple[int, str]]:
    """Where code says one, not its documentation, and what it says there."""
    documentation = {id(node.value) for node in walked(tree) if isinstance(node, ast.Expr)}
    for node in walked(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in documentation:
                if words.texts.search(text):
                    yield node.lineno, repr(text)
            case ast.Attribute(value=of, attr=name):
                asked = f"{of.attr if isinstance(of, ast.Attribute) else ''}.{name}"
                if words.calls.search(asked):
                    yield node.lineno, asked


SLIPS: Final = {
    "delta": (
        """a = conf("spark.databricks.delta.x"); b = kind(c) == "DeltaTableV2"; d = e.f().deltaLog()
g = plans.sql.delta.DeltaOperations; h = plan.tahoeFileIndex; i = f"io.delta.{j}"; k = "TahoeLogFileIndex"
l = "UpdateCommand"
""",
        8,
    ),
    "iceberg": (
        """a = "org.apache.iceberg.spark.X"; b = jvm.org.apache.iceberg.BaseTable; c = "SparkTable" """,
        3,
    ),
}
FINE: Final = '''
"""Delta's `DeltaTableV2`, and org.apache.iceberg."""
a = "delta"; b = "Convert it (CONVERT TO DELTA): a Delta table."; c = log_of(delta); d = one.delta; e = "iceberg.db.t"
f = "an Iceberg table"; g = DeltaSessions(); h = self.iceberg
'''


@pytest.mark.parametrize("name", FORMATS)
def test_a_word_of_a_format_is_seen_where_it_is_one(name: str) -> None:
    bad, count = SLIPS[name]
    assert len(list(words_in(ast.parse(bad), FORMATS[name]))) == count
    assert list(words_in(ast.parse(FINE), FORMATS[name])) == []
