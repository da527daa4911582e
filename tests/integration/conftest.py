"""Installations that several integration tests begin with."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.session.attached import Attached
from support.builders.estate import Estate, made_estate
from support.builders.iceberg_shop import Shop, shop_with_bad_load
from support.builders.spark_iceberg import Make, SparkIceberg, iceberg_catalogs
from support.processes.commands import Cli, caller
from support.processes.house import House
from support.processes.sparkless import sparkless
from support.servers.faults import FaultyProxy, running_proxy
from support.servers.metastores import without_system_tables
from support.servers.s3 import S3Server


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A home whose daemons are processes of their own."""
    one = House(tmp_path)
    yield one
    one.end()


@pytest.fixture
def estate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Estate:
    """A home with its commands, and what workers are made of."""
    return made_estate(tmp_path, monkeypatch, capfdbinary)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Commands on a home whose workers need no Spark."""
    made = sparkless(tmp_path / "home", monkeypatch, capfdbinary)
    assert made("init").code == 0
    return made


@pytest.fixture
def metastore_cli(
    tmp_path: Path,
    metastore: EmbeddedMetastore,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Cli:
    """Commands on a home with a metastore that knows no system tables yet."""
    monkeypatch.setenv("LAKEWARDEN_METASTORE_URI", without_system_tables(metastore.uri))
    called = caller(tmp_path / "home", monkeypatch, capfdbinary)
    called("init")
    return called


@pytest.fixture(scope="module")
def store(metastore: EmbeddedMetastore) -> Iterator[HiveMetastore]:
    """A client of the metastore."""
    connected = HiveMetastore(metastore.uri)
    yield connected
    connected.close()


@pytest.fixture(scope="module")
def proxy(s3: S3Server) -> Iterator[FaultyProxy]:
    """What a module reaches the S3 server through."""
    with running_proxy(s3.endpoint) as running:
        yield running


@pytest.fixture(scope="module")
def make(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Make]:
    """Makes Iceberg tables in catalogs of the module's own."""
    with iceberg_catalogs(spark, metastore.uri, tmp_path_factory.mktemp("iceberg")):
        yield lambda catalog, **how: SparkIceberg(spark, metastore.uri, catalog, **how)


@pytest.fixture
def sessions() -> Iterator[ExitStack]:
    """Detaches, at the end, the sessions that are entered into it."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def lw(
    spark: SparkSession, metastore: EmbeddedMetastore, metastore_cli: Cli, tmp_path: Path
) -> Iterator[Attached]:
    """A session that is attached to the home of `metastore_cli`."""
    with lakewarden.attach(spark, home=tmp_path / "home", settings={"metastore.uri": metastore.uri}) as made:
        yield made


@pytest.fixture
def shop(
    spark: SparkSession, metastore: EmbeddedMetastore, metastore_cli: Cli, tmp_path: Path
) -> Iterator[Shop]:
    """An Iceberg table and a Delta table made from it, after a bad load."""
    with shop_with_bad_load(spark, metastore.uri, metastore_cli, tmp_path / "home") as made:
        yield made
