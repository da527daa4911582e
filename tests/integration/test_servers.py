"""The real servers the suites stand on, each used once for what it is for."""

import socket
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pymetastore.hive_metastore.ttypes import NotificationEventRequest
from pymetastore.metastore import HMS
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import PreconditionError
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from support.servers.hdfs import Hdfs
from support.servers.postgres import PostgresServer

THREE = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.mark.metastore
def test_the_metastore_lists_its_databases(metastore: EmbeddedMetastore) -> None:
    with HMS.create("127.0.0.1", metastore.port) as client:
        assert "default" in client.list_databases()


@pytest.mark.metastore
@pytest.mark.spark
def test_a_table_made_by_spark_is_in_the_metastore_with_its_notifications(
    spark: SparkSession, metastore: EmbeddedMetastore
) -> None:
    spark.sql("CREATE DATABASE servers")
    spark.sql("CREATE TABLE servers.flights (id BIGINT) USING delta")
    spark.sql("INSERT INTO servers.flights VALUES (1), (2)")
    with HMS.create("127.0.0.1", metastore.port) as client:
        assert client.list_tables("servers") == ["flights"]
        told = client.client.get_next_notification(NotificationEventRequest(lastEvent=0))
    assert {"CREATE_DATABASE", "CREATE_TABLE"} <= {event.eventType for event in told.events}


@pytest.mark.long
@pytest.mark.metastore
def test_a_killed_metastore_starts_again_with_its_data_and_without_manners(tmp_path: Path) -> None:
    with EmbeddedMetastore(tmp_path) as first:
        with HMS.create("127.0.0.1", first.port) as client:
            before = client.list_databases()
        first.kill()
        assert (tmp_path / "derby" / "db.lck").exists(), "a crash leaves Derby's lock behind"
    with (
        EmbeddedMetastore(tmp_path, port=first.port) as second,
        HMS.create("127.0.0.1", second.port) as client,
    ):
        assert client.list_databases() == before


@pytest.mark.metastore
def test_a_metastore_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-m", "lakewarden.daemon.process.embedded_metastore", tmp_path, "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout is not None
    assert starter.stdout.readline().startswith("thrift://127.0.0.1:")
    servers = psutil.Process(starter.pid).children(recursive=True)
    assert any("java" in server.name() for server in servers)
    starter.kill()
    starter.wait()
    starter.stdout.close()
    _, alive = psutil.wait_procs(servers, timeout=15)
    assert alive == []


def test_a_taken_port_gets_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PreconditionError, match=f"Port {port} is in use"):
            EmbeddedMetastore(tmp_path, port=port).start()


@pytest.mark.long
@pytest.mark.hdfs
def test_delta_rs_writes_to_hdfs_and_reads_it_back(hdfs: Hdfs) -> None:
    location = f"{hdfs.uri}/servers/delta_rs"
    write_deltalake(location, THREE)
    write_deltalake(location, THREE, mode="append")
    table = DeltaTable(location)
    assert (table.version(), table.to_pyarrow_table().num_rows) == (1, 6)


@pytest.mark.long
@pytest.mark.hdfs
@pytest.mark.spark
def test_spark_reads_from_hdfs_what_delta_rs_wrote_and_back(spark: SparkSession, hdfs: Hdfs) -> None:
    location = f"{hdfs.uri}/servers/both"
    write_deltalake(location, THREE)
    assert spark.read.format("delta").load(location).count() == 3
    spark.range(10, 14).write.format("delta").mode("append").save(location)
    assert DeltaTable(location).to_pyarrow_table().num_rows == 7


@pytest.mark.postgres
def test_postgres_keeps_rows_and_each_test_gets_its_own_database(
    postgres: PostgresServer, postgres_url: str
) -> None:
    mine = postgres_url.replace("+psycopg", "")
    with psycopg.connect(mine) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 3) AS id")
    with psycopg.connect(mine) as connection:
        assert connection.execute("SELECT sum(id) FROM kept").fetchone() == (6,)
    with psycopg.connect(postgres.fresh_url().replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT to_regclass('kept')").fetchone() == (None,)
