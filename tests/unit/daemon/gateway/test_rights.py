"""What a caller may have Spark do."""

from pathlib import Path

import pytest

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.daemon.gateway.rights import Reach, reach_of, require_conversion, require_reach
from lakewarden.daemon.settings.settings import load_settings
from support.builders.callers import actor


@pytest.mark.parametrize(
    ("name", "readers", "reach"),
    [
        ("own", "", Reach.EVERYTHING),
        ("root", "", Reach.EVERYTHING),
        ("wanda", "*", Reach.EVERYTHING),
        ("rita", "rita", Reach.TABLES),
        ("bo", "*", Reach.TABLES),
        ("bo", "rita", Reach.NOTHING),
    ],
)
def test_spark_is_for_those_who_are_named(tmp_path: Path, name: str, readers: str, reach: Reach) -> None:
    flags = {"gateway.readers": readers, "gateway.writers": "wanda"}
    settings = load_settings(home=tmp_path, flags=flags, environment={})
    assert reach_of(actor(name, admin=name == "root"), settings, "own") is reach


@pytest.mark.parametrize("reach", list(Reach))
@pytest.mark.parametrize("vacuums", [True, False])
def test_tables_are_vacuumed_by_those_who_may_do_everything(reach: Reach, vacuums: bool) -> None:
    if reach is Reach.EVERYTHING or (reach is Reach.TABLES and not vacuums):
        require_reach(actor("bo"), reach, vacuums=vacuums)
    else:
        with pytest.raises(NotAllowedError, match="bo may not"):
            require_reach(actor("bo"), reach, vacuums=vacuums)


@pytest.mark.parametrize("reach", list(Reach))
def test_folders_are_converted_by_those_who_may_do_everything(reach: Reach) -> None:
    if reach is Reach.EVERYTHING:
        require_conversion(actor("bo"), reach)
    else:
        with pytest.raises(NotAllowedError, match="bo may not convert"):
            require_conversion(actor("bo"), reach)
