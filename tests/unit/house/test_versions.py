"""Versions of tables have identity and order: nothing but a format's own rooms computes one from another."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from support.sources import parsed, walked

ROOT = Path(__file__).parents[3]
ROOMS = ("catalog", "jobs", "daemon")
OF_A_FORMAT = ("catalog/formats", "catalog/system", "jobs/engines/delta")
"""Rooms of a format: what they know of its numbers is theirs. System tables are Delta, and nothing else."""
ENDS: Final = "ends of a range: which versions lie in it is asked of versions that are there"
PLACES: Final = "places in a graph, whose versions are numbered in order"
OFFSETS: Final = "offsets of Delta's streams, which count its versions"
LAST: Final = "the last number that a log has: a later one is none of its versions"
OWN: Final = "the last of a run's own commits, which are in order"
OLD: Final = "rows that are older than the column of parents, which are all of Delta tables"
ALLOWED: Final[Mapping[str, tuple[int, str]]] = {
    "catalog/lineage/edges.py": (1, OLD),
    "catalog/lineage/graph/build.py": (1, "head where nobody says it: a log without side lines"),
    "catalog/lineage/graph/draft.py": (1, "most parents are the version before; only the others are kept"),
    "catalog/lineage/graph/incarnations.py": (2, LAST),
    "catalog/lineage/left_versions.py": (1, ENDS),
    "catalog/lineage/marks.py": (1, LAST),
    "catalog/lineage/restores.py": (4, ENDS),
    "catalog/lineage/reverted_reads.py": (1, ENDS),
    "catalog/lineage/rewritten_logs.py": (1, ENDS),
    "catalog/lineage/stream_batches.py": (2, OFFSETS),
    "catalog/model/rollbacks.py": (3, ENDS),
    "catalog/registry/marks.py": (1, LAST),
    "jobs/actions/spec.py": (1, OWN),
    "jobs/actions/vacuum.py": (1, OWN),
    "jobs/rollback/execute/table_steps.py": (1, "what came since is appends on head's line, or a conflict"),
    "jobs/rollback/plan/taint.py": (1, PLACES),
    "jobs/upsert/once.py": (1, "the end of a Delta session's own log"),
}
"""How often a module does it all the same, and why it may."""
NAMES = ("version", "head", "parent")


def computed(tree: ast.AST) -> Iterator[ast.AST]:
    """Where a number is made of a version, where it is asked whether one is the first,
    or where the largest is taken for the newest."""
    for node in walked(tree):
        match node:
            case ast.BinOp(left=left, right=right) if is_whole(left) or is_whole(right):
                if is_version(left) or is_version(right):
                    yield node
            case ast.AugAssign(target=target):
                if is_version(target):
                    yield node
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if (is_version(left) and asks_for_first(op, right)) or (is_version(right) and is_whole(left)):
                    yield node
            case ast.UnaryOp(op=ast.Not(), operand=operand) if is_version(operand):
                yield node
            case ast.Match(subject=subject, cases=cases) if is_version(subject):
                if any(isinstance(one.pattern, ast.MatchValue) for one in cases):
                    yield node
            case ast.Call(func=ast.Name(id="max"), args=args, keywords=keywords):
                if chooses_among_versions(args, keywords):
                    yield node
            case ast.Subscript(
                value=ast.Call(func=ast.Name(id="sorted"), args=args, keywords=keywords),
                slice=ast.UnaryOp(op=ast.USub()),
            ):
                if chooses_among_versions(args, keywords):
                    yield node
            case ast.Subscript(value=of, slice=ast.UnaryOp(op=ast.USub())) if is_of_versions(of):
                yield node
            case ast.Attribute(value=ast.Subscript(slice=ast.UnaryOp(op=ast.USub())), attr="version"):
                yield node


def is_version(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in NAMES or name.endswith(tuple(f"_{one}" for one in NAMES))
        case ast.Call(func=ast.Name(id="int"), args=[inner]) | ast.BoolOp(op=ast.Or(), values=[inner, *_]):
            return is_version(inner)
        case _:
            return False


def chooses_among_versions(args: list[ast.expr], keywords: list[ast.keyword]) -> bool:
    keys = [one.value for one in keywords if one.arg == "key"]
    return any(is_of_versions(one) for one in (*args, *keys))


def is_of_versions(node: ast.expr) -> bool:
    """Whether these are versions to choose the largest of."""
    match node:
        case ast.GeneratorExp(elt=one) | ast.ListComp(elt=one) | ast.SetComp(elt=one) | ast.Lambda(body=one):
            return is_version(one)
        case ast.Attribute(attr="versions") | ast.Name(id="versions"):
            return True
        case _:
            return False


def asks_for_first(op: ast.cmpop, right: ast.expr) -> bool:
    match op, right:
        case ast.Eq() | ast.NotEq() | ast.Is() | ast.LtE(), ast.Constant(value=0):
            return True
        case ast.Lt() | ast.GtE(), ast.Constant(value=1):
            return True
        case ast.In() | ast.NotIn(), ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts):
            return any(is_whole(one) for one in elts)
        case _:
            return False


def is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def test_versions_are_not_computed_with() -> None:
    found = Counter[str]()
    lines = list[str]()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(OF_A_FORMAT):
                continue
            for one in computed(parsed(path)):
                found[name] += 1
                lines.append(f"{name}:{getattr(one, 'lineno', 0)}: {ast.unparse(one)}")
    assert found == {name: count for name, (count, _) in ALLOWED.items()}, "\n".join(lines)


SLIPS: Final = """
version + 1; row.from_version - 1; 1 + one.version; version - 2; int(version) + 1; (head or 0) + 1
version % 10; version += 1
seen.version == 0; commit.parent != 0; 0 == version; version < 1; version <= 0; version in (0, 1); not version
max(versions); max(one.version for one in commits); max(commits, key=lambda one: one.version); versions[-1]
sorted(versions)[-1]; commits[-1].version
"""
FINE: Final = """
count + 1; version > 0; before.version < now.version; versions[place + 1]; schema_version + stride
sorted(versions); max(sizes); commits[-1].committed_at; version is None; version == seen
"""


def test_the_check_sees_what_it_is_to_see() -> None:
    statements = [one.strip() for one in SLIPS.replace("\n", ";").split(";") if one.strip()]
    assert len(statements) == 21
    assert [one for one in statements if not list(computed(ast.parse(one)))] == []
    assert list(computed(ast.parse(FINE))) == []


WORDS_OF_A_FORMAT: Final = re.compile(
    r"(?<![\w.])delta\.[a-zA-Z]|_delta_log|_last_checkpoint|numTargetRows|deletedFileRetention"
)
"""Properties and files of Delta's; names of Spark's settings (`spark.databricks.delta...`) are none."""
OPERATIONS: Final = frozenset(
    ["OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", "STREAMING UPDATE", "SET TBLPROPERTIES",
     "UNSET TBLPROPERTIES", "CHANGE COLUMN", "ADD COLUMNS", "DROP COLUMNS", "RENAME COLUMN", "COMPUTE STATS",
     "CREATE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT", "REPLACE TABLE AS SELECT", "WRITE",
     "CLONE",
     "UPGRADE PROTOCOL"]
)  # fmt: skip
"""What Delta's commits call what they did, where it is not one of SQL's own words."""
SPEAKS_DELTA: Final = ("jobs/session/delta", "jobs/sql", "jobs/upsert")
"""Its room in sessions, and the SQL that is run there: on Delta's tables."""
METRICS: Final = "metrics in which commits of all formats count their rows"
ALLOWED_WORDS: Final[Mapping[str, str]] = {
    "catalog/lineage/versions.py": METRICS,
    "jobs/runs/log_stores.py": "settings by which sessions commit to a store",
    "jobs/session/judgement/statement_kinds.py": "what users call statements, those of all formats",
    "jobs/session/judgement/writing_rules.py": "properties that are conditions are no writer's to set",
    "jobs/session/row_counts.py": METRICS,
    "jobs/session/upserts/counted_upserts.py": METRICS,
    "jobs/session/upserts/merged_upserts.py": "upserts into Delta tables, and what their users can do",
}


def test_no_word_of_one_format_stands_outside_its_rooms() -> None:
    found = set()
    lines = list[str]()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith((*OF_A_FORMAT, *SPEAKS_DELTA)):
                for one in words_of_a_format(parsed(path)):
                    found.add(name)
                    lines.append(f"{name}:{one.lineno}: {one.value!r}")
    assert found == set(ALLOWED_WORDS), "\n".join(lines)


def words_of_a_format(tree: ast.AST) -> Iterator[ast.Constant]:
    """Texts of the code, not of its documentation, that one format alone would say."""
    documentation = {id(node.value) for node in walked(tree) if isinstance(node, ast.Expr)}
    for node in walked(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in documentation:
            continue
        if node.value in OPERATIONS or WORDS_OF_A_FORMAT.search(node.value):
            yield node


def test_a_word_of_a_format_is_found() -> None:
    bad = """
a = "delta.logRetentionDuration"; b = f"set delta.x to {a}"; c = "OPTIMIZE"; d = "x/_delta_log/"; e = "WRITE"
"""
    good = """
'delta.appendOnly'
a = "spark.databricks.delta.x"; b = "to Delta. It"; c = "optimize"; d = "a delta"; e = "RESTORE"
"""
    assert len(list(words_of_a_format(ast.parse(bad)))) == 5
    assert list(words_of_a_format(ast.parse(good))) == []
