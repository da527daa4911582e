"""What an upsert becomes: its source, its MERGE, what may be left out, and what it refuses."""

import pytest

from lakewarden.catalog.errors import PreconditionError, UsageError
from lakewarden.jobs.sql.compile.values import ColumnType, TableSchema
from lakewarden.jobs.upsert.changes import ORDER, TIE
from lakewarden.jobs.upsert.pruning import (
    FEW,
    LONGEST,
    Ends,
    KeyFacts,
    bucket_of,
    fact_of,
    lies_close,
    pruning_of,
    ranges_of,
)
from lakewarden.jobs.upsert.statement import UpsertPlan, prepared, settled, upsert_plan
from lakewarden.jobs.upsert.target_columns import Rules
from lakewarden.jobs.upsert.upsert_options import UpsertOptions, options_of


def schema(**columns: str) -> TableSchema:
    return tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())


T = schema(id="bigint", Name="string", ts="timestamp")


def plan(
    options: UpsertOptions,
    source: TableSchema = T,
    target: TableSchema = T,
    *,
    widens: bool = False,
    facts: tuple[KeyFacts, ...] = (),
) -> UpsertPlan:
    return upsert_plan(
        options,
        source=source,
        target=target,
        rules=Rules(widens=widens),
        name="db.t",
        view="s",
        facts=facts,
    )


def test_an_upsert_is_one_merge() -> None:
    assert plan(options_of("ID"), schema(id="bigint", name="string")).statement == (
        "MERGE INTO db.t AS target USING s AS source ON target.`id` = source.`id` "
        "WHEN MATCHED THEN UPDATE SET `Name` = source.`name` "
        "WHEN NOT MATCHED THEN INSERT (`id`, `Name`) VALUES (source.`id`, source.`name`)"
    )


def test_only_a_newer_row_replaces_or_deletes() -> None:
    statement = plan(options_of("id", when="newer by ts", delete_when="name IS NULL")).statement
    newer = "(source.`ts` > target.`ts` OR (target.`ts` IS NULL AND source.`ts` IS NOT NULL))"
    assert f"WHEN MATCHED AND source.`__lakewarden_deleted` AND {newer} THEN DELETE" in statement
    assert f"WHEN MATCHED AND {newer} THEN UPDATE SET" in statement
    assert "WHEN NOT MATCHED AND NOT source.`__lakewarden_deleted` THEN INSERT" in statement


def test_a_partial_upsert_touches_its_columns_and_inserts_nothing_else() -> None:
    statement = plan(options_of("id", partial="name")).statement
    assert "UPDATE SET `Name` = source.`Name` WHEN NOT" in statement
    assert statement.endswith("INSERT (`id`, `Name`) VALUES (source.`id`, source.`Name`)")


def test_a_source_with_nothing_but_keys_updates_nothing() -> None:
    assert "WHEN MATCHED" not in plan(options_of("id"), schema(id="bigint")).statement


def test_a_null_that_matches_is_compared_as_a_value() -> None:
    facts = (KeyFacts(column="id", values=("1",), nulls=True),)
    found = plan(options_of("id", null_keys="match"), facts=facts)
    assert (
        "ON target.`id` <=> source.`id` AND ((target.`id` IN (1L)) OR target.`id` IS NULL) "
        in found.statement
    )


def test_the_last_of_several_rows_is_chosen_before_the_merge() -> None:
    query = prepared(options_of("id", duplicates="last by ts"), T, "given")
    assert "RANK() OVER (PARTITION BY `id` ORDER BY `ts` DESC NULLS LAST)" in query
    assert query.endswith("WHERE (__lakewarden_rank = 1) OR `id` IS NULL")
    assert "count(*) OVER (PARTITION BY `id`) AS __lakewarden_same" in query


def test_equal_rows_are_sorted_out_only_where_several_are_the_last() -> None:
    query = settled(options_of("id", duplicates="last by ts"), T, "kept")
    assert query is not None and query.endswith("FROM kept) WHERE (__lakewarden_copy = 1) OR `id` IS NULL")
    assert settled(options_of("id", duplicates="any"), T, "kept") is None
    assert settled(options_of("id"), T, "kept") is None


def test_what_tells_changes_apart_comes_after_their_order() -> None:
    options = options_of("id", cdc="debezium", duplicates="last by source.lsn")
    assert f"RANK() OVER (PARTITION BY `id` ORDER BY `{ORDER}` DESC NULLS LAST)" in prepared(
        options, T, "given"
    )
    query = settled(options, T, "kept") or ""
    assert f"RANK() OVER (PARTITION BY `id`, `{ORDER}` ORDER BY `{TIE}` DESC NULLS LAST)" in query
    feed = settled(options_of("id", cdc="delta", duplicates="last by ts"), T, "kept") or ""
    assert f"RANK() OVER (PARTITION BY `id`, `{ORDER}` ORDER BY `ts` DESC NULLS LAST)" in feed


def test_any_of_several_rows_is_the_smallest_whatever_the_order_of_tasks() -> None:
    source = schema(id="bigint", tags="map<string,int>")
    query = prepared(options_of("id", duplicates="any"), source, "given")
    assert "ROW_NUMBER() OVER (PARTITION BY `id` ORDER BY `id`, to_json(struct(`tags`), map(" in query


@pytest.mark.parametrize(
    ("kind", "values", "listed"),
    [
        ("bigint", ("1", "2"), "target.`k` IN (1L, 2L)"),
        (
            "bigint",
            ("1", "-200", "2"),
            "target.`k` IN (1L, -200L, 2L) AND (target.`k` = -200L OR target.`k` BETWEEN 1L AND 2L)",
        ),
        ("int", ("1",), "target.`k` IN (1)"),
        (
            "string",
            ("it's", "a\\b"),
            "target.`k` IN ('it\\'s', 'a\\\\b') AND (target.`k` = 'it\\'s' OR target.`k` = 'a\\\\b')",
        ),
        ("date", ("2026-01-31",), "target.`k` IN (DATE'2026-01-31')"),
        (
            "date",
            ("2026-01-31", "2025-01-31"),
            (
                "target.`k` IN (DATE'2026-01-31', DATE'2025-01-31') "
                "AND (target.`k` = DATE'2025-01-31' OR target.`k` = DATE'2026-01-31')"
            ),
        ),
        ("timestamp", ("1500000",), "target.`k` IN (TIMESTAMP'1970-01-01 00:00:01.500000+00:00')"),
        ("decimal(5,2)", ("1.50",), "target.`k` IN (1.50BD)"),
        ("double", ("1.5",), ""),
        ("binary", ("x",), ""),
    ],
)
def test_few_keys_are_listed_where_their_type_can_be_looked_up(
    kind: str, values: tuple[str, ...], listed: str
) -> None:
    facts = (KeyFacts(column="k", values=values),)
    assert pruning_of(facts, schema(k=kind), schema(k=kind)) == listed


def test_a_list_of_partitions_needs_no_gaps() -> None:
    facts = (KeyFacts(column="k", values=("1", "900")),)
    assert pruning_of(facts, schema(k="int"), schema(K="int"), partitions=["K"]) == "target.`k` IN (1, 900)"


@pytest.mark.parametrize(
    ("kind", "ends", "distinct", "close"),
    [
        ("bigint", ("1", "100"), 100, True),
        ("bigint", ("1", "100"), 99, False),
        ("bigint", ("1", "1000"), 801, True),
        ("bigint", ("1", "1000"), 799, False),
        ("date", ("2026-01-01", "2026-01-31"), 31, True),
        ("string", ("a", "b"), 2, False),
        ("bigint", (None, None), 0, False),
    ],
)
def test_values_that_fill_what_lies_between_their_ends_have_no_gaps_to_look_for(
    kind: str, ends: Ends, distinct: int, close: bool
) -> None:
    assert lies_close(kind, ends, distinct) is close


def test_a_key_of_another_type_than_the_targets_leaves_nothing_out() -> None:
    facts = (KeyFacts(column="k", values=("1",)),)
    assert pruning_of(facts, schema(k="string"), schema(k="bigint")) == ""
    assert pruning_of(facts, schema(k="int"), schema(k="bigint")) == "target.`k` IN (1L)"


def test_texts_are_left_out_where_the_session_reads_backslashes_otherwise() -> None:
    facts = (KeyFacts(column="k", values=("x",)),)
    assert pruning_of(facts, schema(k="string"), schema(k="string"), escapes=False) == ""


def test_long_texts_are_not_written_into_every_commit() -> None:
    long = tuple(f"{number:03}{'x' * 20_000}" for number in range(100))
    texts = (KeyFacts(column="k", values=long),)
    assert pruning_of(texts, schema(k="string"), schema(k="string")) == ""
    ends = (KeyFacts(column="k", ranges=((long[0], long[-1]),)),)
    assert pruning_of(ends, schema(k="string"), schema(k="string")) == ""
    some = (KeyFacts(column="k", values=("a", *(f"m{'x' * 2_000}{number}" for number in range(9)), "z")),)
    assert pruning_of(some, schema(k="string"), schema(k="string")) == "target.`k` BETWEEN 'a' AND 'z'"
    few = tuple("y" * (LONGEST // FEW) for _ in range(FEW))
    assert "IN (" in pruning_of((KeyFacts(column="k", values=few),), schema(k="string"), schema(k="string"))


def test_many_keys_become_ranges_with_the_widest_gaps_open() -> None:
    found = ranges_of([(0, 9), (10, 15), (1000, 1001), (1010, 1020), (5000, 5000)], most=3)
    assert found == ((0, 15), (1000, 1020), (5000, 5000))
    facts = (KeyFacts(column="id", ranges=(("0", "15"), ("1000", "1020"))),)
    assert (
        pruning_of(facts, T, T) == "(target.`id` BETWEEN 0L AND 15L OR target.`id` BETWEEN 1000L AND 1020L)"
    )


def test_buckets_of_single_values_that_are_few_are_these_values() -> None:
    found = [("7", "7"), ("10", "10")]
    assert fact_of("k", "int", ("7", "10"), found, nulls=True) == KeyFacts(
        column="k", values=("10", "7"), nulls=True
    )


def test_values_that_only_seemed_few_become_ranges() -> None:
    found = [(str(number), str(number)) for number in (*range(1, FEW + 1), 9000)]
    fact = fact_of("k", "bigint", ("1", "9000"), found, nulls=False)
    assert fact.values is None
    assert fact.ranges[-1] == ("9000", "9000")
    ranges = [range(int(str(low)), int(str(high)) + 1) for low, high in fact.ranges]
    assert all(any(int(one) in held for held in ranges) for one, _ in found)


def test_buckets_of_days_become_ranges_of_days() -> None:
    found = [("2026-01-01", "2026-01-03"), ("2026-11-22", "2026-11-22")]
    assert fact_of("k", "date", ("2026-01-01", "2026-11-22"), found, nulls=False).ranges == tuple(found)


@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        ("string", ("a", "z")),
        ("date", ("2026-01-01", "+12026-01-01")),
        ("date", ("0000-12-31", "2026-01-01")),
        ("bigint", (str(-(2**63)), str(2**63 - 1))),
    ],
)
def test_without_distances_the_smallest_and_the_largest_are_all_that_is_known(kind: str, ends: Ends) -> None:
    assert bucket_of("`k`", kind, ends) is None
    assert fact_of("k", kind, ends, None, nulls=False).ranges == (ends,)


def test_a_key_that_is_always_null_has_no_bucket_and_nothing_to_look_for() -> None:
    assert bucket_of("`k`", "int", (None, None)) is None
    assert fact_of("k", "int", (None, None), [], nulls=False).values == ()


def test_buckets_are_counted_from_the_smallest_value() -> None:
    assert bucket_of("`k`", "int", ("-10", "2037")) == "(CAST(`k` AS BIGINT) - (-10)) DIV 2"
    assert (
        bucket_of("`k`", "date", ("1970-01-02", "1970-01-03"))
        == "(CAST(unix_date(`k`) AS BIGINT) - (1)) DIV 1"
    )


def test_moments_of_the_first_years_are_written_with_four_digits() -> None:
    first = KeyFacts(column="k", values=("-62135596800000000",))
    assert pruning_of((first,), schema(k="timestamp"), schema(k="timestamp")) == (
        "target.`k` IN (TIMESTAMP'0001-01-01 00:00:00.000000+00:00')"
    )


def test_a_value_that_the_targets_type_cannot_hold_is_written_as_the_wider_one() -> None:
    facts = (KeyFacts(column="k", values=("100000",)),)
    assert pruning_of(facts, schema(k="int"), schema(k="smallint")) == "target.`k` IN (100000)"
    assert pruning_of(facts, schema(k="int"), schema(k="bigint")) == "target.`k` IN (100000L)"


def test_gaps_narrower_than_a_bucket_leave_nothing_out() -> None:
    assert ranges_of([(number * 10, number * 10 + 8) for number in range(2000)]) == ((0, 19_998),)


def test_a_moment_that_cannot_be_written_leaves_nothing_out() -> None:
    facts = (KeyFacts(column="k", ranges=(("0", str(2**60)),)),)
    assert pruning_of(facts, schema(k="timestamp"), schema(k="timestamp")) == ""


def test_a_source_without_rows_has_nothing_to_look_for() -> None:
    assert pruning_of((KeyFacts(column="id", values=()),), T, T) == "FALSE"


@pytest.mark.parametrize(
    ("options", "source", "said"),
    [
        (options_of("nr"), T, "The source has no column nr"),
        (options_of("id", when="newer by at"), T, "The source has no column at"),
        (options_of("id", partial="other"), T, "The source has no column other"),
        (options_of("k"), schema(k="int"), "The target has no column k"),
        (options_of("id"), schema(id="bigint", ID="int"), "differ in nothing but case"),
    ],
)
def test_columns_that_are_not_there_are_named(options: UpsertOptions, source: TableSchema, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plan(options, source)


def test_drift_is_refused_added_or_widened_as_it_was_agreed() -> None:
    drifted = schema(id="bigint", name="string", extra="int")
    with pytest.raises(PreconditionError, match="The target has no column extra"):
        plan(options_of("id"), drifted)
    added = plan(options_of("id", drift="add"), drifted)
    assert added.columns.added == ("extra",) and added.statement.startswith("MERGE WITH SCHEMA EVOLUTION")
    narrow = schema(id="bigint", name="int")
    wide = schema(id="bigint", name="bigint")
    with pytest.raises(PreconditionError, match="bigint in the source, and int in the target"):
        plan(options_of("id", drift="add"), wide, narrow)
    with pytest.raises(PreconditionError, match="does not let its types be widened"):
        plan(options_of("id", drift="widen"), wide, narrow)
    assert plan(options_of("id", drift="widen"), wide, narrow, widens=True).columns.widened == ("name",)
    with pytest.raises(PreconditionError, match="Cast|string in the source"):
        plan(options_of("id", drift="widen"), schema(id="bigint", name="string"), narrow, widens=True)
    assert not plan(options_of("id"), narrow, wide).columns.evolves


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": []},
        {"keys": ["a", "A"]},
        {"keys": "id", "when": "ts"},
        {"keys": "id", "duplicates": "first"},
        {"keys": "id", "null_keys": "never"},
        {"keys": "id", "drift": "replace"},
    ],
    ids=str,
)
def test_options_that_say_nothing_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        options_of(**wrong)


@pytest.mark.parametrize(
    "fact",
    [
        KeyFacts(column="name", values=("caf\ufffd", "tea")),
        KeyFacts(column="name", ranges=(("a", "caf\ufffd"),)),
    ],
)
def test_texts_that_python_cannot_hold_leave_nothing_out(fact: KeyFacts) -> None:
    """A text of Latin-1 bytes: asked for as Python has it, its own row would be left out."""
    assert pruning_of([fact], schema(name="string"), schema(name="string")) == ""
