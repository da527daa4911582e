"""One table of a list that ends in what nobody foresaw is refused alone; all others are registered."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.system.port import AUDIT
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.onboarding.lists import Kind, Listed, read_list
from lakewarden.daemon.usecases.onboarding.registrations import register_listed
from support.builders.callers import actor


class Odd(DeltaReader):
    """A reader with a bug that one table brings to light."""

    def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
        if location.endswith("/t3"):
            raise ZeroDivisionError("division by zero")
        return super().observe(location, since=since)


@pytest.fixture
def services(tmp_path: Path) -> Services:
    made = Services(load_settings(home=tmp_path / "home", environment={}))
    initialise(made, made.user)
    made.__dict__["readers"] = (Odd(),)
    return made


def test_what_is_no_text_has_its_entry_in_the_audit_like_all_others(
    services: Services, tmp_path: Path
) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}))
    places = [str(tmp_path / "t"), f"{tmp_path}/lat\udce9", f"{tmp_path}/half\ud800"]
    listed = [Listed(where=place, asked=WantedTable(where=place)) for place in places]
    outcomes = register_listed(services, actor("ana"), listed, tell=print)
    assert [isinstance(one.came, LakewardenError) for one in outcomes] == [False, True, True]
    assert {row.on: row.allowed for row in services.store.rows(AUDIT).all()} == {
        f"{tmp_path}/t": True,
        f"{tmp_path}/lat\\udce9": False,
        f"{tmp_path}/half\\ud800": False,
    }


def test_what_nobody_foresaw_stops_no_other_table(services: Services, tmp_path: Path) -> None:
    for number in range(6):
        write_deltalake(str(tmp_path / f"t{number}"), pa.table({"id": [1]}))
    caller: Caller = actor("ana")
    said = list[str]()
    listed = read_list("".join(f"{tmp_path}/t{number}\n" for number in range(6)), Kind.PATHS)
    outcomes = register_listed(services, caller, listed, tell=said.append)
    refused = [one for one in outcomes if isinstance(one.came, LakewardenError)]
    assert [one.listed.where for one in refused] == [f"{tmp_path}/t3"]
    assert "ZeroDivisionError: division by zero" in str(refused[0].came)
    assert said == []
    entries = services.store.rows(AUDIT).all()
    assert Counter(row.allowed for row in entries) == {True: 5, False: 1}
