"""What a pattern of paths or names means: folders, one level for each `*`, and tables of the metastore."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.registry.discovery import under_root
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.onboarding.patterns import found_at, is_pattern
from support.fakes.metastore import FakeMetastore


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return Services(load_settings(home=tmp_path / "home", environment={}))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name in ("a/events", "a/sales", "b/events", "b/_tmp", "b/.hidden", "odd [1]"):
        (tmp_path / "lake" / name).mkdir(parents=True)
    (tmp_path / "lake" / "a" / "notes.txt").write_text("no folder")
    return tmp_path / "lake"


def means(services: Services, pattern: str) -> list[str]:
    return [one.where for one in found_at(services, pattern, owner=None, tell=print)]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*/events", ["a/events", "b/events"]),
        ("a/*", ["a/events", "a/sales"]),
        ("[ab]/s*", ["a/sales"]),
        ("b/*", ["b/events"]),
        ("b/_*", ["b/_tmp"]),
        ("?/events/", ["a/events", "b/events"]),
    ],
)
def test_a_pattern_of_paths_means_the_folders_that_are_there(
    services: Services, lake: Path, pattern: str, found: list[str]
) -> None:
    assert means(services, f"{lake}/{pattern}") == [str(lake / one) for one in found]
    assert means(services, f"file://{lake}/{pattern}") == [str(lake / one) for one in found]


def test_a_pattern_may_begin_where_one_stands(
    services: Services, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake)
    assert means(services, "./*/sales") == [str(lake / "a" / "sales")]


def test_a_folder_that_has_such_a_name_is_itself(services: Services, lake: Path) -> None:
    for spelling in (f"{lake}/odd [1]", f"file://{lake}/odd [1]", f"file:{lake}/odd%20[1]"):
        assert not is_pattern(services, spelling)
        assert means(services, spelling) == [spelling]
    assert not is_pattern(services, "db.t") and is_pattern(services, "db.*")


def test_what_a_uri_spells_with_a_percent_sign_is_a_character_of_the_name(
    services: Services, lake: Path
) -> None:
    assert means(services, f"file://{lake}/o*%20%5B1%5D") == [str(lake / "odd [1]")]
    assert means(services, f"{lake}/odd [[]*") == [str(lake / "odd [1]")]
    (lake / "100%20" / "x").mkdir(parents=True)
    assert means(services, f"file://{lake}/100%2520/*") == [str(lake / "100%20" / "x")]
    assert means(services, f"{lake}/100%20/*") == [str(lake / "100%20" / "x")]


def test_what_matches_nothing_is_refused(services: Services, lake: Path) -> None:
    [one] = found_at(services, f"{lake}/x*", owner=None, tell=print)
    assert isinstance(one.asked, LakewardenError) and "Nothing matches" in str(one.asked)
    [one] = found_at(services, "db.*", owner=None, tell=print)
    assert isinstance(one.asked, LakewardenError) and "no metastore" in str(one.asked)


def test_a_folder_whose_name_is_no_text_refuses_itself_alone(services: Services, lake: Path) -> None:
    os.mkdir(os.fsencode(lake) + b"/b/lat\xe9")
    odd, fine = sorted(
        found_at(services, f"{lake}/b/*", owner=None, tell=print), key=lambda one: -len(one.where)
    )
    assert odd.where == f"{lake}/b/lat\\udce9" and "is not UTF-8" in str(odd.asked)
    assert isinstance(fine.asked, WantedTable) and fine.where == f"{lake}/b/events"
    [odd] = found_at(services, f"{lake}/[b]/lat\udce9", owner=None, tell=print)
    assert "is not UTF-8" in str(odd.asked)


def entered(metastore: FakeMetastore, name: str, **changes: Any) -> None:
    database, _, table = name.partition(".")
    values = {"location": None, "provider": "delta", "table_type": "EXTERNAL_TABLE", **changes}
    metastore.create(Entry(database=database, table=table, **values))


@pytest.fixture
def metastore(services: Services, lake: Path) -> Iterator[FakeMetastore]:
    made = FakeMetastore()
    for database in ("sales", "web"):
        made.create_database(database)
    for name in ("sales.orders", "sales.items", "web.events"):
        place = str(lake / name)
        write_deltalake(place, pa.table({"id": [1]}))
        entered(made, name, location=place)
    entered(made, "sales.view", table_type="VIRTUAL_VIEW", provider=None)
    entered(made, "sales.raw", location=str(lake / "a"), provider="parquet")
    services.__dict__["metastore"] = made
    yield made


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("sales.*", ["sales.items", "sales.orders"]),
        ("Sales.O*", ["sales.orders"]),
        ("*.*", ["sales.items", "sales.orders", "web.events"]),
    ],
)
def test_a_pattern_of_names_means_tables_of_the_metastore_that_a_reader_knows(
    services: Services, metastore: FakeMetastore, pattern: str, found: list[str]
) -> None:
    listed = found_at(services, pattern, owner="ana", tell=print)
    assert [one.asked for one in listed] == [WantedTable(where=name, owner="ana") for name in found]


def test_a_table_that_cannot_be_asked_is_left_to_its_registration(
    services: Services, metastore: FakeMetastore, lake: Path
) -> None:
    class Away(DeltaReader):
        def is_table(self, location: str) -> bool:
            if location.endswith("/sales.items"):
                raise UnavailableError("The storage does not answer.")
            return super().is_table(location)

    services.__dict__["readers"] = (Away(),)
    listed = found_at(services, "sales.*", owner=None, tell=print)
    assert [one.where for one in listed] == ["sales.items", "sales.orders"]


def test_a_link_to_itself_stops_no_search(services: Services, lake: Path) -> None:
    (lake / "loop").symlink_to(lake / "loop")
    for one in ("a", "b"):
        (lake / one / "round").symlink_to(lake / one / "round")
    assert means(services, f"{lake}/*/events") == [str(lake / one / "events") for one in ("a", "b")]
    found = under_root(str(lake), services.storage(str(lake)), services.readers, frozenset())
    assert [one for one in found if one is not None] == []


def test_a_folder_that_cannot_be_listed_stops_no_search(
    services: Services, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def closed(path: str) -> object:
        if str(path) == str(lake / "a"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    assert means(services, f"{lake}/*/events") == [str(lake / "a"), str(lake / "b" / "events")]
    found = under_root(str(lake), services.storage(str(lake)), services.readers, frozenset())
    assert [one.where for one in found if one is not None] == [f"file://{lake}/a"]
