"""Tables of cases of which every run has some, and the long run all."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest

__all__ = ["mostly_long"]


def mostly_long(cases: Iterable[Any], every_run: Collection[Any]) -> list[Any]:
    """Parameters for `parametrize`: what is not in `every_run` has the marker `long`; a tuple is several parameters.

    Raises `ValueError` for something in `every_run` that is no case.
    """
    listed = list(cases)
    if unknown := [one for one in every_run if one not in listed]:
        raise ValueError(f"no such cases: {unknown}")
    return [one if one in every_run else _long(one) for one in listed]


def _long(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.long)
