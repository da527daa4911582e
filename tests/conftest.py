"""Fixtures every suite shares: the real servers and the one Spark session. Each starts when first asked for."""

import gc
import logging
import os
import platform
import signal
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog
from hypothesis import settings
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import UnavailableError
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import forget_tables
from support.distribution import flaky_tests, in_order, leave_few, start_quickly
from support.reference.faults import Faults
from support.reference.rights import Rights
from support.servers.class_archive import COMPILED
from support.servers.hdfs import Hdfs, running_hdfs
from support.servers.jars import hdfs_jars, notification_jars
from support.servers.mariadb import MariadbServer, running_mariadb
from support.servers.postgres import PostgresServer, running_postgres
from support.servers.s3 import S3Server, running_s3
from support.servers.spark import set_to, start_spark

# A suite holds much and makes few cycles: at Python's own pace an eighth of the time goes into looking for them.
gc.set_threshold(50_000, 20, 100)

# The machine is shared: time says nothing about an example. In CI the same examples each time.
settings.register_profile("suite", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("suite")

# A shell makes what it starts in the background deaf to Ctrl-C, and so would be all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `make docs` prints docs/reference/faults.md and rights.md from is `faults.json` and `rights.json` in
    `tests/support/reference`."""
    parser.addoption("--faults", type=Path, metavar="FILE", help="keep here what played faults came to")
    parser.addoption(
        "--rights", type=Path, metavar="FILE", help="keep here what a driver asked Kubernetes for"
    )
    parser.addoption("--quick-jvms", action="store_true", help="start JVMs quickly, not as the product does")


def pytest_configure(config: pytest.Config) -> None:
    """The processes of pytest-xdist have the environment of the one that starts them."""
    if config.getoption("quick_jvms") and not hasattr(config, "workerinput"):
        start_quickly()


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is not asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say in which order files begin and what is long, and tell pytest-rerunfailures what may be run a second time."""
    leave_few(items)
    known = flaky_tests()
    items[:] = in_order(items)
    for item in items:
        if item.nodeid in known:
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """pytest-xdist sends what a test printed as UTF-8, which odd names in tests are not."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """A command sets up logging for its process, which here is everybody's."""
    root, thrift = logging.getLogger(), logging.getLogger("thrift")
    handlers, levels = list(root.handlers), (root.level, thrift.level)
    yield
    structlog.reset_defaults()
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    thrift.setLevel(levels[1])


@pytest.fixture(autouse=True, scope="module")
def spark_lets_go() -> Iterator[None]:
    """Spark keeps each table's log for an hour, and Python what it held of Spark until it looks for cycles: after some
    files a shared session would do little but collect garbage."""
    yield
    context = SparkContext._active_spark_context
    if context is not None:
        with suppress(UnavailableError):  # a test may have killed it
            forget_tables(context)


@pytest.fixture(scope="session")
def faults(pytestconfig: pytest.Config) -> Faults:
    """Takes down faults that tests play, for the docs."""
    return Faults(pytestconfig.getoption("--faults"))


@pytest.fixture(scope="session")
def rights(pytestconfig: pytest.Config) -> Rights:
    """Takes down what was asked of Kubernetes, for the docs."""
    return Rights(pytestconfig.getoption("--rights"))


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedMetastore]:
    """A Hive metastore 2.3.10 that records notifications. Shared: use databases of your own."""
    folder = tmp_path_factory.mktemp("metastore")
    with EmbeddedMetastore(folder, extra_jars=notification_jars()) as server:
        yield server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, metastore: EmbeddedMetastore) -> Iterator[SparkSession]:
    """Spark with Delta and the metastore. Shared: leave its settings as you found them, use tables of your own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HADOOP_CONF_DIR", raising=False)  # else a path without a scheme would be one of HDFS
        session = start_spark(metastore.warehouse, metastore.uri)
    yield session
    session.stop()


@pytest.fixture
def compiled_queries(spark: SparkSession) -> Iterator[None]:
    """The shared session plans and compiles queries as the product's does, also where `make test` interprets them."""
    with set_to(spark, COMPILED):
        yield


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """HDFS with one data node."""
    with running_hdfs(tmp_path_factory.mktemp("hdfs"), hdfs_jars()) as server:
        yield server


@pytest.fixture(scope="module")
def hdfs(hdfs_server: Hdfs) -> Iterator[Hdfs]:
    """HDFS with one data node. HADOOP_CONF_DIR names its settings, as delta-rs wants it. Shared:
    use your own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HADOOP_CONF_DIR", str(hdfs_server.conf))
        yield hdfs_server


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server with one bucket. Shared: use your own prefix."""
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> str:
    """SQLAlchemy's URL of a database that is empty and this test's own."""
    return postgres.fresh_url()


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """A MariaDB server."""
    if platform.machine() != "x86_64":
        pytest.skip("MariaDB's binaries on Maven Central are for x86-64 alone.")
    with running_mariadb() as server:
        yield server
