"""What a caller may have Spark do."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.daemon.gateway.access.rights import (
    AccessLevel,
    reach_of,
    require_conversion,
    require_reach,
    require_vacuum,
)
from lakewarden.daemon.settings.settings import load_settings
from support.builders.callers import actor


@pytest.mark.parametrize(
    ("name", "readers", "reach"),
    [
        ("own", "", AccessLevel.EVERYTHING),
        ("root", "", AccessLevel.EVERYTHING),
        ("wanda", "*", AccessLevel.SQL),
        ("rita", "rita", AccessLevel.TABLES),
        ("bo", "*", AccessLevel.TABLES),
        ("bo", "rita", AccessLevel.NOTHING),
    ],
)
def test_spark_is_for_those_who_are_named(
    tmp_path: Path, name: str, readers: str, reach: AccessLevel
) -> None:
    flags = {"gateway.readers": readers, "gateway.writers": "wanda"}
    settings = load_settings(home=tmp_path, flags=flags, environment={})
    assert reach_of(actor(name, admin=name == "root"), settings, "own") is reach


def test_writers_are_admins_in_effect_where_that_is_wanted_alone(tmp_path: Path) -> None:
    flags = {"gateway.writers": "wanda", "gateway.writers_may": "programs"}
    settings = load_settings(home=tmp_path, flags=flags, environment={})
    assert reach_of(actor("wanda"), settings, "own") is AccessLevel.EVERYTHING


@pytest.mark.parametrize(
    ("reach", "sends", "names", "paths"),
    [
        (AccessLevel.NOTHING, False, False, False),
        (AccessLevel.TABLES, True, False, False),
        (AccessLevel.SQL, True, True, False),
        (AccessLevel.EVERYTHING, True, True, True),
    ],
)
def test_who_may_send_convert_and_vacuum_what(
    reach: AccessLevel, sends: bool, names: bool, paths: bool
) -> None:
    bo = actor("bo")
    assert allowed(lambda: require_reach(bo, reach)) is sends
    for where, may in (("db.t", names), ("/lake/t", paths), ("s3://lake/t", paths)):
        assert allowed(lambda: require_vacuum(bo, reach, where)) is may  # noqa: B023  # called at once
        assert allowed(lambda: require_conversion(bo, reach, where)) is may  # noqa: B023


def allowed(ask: Callable[[], None]) -> bool:
    try:
        ask()
    except NotAllowedError as error:
        assert str(error).startswith("bo may not") and error.hint
        return False
    return True
