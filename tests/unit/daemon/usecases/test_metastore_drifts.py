"""How the metastore differs from the whole fleet, whatever one entry says."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.registry.register import register
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.metastore import drifts
from support.builders.callers import actor
from support.builders.entries import enlist
from support.builders.runs import delta_table
from support.fakes.metastore import FakeMetastore


@pytest.mark.parametrize("place", ["cosn://bucket/green", "oss://bucket/green"])
def test_an_entry_pointed_at_what_nobody_can_ask_keeps_no_other_table_from_being_told_of(
    tmp_path: Path, place: str
) -> None:
    services = open_services(home=tmp_path / "home")
    initialise(services, services.user)
    metastore = FakeMetastore()
    services.__dict__["metastore"] = metastore
    for name in ("a", "b"):
        delta_table(tmp_path / name, commits=1)
        row = register(services.registry, str(tmp_path / name), actor=actor("ana"), name=f"db.{name}").row
        location = row.location or ""
        seen = services.registry.reader_at(location).observe(location)
        assert isinstance(seen, Observation)
        enlist(metastore, seen, database="db", table=name, table_id=row.table_id, location=location)
    first, second = metastore.get("db", "a"), metastore.get("db", "b")
    assert first is not None and second is not None
    metastore.replace(replace(first, location=place), expected=first)
    metastore.replace(replace(second, columns=()), expected=second)
    told = {one.name: one for one in drifts(services, None)}
    assert (told["db.a"].aspect, told["db.b"].aspect) == ("obstacle", "columns")
    assert f"was pointed at another table, at {place}" in told["db.a"].message
