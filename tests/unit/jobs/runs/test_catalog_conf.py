"""What Spark is told of declared catalogs, and who gets to see which of it."""

from pathlib import Path

import pytest

from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.jobs.runs.catalog_conf import catalog_conf
from lakewarden.jobs.runs.spark_settings import SparkSettings, foreign_conf, session_conf
from lakewarden.jobs.runs.worker_config import WorkerConfig, read_config, secrets_of, write_config

KEY = "spark.sql.catalog.prod"


def declared(uri: str, folder: Path | None = None, **options: str) -> CatalogDeclaration:
    files = {}
    if folder is not None:
        (folder / "password").write_text("hush\n")
        files = {"password": str(folder / "password")}
    return CatalogDeclaration(
        name="prod",
        kind=CatalogKind.SQL,
        uri=uri,
        warehouse="s3://lake/wh",
        options=StorageOptions.of(options, files),
    )


@pytest.mark.parametrize(
    ("uri", "wanted"),
    [
        ("sqlite:////var/a%20lake/c.db", {"uri": "jdbc:sqlite:/var/a lake/c.db"}),
        (
            "postgresql+psycopg://ana@db:5433/lake?sslmode=require",
            {"uri": "jdbc:postgresql://db:5433/lake?sslmode=require", "jdbc.user": "ana"},
        ),
        ("mysql+pymysql://db/lake", {"uri": "jdbc:mysql://db/lake"}),
    ],
    ids=["sqlite", "postgresql", "mysql"],
)
def test_a_databases_address_is_written_as_javas_drivers_have_it(uri: str, wanted: dict[str, str]) -> None:
    conf = dict(catalog_conf([declared(uri)]))
    assert conf == {
        KEY: "org.apache.iceberg.spark.SparkCatalog",
        f"{KEY}.type": "jdbc",
        f"{KEY}.warehouse": "s3://lake/wh",
        f"{KEY}.cache-enabled": "false",
        **{f"{KEY}.{name}": value for name, value in wanted.items()},
    }


def test_a_password_goes_to_our_sessions_and_to_nobody_elses(tmp_path: Path) -> None:
    one = declared("postgresql+psycopg://db/lake", tmp_path, user="ana")
    one = CatalogDeclaration(
        name=one.name,
        kind=one.kind,
        uri=one.uri,
        options=StorageOptions.of({**dict(one.options.pairs), "io-impl": "x"}, dict(one.options.files)),
    )
    settings = SparkSettings(catalogs=catalog_conf([one]))
    ours, theirs = session_conf(settings, cores=2), foreign_conf(settings)
    assert (ours[f"{KEY}.jdbc.user"], ours[f"{KEY}.jdbc.password"]) == ("ana", "hush")
    assert (theirs[f"{KEY}.jdbc.user"], theirs[f"{KEY}.io-impl"]) == ("ana", "x")
    assert "hush" not in str(theirs) and "hush" not in repr(settings) and "hush" not in repr(one)
    config = WorkerConfig(name="w", database_url="sqlite://", spark=settings, catalogs=(one,))
    assert read_config(write_config(config)) == config
    assert secrets_of(config) == {"hush"}


def test_a_rest_catalog_has_its_token_from_our_sessions_alone() -> None:
    one = CatalogDeclaration(
        name="prod",
        kind=CatalogKind.REST,
        uri="https://catalog",
        warehouse="sales",
        options=StorageOptions.of({"credential": "id:hush", "scope": "all"}),
    )
    settings = SparkSettings(catalogs=catalog_conf([one]))
    theirs = {
        KEY: "org.apache.iceberg.spark.SparkCatalog",
        f"{KEY}.type": "rest",
        f"{KEY}.uri": "https://catalog",
        f"{KEY}.warehouse": "sales",
        f"{KEY}.scope": "all",
        f"{KEY}.cache-enabled": "false",
    }
    assert {key: value for key, value in foreign_conf(settings).items() if key.startswith(KEY)} == theirs
    ours = {key: value for key, value in session_conf(settings, cores=2).items() if key.startswith(KEY)}
    assert ours == {**theirs, f"{KEY}.credential": "id:hush"}
