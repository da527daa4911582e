"""Addresses, statements and literals of the gateway's clients."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.client.address import Address, address_of
from lakewarden.daemon.client.literals import literal
from lakewarden.daemon.client.script import split


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("hive+http://lake", Address(host="lake")),
        (
            "hive+https://a%40b:t@[::1]:99/db?authority=/c.pem&x=y",
            Address(
                host="::1", port=99, user="a@b", token="t", database="db", tls=True, authority="/c.pem",
                settings={"x": "y"},
            ),
        ),
        ("hive+http://ana@lake:1/", Address(host="lake", port=1, user="ana", token="from outside")),
    ],
)  # fmt: skip
def test_an_address_says_where_who_and_how(text: str, address: Address) -> None:
    assert address_of(text, address.token) == address


@pytest.mark.parametrize("text", ["", "lake:10001", "http://lake", "hive+http://", "hive+http://lake:port"])
def test_what_is_no_address_is_said_to_be(text: str) -> None:
    with pytest.raises(UsageError):
        address_of(text)


def test_an_address_shows_no_token() -> None:
    assert "hush" not in repr(address_of("hive+http://ana:hush@lake"))


def test_statements_end_at_semicolons_that_are_none_of_a_text_or_a_comment() -> None:
    text = "SELECT ';' AS `a;b` -- no; end\n; /* ; */ SELECT 2;;\n"
    assert list(split(text)) == ["SELECT ';' AS `a;b` -- no; end", "/* ; */ SELECT 2"]
    with pytest.raises(UsageError, match="cannot be read"):
        list(split("SELECT 'open"))


@given(st.text())
def test_a_text_is_one_literal_whatever_is_in_it(text: str) -> None:
    tree = sqlglot.parse_one(f"SELECT {literal(text)}", dialect="spark")
    (found,) = tree.expressions
    assert isinstance(found, exp.Literal)
    assert found.this == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (np.int64(-3), "-3"),
        (np.float64(0.5), "0.5D"),
        (float("nan"), "CAST('nan' AS DOUBLE)"),
        (Decimal("-12.50"), "CAST('-12.50' AS DECIMAL(4, 2))"),
        (Decimal("1E+3"), "CAST('1000' AS DECIMAL(4, 0))"),
        (Decimal("0.001"), "CAST('0.001' AS DECIMAL(3, 3))"),
        (b"\x00'", "X'0027'"),
        (date(2020, 1, 2), "DATE '2020-01-02'"),
        (datetime.fromisoformat("2020-01-02T03:04:05.000006"), "TIMESTAMP '2020-01-02 03:04:05.000006'"),
        (datetime.fromisoformat("2020-01-02T03:04:05+02:00"), "TIMESTAMP '2020-01-02 03:04:05+02:00'"),
    ],
)
def test_values_are_sparks_literals(value: object, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize("value", [object(), [1], Decimal("NaN")])
def test_a_value_without_a_literal_is_an_error(value: object) -> None:
    with pytest.raises(UsageError):
        literal(value)
