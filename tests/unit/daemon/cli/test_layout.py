"""Which columns a terminal has room for, and which may wrap."""

from lakewarden.daemon.cli.layout import Shown, fitting, wraps

LONG = "The commit of version 1 is missing from the log, later ones are there."
TABLES = Shown(
    columns=("row", "name", "state", "stopped", "version", "owner", "findings"),
    rows=(
        ("1", "db.events", "active", "", "12", "ana", ""),
        ("2", "db.a_name_that_is_longer_than_most_of_them", "quarantined", "", "3", "bo", LONG),
    ),
)


def test_where_there_is_room_all_columns_are_shown() -> None:
    assert fitting(TABLES, 200) == TABLES.columns


def test_an_empty_column_goes_first_then_those_named_later() -> None:
    assert fitting(TABLES, 94) == ("row", "name", "state", "version", "owner", "findings")
    assert fitting(TABLES, 85) == ("row", "name", "state", "version", "findings")
    assert fitting(TABLES, 78) == ("row", "name", "state", "findings")


def test_the_first_and_the_last_column_always_stay() -> None:
    assert fitting(TABLES, 1) == ("row", "findings")


def test_texts_and_long_names_wrap_and_short_words_do_not() -> None:
    assert [name for name in TABLES.columns if wraps(name, TABLES)] == ["name", "findings"]
