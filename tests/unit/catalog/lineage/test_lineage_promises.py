"""A source keeps what its derived tables promise."""

import random

from lakewarden.catalog.lineage.inherited_retention import LongerPromise, longer_promises

DAY = 86_400


def test_a_source_keeps_the_longest_promise_downstream() -> None:
    own = {"raw": 7 * DAY, "clean": 7 * DAY, "report": 30 * DAY, "other": DAY}
    pairs = [("raw", "clean"), ("clean", "report"), ("raw", "other")]
    held = LongerPromise(seconds=30 * DAY, table_id="report")
    assert longer_promises(own, pairs) == {"raw": held, "clean": held}


def test_a_shorter_promise_downstream_changes_nothing() -> None:
    assert longer_promises({"raw": 7, "report": 7, "other": 3}, [("raw", "report"), ("raw", "other")]) == {}


def test_circles_end_and_unknown_inputs_are_passed_through() -> None:
    own = {"a": 1, "b": 2, "c": 9}
    pairs = [("a", "b"), ("b", "a"), ("s3://raw", "b"), ("a", "s3://raw"), ("b", "c")]
    held = LongerPromise(seconds=9, table_id="c")
    assert longer_promises(own, pairs) == {"a": held, "b": held}


def test_on_random_lineage_it_is_the_longest_promise_that_can_be_reached() -> None:
    chance = random.Random(5)
    for _ in range(300):
        own = {f"t{number}": chance.randrange(5) for number in range(chance.randrange(1, 9))}
        names = sorted(own)
        pairs = [(chance.choice(names), chance.choice(names)) for _ in range(chance.randrange(15))]
        found = longer_promises(own, pairs)
        for name in names:
            reached = {name}
            for _ in names:
                reached |= {target for source, target in pairs if source in reached}
            longest = max(own[one] for one in reached)
            assert found[name].seconds == longest if longest > own[name] else name not in found
            assert name not in found or own[found[name].table_id] == longest
