"""What changes say: rows, deletions, their order."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.values import ColumnType, TableSchema
from lakewarden.jobs.upsert.changes import GONE, ORDER, TIE, Cdc, change_rows, is_ours
from lakewarden.jobs.upsert.target_columns import Rules, columns_of
from lakewarden.jobs.upsert.upsert_options import Duplicates, DuplicatesRule, options_of


def schema(*names: str) -> TableSchema:
    return tuple(ColumnType(name=name, type="string") for name in names)


def test_a_code_says_what_became_of_its_row() -> None:
    rows = change_rows(Cdc.OP, schema("id", "v", "Action"), "action")
    assert rows.columns[:2] == ("`id`", "`v`")
    assert rows.columns[2].startswith("CASE WHEN lower(`Action`) IN ('d', 'delete', 'deleted') THEN TRUE")
    assert rows.columns[2].endswith(f"AS {GONE}")


def test_an_envelope_has_the_row_after_or_before() -> None:
    rows = change_rows(Cdc.DEBEZIUM, schema("before", "after", "op", "ts_ms", "source"), "op", keys=("k",))
    assert "`before`.`k` <=> `after`.`k`" in rows.columns[0] and rows.columns[1] == f"`ts_ms` AS {ORDER}"
    assert "`op` IS NOT NULL" in rows.where


def test_an_envelope_is_asked_by_its_own_names() -> None:
    rows = change_rows(Cdc.DEBEZIUM, schema("BEFORE", "After", "OP", "Ts_Ms"), "op", keys=("K",))
    assert "`BEFORE`.`K` <=> `After`.`K`" in rows.columns[0] and rows.columns[1] == f"`Ts_Ms` AS {ORDER}"
    assert "`OP` IS NOT NULL" in rows.where


def test_what_orders_changes_of_one_moment_is_told_beside_the_row() -> None:
    envelope = schema("before", "after", "op", "ts_ms", "source")
    beside = change_rows(Cdc.DEBEZIUM, envelope, "op", tie="`source`.`lsn`")
    assert beside.columns[-1] == f"`source`.`lsn` AS {TIE}" and beside.unfolded[-1] == TIE
    inside = change_rows(Cdc.DEBEZIUM, envelope, "op", tie="`seq`", tie_in_row=True)
    assert inside.columns[-1] == f"`ts_ms` AS {ORDER}" and inside.unfolded[-1].endswith(f".`seq` AS {TIE}")


@pytest.mark.parametrize(
    ("settles_order", "where"), [(True, "TRUE"), (False, "_change_type <> 'update_preimage'")]
)
def test_what_a_row_was_before_is_a_deletion_where_the_last_change_counts(
    settles_order: bool, where: str
) -> None:
    feed = schema("id", "_change_type", "_commit_version", "_commit_timestamp")
    rows = change_rows(Cdc.DELTA, feed, "op", settles_order=settles_order)
    assert rows.where == where and rows.columns[0] == "`id`"
    assert rows.columns[1] == f"_change_type IN ('delete', 'update_preimage') AS {GONE}"


@pytest.mark.parametrize(
    ("cdc", "lacks"), [(Cdc.OP, "op"), (Cdc.DEBEZIUM, "before"), (Cdc.DELTA, "_change_type")]
)
def test_a_source_of_another_kind_is_refused(cdc: Cdc, lacks: str) -> None:
    with pytest.raises(UsageError, match=f"needs a column {lacks}"):
        change_rows(cdc, schema("id", "payload"), "op")


def test_the_last_of_several_ordered_changes_counts_unless_something_else_is_said() -> None:
    last = Duplicates(rule=DuplicatesRule.LAST, by=ORDER)
    assert options_of("id", cdc="debezium").duplicates == last == options_of("id", cdc="delta").duplicates
    assert options_of("id", cdc="op").duplicates == Duplicates()
    assert options_of("id", cdc="delta", duplicates="any").duplicates.rule is DuplicatesRule.ANY


def test_what_says_something_of_a_row_is_not_stored() -> None:
    options = options_of("id", cdc="delta", delete_when="v = 'x'")
    assert options.delete_when == f"{GONE} OR (\nv = 'x'\n)"
    columns = columns_of(options, schema("id", "v", GONE, ORDER), schema("id", "v"), Rules())
    assert columns.inserted == ("id", "v") and is_ours(GONE)
