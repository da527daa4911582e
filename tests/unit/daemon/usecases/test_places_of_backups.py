"""Where a backup may not lie: what a vacuum or a purge of a managed table would take for garbage."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.storage.credentials import NO_OPTIONS
from lakewarden.catalog.system.recovery.backup import plan_backup
from lakewarden.daemon.usecases.system_recovery import refuse_managed
from support.builders.system_samples import table_row
from support.fakes.system_store import FakeSystemStore


@pytest.mark.parametrize("place", ["hdfs://nn/w/t", "hdfs://nn/w/t/backup", "hdfs://lake/w"])
def test_a_backup_in_a_tables_folder_is_refused_whatever_it_calls_the_storage(place: str) -> None:
    store = FakeSystemStore()
    store.create([replace(table_row(1), location="hdfs://nn:8020/w/t")])
    services = SimpleNamespace(store=store)
    with pytest.raises(RefusedError, match="is, lies in or holds the folder of the managed table"):
        refuse_managed(services, place)  # type: ignore[arg-type]  # only its store is asked
    refuse_managed(services, "hdfs://nn/w/backup")  # type: ignore[arg-type]  # only its store is asked


@pytest.mark.parametrize("place", ["hdfs://nn/sys", "hdfs://nn/sys/backup", "hdfs://lake/"])
def test_nor_in_its_own_source(place: str) -> None:
    source = SimpleNamespace(location=lambda table: f"hdfs://nn:8020/sys/{table.name}")
    with pytest.raises(RefusedError, match="inside its own source"):
        plan_backup(source, place, NO_OPTIONS)  # it is asked where it is
