"""What a Spark session is configured with, and how a worker's configuration travels."""

from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.jobs.engines.spark.names import hadoop_path, table_at, table_named
from lakewarden.jobs.runs.s3a import s3_conf
from lakewarden.jobs.runs.spark_settings import JarSource, SparkSettings, foreign_conf, session_conf
from lakewarden.jobs.runs.worker_config import WorkerConfig, read_config, write_config

LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def test_one_machine_gets_sizes_by_its_cores() -> None:
    conf = session_conf(SparkSettings(master="local[*]"), cores=2)
    assert conf[LISTING] == "8"
    assert conf["spark.sql.shuffle.partitions"] == "2"
    assert conf["spark.driver.memory"] == "1024m"


@pytest.mark.parametrize("master", ["yarn", "k8s://https://cluster"])
def test_a_cluster_keeps_sparks_own_sizes(master: str) -> None:
    conf = session_conf(SparkSettings(master=master), cores=2)
    assert conf["spark.master"] == master
    assert LISTING not in conf
    assert "spark.driver.host" not in conf


def test_the_operators_own_settings_win() -> None:
    settings = SparkSettings(conf=(("spark.sql.session.timeZone", "Europe/Berlin"), (LISTING, "64")))
    conf = session_conf(settings, cores=2)
    assert (conf["spark.sql.session.timeZone"], conf[LISTING]) == ("Europe/Berlin", "64")


@pytest.mark.parametrize(("pages", "kept"), [("false", "50"), ("true", None)])
def test_what_has_ended_is_kept_for_pages_alone(pages: str, kept: str | None) -> None:
    conf = session_conf(SparkSettings(conf=(("spark.ui.enabled", pages),)), cores=2)
    assert conf.get("spark.sql.ui.retainedExecutions") == kept


def test_a_metastore_switches_the_hive_catalog_on() -> None:
    conf = session_conf(SparkSettings(metastore_uri="thrift://m:9083"), cores=2)
    assert conf["spark.sql.catalogImplementation"] == "hive"
    assert conf["spark.hadoop.hive.metastore.uris"] == "thrift://m:9083"
    assert "spark.sql.catalogImplementation" not in session_conf(SparkSettings(), cores=2)


@pytest.mark.parametrize(
    ("source", "jars", "key"),
    [
        (JarSource.MAVEN, (Path("/c/a.jar"), Path("/c/b.jar")), "spark.jars"),
        (JarSource.PACKAGES, (), "spark.jars.packages"),
        (JarSource.NONE, (), None),
    ],
    ids=["fetched by Maven", "fetched by Spark", "on the class path"],
)
def test_jars_come_from_one_place(source: JarSource, jars: tuple[Path, ...], key: str | None) -> None:
    conf = session_conf(SparkSettings(jar_source=source), cores=2, jars=jars)
    assert [name for name in conf if name.startswith("spark.jars")] == ([key] if key else [])


def test_somebody_elses_session_gets_what_our_tables_need_and_neither_sizes_nor_secrets() -> None:
    storage = StorageMap(
        prefixes=(
            (
                "s3://lake",
                StorageOptions.of({"aws_secret_access_key": "s3cr3t", "aws_endpoint": "http://s:1"}),
            ),
        )
    )
    nodes = ("spark.hadoop.dfs.nameservices", "lake")
    own = (("spark.executor.memory", "8g"), ("spark.hadoop.fs.azure.account.key.x", "s3cr3t"), nodes)
    settings = SparkSettings(metastore_uri="thrift://m:9083", conf=(*s3_conf(storage), *own))
    found = foreign_conf(settings, jars=(Path("/c/a.jar"),))
    bucket = "spark.hadoop.fs.s3a.bucket.lake"
    assert found == {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": "thrift://m:9083",
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hive",
        "spark.sql.catalog.iceberg.uri": "thrift://m:9083",
        "spark.sql.catalog.iceberg.cache-enabled": "false",
        "spark.jars": "/c/a.jar",
        "spark.delta.logStore.s3a.impl": "lakewarden.ConditionalLogStore",
        f"{bucket}.endpoint": "http://s:1",
        f"{bucket}.path.style.access": "true",
        f"{bucket}.connection.ssl.enabled": "false",
        nodes[0]: nodes[1],
    }


def test_a_workers_configuration_survives_the_journey_and_hides_its_secrets() -> None:
    config = WorkerConfig(
        name="w",
        database_url="postgresql://u:secret@h/d",
        parent=7,
        spark=SparkSettings(jars_cache=Path("/jars"), conf=(("a", "b"),)),
        storage=StorageMap(prefixes=(("s3://b", StorageOptions.of({"secret_key": "hush"})),)),
        idle=timedelta(minutes=3),
    )
    assert read_config(write_config(config)) == config
    assert "secret@h" not in repr(config)
    assert "hush" not in repr(config)


@pytest.mark.parametrize("text", ["", "{}", "not json"])
def test_a_worker_that_got_no_configuration_says_so(text: str) -> None:
    with pytest.raises(UsageError, match="no configuration"):
        read_config(text)


def test_the_longest_prefix_gives_the_options() -> None:
    outer, inner = StorageOptions.of({"k": "outer"}), StorageOptions.of({"k": "inner"})
    storage = StorageMap(prefixes=(("s3://b", outer), ("s3://b/in", inner)))
    assert storage.at("s3://b/in/t") == inner
    assert storage.at("s3://b/inside") == outer
    assert storage.at("s3://b2/t") == StorageOptions()


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("file:///a%20b/%2520", "file:/a b/%20"),
        ("hdfs://h:9000/a%20b", "hdfs://h:9000/a%20b"),
        ("s3://b/t", "s3a://b/t"),
    ],
)
def test_hadoop_gets_paths_as_it_spells_them(location: str, path: str) -> None:
    assert hadoop_path(location) == path


def test_names_are_quoted_whatever_is_in_them() -> None:
    assert table_named("db.my`t") == "`db`.`my``t`"
    assert table_at("file:///x/%60y") == "delta.`file:/x/``y`"


def test_java_opens_nothing_that_an_xml_text_refers_to_whatever_else_it_is_told() -> None:
    key = "spark.driver.extraJavaOptions"
    plain = session_conf(SparkSettings(), cores=1)
    told = session_conf(SparkSettings(conf=((key, "-Dmine=1"),)), cores=1)
    for conf in (plain, told):
        for name in (key, "spark.executor.extraJavaOptions"):
            assert conf[name].startswith("-Djavax.xml.accessExternalDTD= -Djavax.xml.accessExternalSchema=")
    assert told[key].endswith(" -Dmine=1")
