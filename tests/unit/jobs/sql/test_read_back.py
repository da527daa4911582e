"""What is emitted, read back as Spark's SQL, is the tree that was emitted: nothing binds otherwise, nothing is lost."""

import random
from typing import Final

import pytest
from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.dialects import PARSERS
from lakewarden.jobs.sql.compile.names.joins import is_comma
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.spark_words import in_spark
from lakewarden.jobs.sql.compile.values import Dialect
from support.builders.warehouse_changes import CASES
from support.two_databases.meaning import WORLD
from support.two_databases.random_names import NAMED_SCHEMAS, random_condition

PARTS: Final = (exp.Binary, exp.Not, exp.Neg, exp.Between, exp.In, exp.Case, exp.Exists)


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[exp.Expr, str]]:
    """Every part that is written, with its tree."""
    found = list[tuple[exp.Expr, str]]()

    def kept(node: exp.Expr) -> str:
        text = in_spark(node)
        found.append((node.copy(), text))
        return text

    monkeypatch.setattr("lakewarden.jobs.sql.compile.emission.in_spark", kept)
    return found


def braced(tree: exp.Expr) -> str:
    """A tree with parentheses around all that is made of something else, and no others."""
    node = exp.Paren(this=tree.copy())
    for paren in list(node.find_all(exp.Paren))[:0:-1]:
        paren.replace(paren.this)
    for one in list(node.walk()):
        if isinstance(one, exp.Is) and one.sql().endswith("IS NOT NULL"):
            one.replace(exp.Not(this=exp.Is(this=one.this.copy(), expression=exp.Null())))
        if isinstance(one, exp.Join) and is_comma(one):
            one.set("kind", "CROSS")
    for one in list(node.walk())[:0:-1]:
        if isinstance(one, PARTS):
            one.replace(exp.Paren(this=one.copy()))
    return node.sql(dialect=PARSERS[Dialect.SPARK], identify=True, comments=False)


def check_read_back(emitted: list[tuple[exp.Expr, str]]) -> None:
    for node, text in emitted:
        assert braced(read(node, text)) == braced(node), text


def read(node: exp.Expr, text: str) -> exp.Expr:
    spark = PARSERS[Dialect.SPARK]
    around, key = "{}", ""
    if isinstance(node, exp.With):
        around, key = "{} SELECT 1", "with_"
    elif isinstance(node, exp.Table | exp.Values | exp.Subquery):
        around, key = "SELECT 1 FROM {}", "from_"
    elif not isinstance(node, exp.Query):
        around, key = "SELECT {}", "expressions"
    (tree,) = spark.parse(around.format(text))
    assert tree is not None
    found = tree.args[key] if key else tree
    if key == "from_":
        found = found.this
    found = found[0] if key == "expressions" else found
    assert isinstance(found, exp.Expr)
    return found


@pytest.mark.parametrize("name", CASES)
def test_each_case(name: str, emitted: list[tuple[exp.Expr, str]]) -> None:
    draft = draft_of(CASES[name][0], Dialect(name.partition(":")[0]))
    if draft is not None:
        compiled(draft, {table: WORLD.schemas[table.parts[-1]] for table in draft.tables})
        assert emitted or draft.change.is_plain
        check_read_back(emitted)


@pytest.mark.heavy
@pytest.mark.parametrize("dialect", [Dialect.POSTGRES, Dialect.MYSQL])
def test_random_queries(dialect: Dialect, emitted: list[tuple[exp.Expr, str]]) -> None:
    done = 0
    for seed in range(120):
        if statement_of(f"DELETE FROM t WHERE {random_condition(seed, dialect)}", dialect):
            done += 1
    assert done > 20
    check_read_back(emitted)


@pytest.mark.heavy
def test_random_operators(emitted: list[tuple[exp.Expr, str]]) -> None:
    """Deep trees of operators with and without parentheses."""
    chance, done = random.Random(38), 0
    for _ in range(60):
        done += statement_of(f"DELETE FROM t WHERE {condition(chance, 4)}", Dialect.POSTGRES)
    assert done > 15
    check_read_back(emitted)


def statement_of(text: str, dialect: Dialect) -> bool:
    """Whether it is compiled, not refused."""

    try:
        draft = draft_of(text, dialect)
        assert draft is not None
        compiled(draft, NAMED_SCHEMAS)
    except UsageError:
        return False
    return True


def condition(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return f"{number(chance, 2)} {chance.choice(['=', '<>', '<', '>='])} {number(chance, 2)}"
    left, right = condition(chance, depth - 1), condition(chance, depth - 2 if depth > 1 else 0)
    return chance.choice(
        [
            f"{left} AND {right}",
            f"{left} OR {right}",
            f"({left} OR {right}) AND {right}",
            f"NOT ({left})",
            f"NOT {right} AND {left}",
            f"({left}) = ({right})",
            f"CASE WHEN {left} THEN {number(chance, 1)} ELSE a END IN ({number(chance, 1)}, 3)",
            f"{number(chance, 2)} BETWEEN {number(chance, 1)} AND {number(chance, 1)} OR {left}",
        ]
    )


def number(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return chance.choice(["a", "k", "id", "7", "-2"])
    left, right = number(chance, depth - 1), number(chance, depth - 1)
    sign = chance.choice("+-*/%")
    return chance.choice([f"{left} {sign} {right}", f"({left}) {sign} ({right})", f"-({left})", f"- {left}"])
