"""Statements are read in step with their length: eight times the text takes about eight times as long, whatever it is.

What is measured is the time of this thread, at its best of a few times, and only how it grows.
"""

import random
import time
from typing import Any, Final, cast

import pytest

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.policy.access import Caller
from lakewarden.daemon.gateway.sessions import Handle, Session
from lakewarden.daemon.gateway.statements import Statements
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.jobs.sql.suggestions import meant
from support.fakes.reading import ReadingHere

BEGINNINGS: Final = (
    "", "SELECT ", "SELECT * FROM ", "SELECT * FROM t WHERE ", "SELECT name FROM lakewarden.tables WHERE ",
    "INSERT INTO t VALUES ", "WITH x AS (SELECT 1) SELECT ", "UPDATE t SET a = ",
    "DELETE FROM t USING s WHERE ", "UPDATE t FROM s SET a = s.b WHERE ", "MERGE INTO t USING s ON ",
    "UPSERT INTO t ON (k) SELECT ", "EXPLAIN GOVERNED UPDATE t FROM s SET a = s.b WHERE ",
    "SHOW MANAGED TABLES LIKE ", "USE ", "SET lakewarden.x=a", "SET ", "ROLLBACK TABLE ",
    "CREATE TABLE x AS SELECT ", "/* ",
)  # fmt: skip
PIECES: Final = (
    " ", "\n", "a, ", "a + ", "(", "((", "f(a, ", "CASE WHEN a THEN ", "NOT ", "- ", "-- x\n", "/* x */",
    "/*", "*/", "'x', ", "'", '"', "`", "`a`.", "a.", "[", "a[", "x -> ", "a = b OR ", "SELECT * FROM (",
    "UNION SELECT 1 ", "a IN (1,2) AND ", "INTERVAL '1' DAY + ", "CAST(a AS ", "a::", "AT VERSION 1 ",
    "t AT VERSION 1, ", ";", "; ", "JOIN t ON a = b ", "1e", "1.", "\\", "EXISTS (SELECT ", "BETWEEN ",
    "array<", "a IS NOT NULL AND ", "(1, 2), ", "EXPLAIN GOVERNED ", "lakewarden.", "=", "%", "{", "ä",
)  # fmt: skip
SHORT: Final = 250
GROWS: Final = 8
MOST: Final = 30
"""So many times as long an eightfold text may take: 8 is in step, a square is 64."""
LEAST_SECONDS: Final = 0.004


def seconds(text: str) -> float:
    session = Session(Handle(b"", b""), Caller(name="ana", origin="gateway"), {}, "default")
    services = Services(load_settings(environment={}, flags={"gateway.readers": "*"}))
    nothing = cast(Any, None)
    statements = Statements(services, spark=nothing, store=nothing, readers=ReadingHere(), refused=nothing)
    began = time.thread_time()
    try:
        statements.operation(session, text)
        meant(text)
    except LakewardenError:
        pass
    return time.thread_time() - began


def growth(beginning: str, piece: str) -> float:
    """How many times as long a text takes that is so many times as long. Six pieces more each time, and one: two or
    three of them may close what they open, and be another text."""
    sizes = (SHORT, SHORT * GROWS, SHORT * GROWS**2)
    texts = [beginning + piece * (size // len(piece) // 6 * 6 + 1) + "b" for size in sizes]
    short, middle, long = (min(seconds(text) for _ in range(2)) for text in texts)
    return max(middle / max(short, LEAST_SECONDS), long / max(middle, LEAST_SECONDS))


@pytest.mark.parametrize("seed", range(3))
def test_reading_takes_as_long_as_the_text_is(seed: int) -> None:
    chosen = random.Random(seed)  # which texts are tried
    tried = [(chosen.choice(BEGINNINGS), chosen.choice(PIECES)) for _ in range(8)]
    slow = {pair: factor for pair in tried if (factor := growth(*pair)) > MOST}
    assert slow == {}


@pytest.mark.parametrize("beginning", ["SET lakewarden.x=a", "USE ", "EXPLAIN ", "SELECT 1"])
@pytest.mark.parametrize("piece", [" ", "\n", "/* x */", "-- x\n"])
def test_blanks_and_comments_cost_no_more_than_words(beginning: str, piece: str) -> None:
    assert growth(beginning, piece) <= MOST


@pytest.mark.long
def test_every_beginning_goes_on_in_every_way_without_taking_long() -> None:
    slow = {
        (beginning, piece): factor
        for beginning in BEGINNINGS
        for piece in PIECES
        if (factor := growth(beginning, piece)) > MOST
    }
    assert slow == {}
