"""Iceberg tables whose heads a declared catalog keeps: registered by their names there, swept without a JVM."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakewarden.catalog.system.port import LINEAGE
from lakewarden.daemon.installation.services import open_services
from support.builders.iceberg_tables import IcebergWriter
from support.builders.sql_catalogs import CataloguedWriter, SqliteCatalog
from support.fakes.rest_catalog import rest_server
from support.processes import daemon_process, house
from support.processes.commands import Cli
from support.processes.sparkless import sparkless

QUICK = [f"{key}={value}" for key, value in house.QUICK.items()]


class CatalogSite:
    """A home that declares catalogs, with a table `db.events` of the catalog `prod`."""

    def __init__(self, folder: Path, call: Cli) -> None:
        self.folder, self.call, self.home = folder, call, folder / "home"
        self.catalog = SqliteCatalog(file=folder / "catalog.db")
        self.table = self.made("db.events")
        assert call("init").code == 0
        self.declare(self.catalog.section)

    def declare(self, *sections: str) -> None:
        (self.home / "lakewarden.toml").write_text("\n".join(sections))

    def made(self, entry: str, catalog: SqliteCatalog | None = None) -> CataloguedWriter:
        """A table with one file."""
        place = self.folder / "lake" / (catalog or self.catalog).name / entry
        table = CataloguedWriter(root=place, catalog=catalog or self.catalog, entry=entry)
        table.append("a.parquet")
        return table

    def register(self, *arguments: str) -> dict[str, object]:
        said = self.call("tables", "register", *arguments, "-o", "json")
        assert said.code == 0, (said.out, said.err)
        found: dict[str, object] = said.json
        return found

    def shown(self, name: str = "db.events") -> dict[str, object]:
        found: dict[str, object] = self.call("tables", "show", name, "-o", "json").json
        return found

    def address(self) -> tuple[str, str]:
        """Catalog and entry that keep its head, by its row."""
        properties = self.shown()["properties"]
        assert isinstance(properties, dict)
        return properties["catalog.name"], properties["catalog.entry"]

    def lineage(self, table_id: object) -> list[tuple[int, str | None]]:
        """Version and UUID of what is on record as written to a table."""
        rows = open_services(home=self.home).store.rows(LINEAGE).find(output_id=str(table_id))
        return [(one.output_version, one.output_format_id) for one in rows]

    def findings(self, name: str = "db.events") -> list[str]:
        said = self.call("tables", "validate", name, "-o", "json")
        return [str(one["message"]) for one in said.json]

    def sweep(self) -> str:
        """A daemon until nothing is left to do, with no Java in reach. Returns what it said."""
        done = subprocess.run(
            [sys.executable, daemon_process.__file__, str(self.home), "idle", *QUICK],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "JAVA_HOME": "/no"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr


@pytest.fixture
def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> CatalogSite:
    return CatalogSite(tmp_path, sparkless(tmp_path / "home", monkeypatch, capfdbinary))


def test_it_is_managed_by_its_entry_and_swept_without_a_jvm(site: CatalogSite) -> None:
    came = site.register("prod.db.events")
    assert (came["name"], came["format"], came["version"], came["state"]) == (
        "db.events", "iceberg", 1, "active",
    )  # fmt: skip
    site.table.append("b.parquet")
    site.sweep()
    shown = site.shown("prod.db.events")
    assert (shown["version"], shown["files"], shown["rows"]) == (2, 2, 20)
    assert site.address() == ("prod", "db.events")
    number = site.table.number
    site.table.number = 7
    (site.table.metadata / site.table.head.name).write_text("a commit on its way")
    site.table.number = number
    assert site.findings() == [], "a file that the entry does not name is never head"


@pytest.mark.parametrize("schema", [0, 1])
def test_both_schemas_are_read_and_views_are_no_tables(site: CatalogSite, schema: int) -> None:
    other = SqliteCatalog(file=site.folder / f"v{schema}.db", name="other", schema=schema)
    site.made("a.b.t", other)
    if schema:
        other.point("db.view", "file:/view/metadata/1.metadata.json")
        other.run("UPDATE iceberg_tables SET iceberg_type = 'VIEW' WHERE table_name = 'view'")
    site.declare(other.section)
    said = site.call("tables", "register", "other.*", "-o", "json").json
    assert [(one["name"], one["outcome"]) for one in said] == [("a_b.t", "registered")]


def test_a_catalogs_tables_are_found_by_discovery_and_by_patterns(site: CatalogSite) -> None:
    site.made("db.clicks")
    site.made("other.t")
    said = site.call("tables", "register", "prod.db.c*", "-o", "json").json
    assert [one["name"] for one in said] == ["db.clicks"]
    assert site.call("tables", "adopt").code == 0
    listed = site.call("tables", "list", "--format", "iceberg", "-o", "json").json
    assert sorted(one["name"] for one in listed) == ["db.clicks", "db.events", "other.t"]


def test_a_table_that_was_renamed_in_its_catalog_is_said_and_followed(site: CatalogSite) -> None:
    before = site.register("prod.db.events")
    site.catalog.point("db.events", None)
    site.table.entry = "db.facts"
    site.table.append("b.parquet")
    assert site.findings() == [
        "The catalog prod has no Iceberg table db.events any more. Its folder is that of prod.db.facts now."
    ]
    after = site.register("prod.db.facts")
    assert (after["table_id"], after["name"], after["version"]) == (before["table_id"], "db.events", 2)
    assert site.address() == ("prod", "db.facts")
    assert site.findings() == []


def test_one_folder_under_two_names_is_refused_and_only_observed(site: CatalogSite) -> None:
    site.register("prod.db.events")
    site.catalog.point("db.second", site.table.named)
    said = site.call("tables", "register", "prod.db.second")
    assert said.code == 5, said.err
    assert f"file://{site.table.root} is managed as db.events, by prod.db.events" in said.err
    assert "prod.db.second names it, too" in said.err
    (found,) = site.findings()
    assert found.startswith("The table's folder has another name, prod.db.second: ")
    said = site.call("jobs", "run", "db.events", "vacuum")
    assert said.code == 4 and "db.events uses a second name, which lakewarden does not act on." in said.err
    site.catalog.point("db.second", None)
    assert site.findings() == []


def test_another_table_under_an_old_name_at_the_same_place_is_not_followed(site: CatalogSite) -> None:
    site.register("prod.db.events")
    site.catalog.point("db.events", None)
    site.table.entry, site.table.table_id = "db.anew", "0" * 8 + site.table.table_id[8:]
    site.table.publish()
    said = site.call("tables", "register", "prod.db.anew")
    assert said.code == 5 and "prod.db.anew is another table than db.events" in said.err
    assert "If it takes the place of the old one, call it prod.db.events in its catalog; else" in said.err
    site.catalog.point("db.anew", None)
    site.catalog.point("db.events", site.table.named)
    assert site.findings() == []


def test_under_a_root_a_table_is_known_by_its_entry(site: CatalogSite) -> None:
    site.made("db.clicks")
    site.declare(f'[discovery]\nroots = ["{site.folder}/lake"]\n', site.catalog.section)
    assert site.call("tables", "adopt").code == 0
    listed = site.call("tables", "list", "--format", "iceberg", "-o", "json").json
    assert [(one["name"], one["state"]) for one in listed] == [
        ("db.clicks", "active"), ("db.events", "active"),
    ]  # fmt: skip
    assert site.address() == ("prod", "db.events")


def test_a_table_that_was_managed_by_its_path_follows_the_entry_that_tells_its_head(
    site: CatalogSite,
) -> None:
    """Its catalog was declared later, or did not answer."""
    before = site.register(str(site.table.root), "--name", "db.events")
    assert before["state"] == "quarantined" and "Only a catalog knows" in str(before["state_reason"])
    assert site.call("tables", "drop", "db.events", "--yes").code == 0
    said = site.call("tables", "register", "prod.db.events")
    assert said.code == 4 and "`lakewarden tables undrop db.events` takes it back" in said.err
    assert site.call("tables", "undrop", "db.events").code == 0
    assert site.call("tables", "adopt").code == 0
    shown = site.shown()
    assert (shown["table_id"], shown["aliases"]) == (before["table_id"], before["aliases"])
    assert site.address() == ("prod", "db.events")
    assert shown["format_ids"] == [site.table.table_id]
    site.sweep()
    assert (site.shown()["state"], site.shown()["version"]) == ("active", 1)


def test_a_table_by_its_path_does_not_follow_an_entry_where_another_has_its_uuid(site: CatalogSite) -> None:
    site.register("prod.db.events", "--name", "db.twin")
    copy = site.made("db.copy")
    copy.table_id = site.table.table_id
    site.catalog.point("db.copy", None)
    site.register(str(copy.root), "--name", "db.copy")
    copy.publish()
    said = site.call("tables", "register", "prod.db.copy")
    assert said.code == 5
    assert f"prod.db.copy carries the same table UUID as db.twin at file://{site.table.root}." in said.err
    assert site.call("tables", "drop", "db.twin", "--yes").code == 0
    site.register("prod.db.copy")
    assert site.findings("db.copy") == []


def test_a_folder_that_tells_its_head_itself_does_not_follow_an_entry(site: CatalogSite) -> None:
    plain = IcebergWriter(root=site.folder / "plain")
    plain.commit(add=(("a.parquet", 100),))
    site.register(str(plain.root), "--name", "db.plain")
    site.catalog.point("db.again", f"file:{plain.root}/metadata/{plain.head.name}")
    said = site.call("tables", "register", "prod.db.again")
    assert said.code == 5 and "is managed as db.plain, by its folder, and prod.db.again names it" in said.err
    assert "Remove prod.db.again from its catalog, with the files left there" in said.err


def test_an_entry_that_cannot_be_read_is_not_followed(site: CatalogSite) -> None:
    site.register("prod.db.events")
    site.catalog.point("db.events", None)
    site.catalog.point("db.facts", site.table.named)
    for path in site.table.metadata.glob("*.avro"):
        path.unlink()
    said = site.call("tables", "register", "prod.db.facts")
    assert said.code == 5 and "nobody can tell whether it is db.events" in said.err


def test_while_a_catalog_does_not_answer_nothing_is_concluded_and_others_are_swept(site: CatalogSite) -> None:
    other = SqliteCatalog(file=site.folder / "other.db", name="other")
    table = site.made("db.there", other)
    site.declare(site.catalog.section, other.section)
    site.register("prod.db.events")
    site.register("other.db.there")
    site.catalog.file.rename(site.folder / "away.db")
    table.append("b.parquet")
    site.table.number += 1
    said = site.sweep()
    assert "The catalog prod does not answer: " in said and "Traceback" not in said
    assert (site.shown("db.there")["version"], site.shown()["version"]) == (2, 1)
    shown = site.shown()
    assert (shown["state"], shown["findings"]) == ("active", [])
    refused = site.call("tables", "register", "prod.db.more")
    assert refused.code == 1 and "Check catalogs.prod.uri, user and password" in refused.err
    assert site.call("tables", "adopt").code == 1
    (site.folder / "away.db").rename(site.catalog.file)
    site.table.number -= 1
    site.table.append("b.parquet")
    assert site.findings() == []
    assert site.register("prod.db.events")["version"] == 2


def test_doctor_and_the_settings_for_spark_tell_of_each_catalog(site: CatalogSite) -> None:
    other = SqliteCatalog(file=site.folder / "other.db", name="other")
    site.declare(site.catalog.section, other.section)
    other.file.unlink()
    said = {one["check"]: one for one in site.call("doctor", "-o", "json").json}
    assert (said["catalog prod"]["verdict"], said["catalog prod"]["message"]) == (
        "ok", "It answers with 1 table.",
    )  # fmt: skip
    assert said["catalog other"]["verdict"] == "fail"
    assert "The catalog other does not answer: " in said["catalog other"]["message"]
    shown = {one["key"]: one["value"] for one in site.call("config", "show", "-o", "json").json}
    assert shown["catalogs.prod"] == f"sql sqlite:///{site.catalog.file}"
    lines = site.call("config", "spark").out
    assert f"spark.sql.catalog.prod.uri jdbc:sqlite:{site.catalog.file}" in " ".join(
        lines.replace("=", " ").replace('"', " ").split()
    )


def test_a_catalog_that_is_no_longer_declared_concludes_nothing(site: CatalogSite) -> None:
    site.register("prod.db.events")
    site.declare("")
    said = site.call("tables", "validate", "db.events")
    assert said.code == 1 and "The settings declare no catalog prod." in said.err
    assert site.shown()["state"] == "active"


def test_an_entry_that_is_gone_or_points_to_nothing_is_a_finding(site: CatalogSite) -> None:
    site.register("prod.db.events")
    site.catalog.point("db.events", f"file:{site.table.root}/metadata/gone.metadata.json")
    assert site.findings() == [
        "metadata/gone.metadata.json is missing, which the catalog prod's entry of db.events names."
    ]
    site.catalog.point("db.events", None)
    assert site.findings() == ["The catalog prod has no Iceberg table db.events any more."]


def test_tables_of_a_rest_catalog_are_registered_found_and_followed_without_a_jvm(site: CatalogSite) -> None:
    token = site.folder / "token"
    with rest_server() as server:
        token.write_text(server.token)
        site.declare(f'[catalogs.lake]\ntype = "rest"\nuri = "{server.uri}"\ntoken = "file:{token}"\n')
        table = CataloguedWriter(root=site.folder / "lake" / "t", catalog=server, entry="a.b.t")
        table.append("a.parquet")
        assert site.call("tables", "adopt").code == 0
        before = site.shown("lake.a.b.t")
        assert (before["name"], before["version"], before["state"]) == ("a_b.t", 1, "active")
        table.append("b.parquet")
        assert site.findings("a_b.t") == []
        assert site.register("lake.a.b.t")["version"] == 2
        server.point("a.b.t", None)
        assert site.findings("a_b.t") == ["The catalog lake has no Iceberg table a.b.t any more."]
        server.point("a.c.t", table.named)
        assert site.register("lake.a.c.t")["table_id"] == before["table_id"]
        token.write_text("an old one")
        said = site.call("tables", "validate", "a_b.t")
        assert said.code == 1 and "The catalog lake refuses the token, or gives none." in said.err


def test_a_table_that_a_server_refuses_is_said_and_the_others_are_swept(
    site: CatalogSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rest_server() as server:
        site.declare(f'[catalogs.lake]\ntype = "rest"\nuri = "{server.uri}"\ncredential = "env:LAKE_KEY"\n')
        monkeypatch.setenv("LAKE_KEY", f"client:{server.secret}")
        tables = [
            CataloguedWriter(root=site.folder / "lake" / entry, catalog=server, entry=entry)
            for entry in ("a.t", "a.u", "b.v")
        ]
        for table in tables:
            table.append("a.parquet")
        assert site.call("tables", "adopt").code == 0
        server.odd = {"/tables/t": (403, "ForbiddenException"), "/b/tables": (403, "ForbiddenException")}
        for table in tables:
            table.append("b.parquet")
        said = site.sweep()
        assert [site.shown(name)["version"] for name in ("a.t", "a.u", "b.v")] == [1, 2, 2]
        assert "The catalog lake answers 403 (ForbiddenException) when asked for a.t." in said
        assert (site.shown("a.t")["state"], site.shown("a.t")["findings"]) == ("active", [])
        more = CataloguedWriter(root=site.folder / "lake" / "a.w", catalog=server, entry="a.w")
        more.append("a.parquet")
        foretold = site.call("tables", "adopt", "--dry-run", "-o", "json")
        assert (foretold.code, [one["where"] for one in foretold.json]) == (3, ["lake.a.w"])
        adopted = site.call("tables", "adopt", "-o", "json")
        assert (adopted.code, [one["outcome"] for one in adopted.json]) == (3, ["registered", "refused"])
        assert "when asked for the tables of b." in adopted.json[1]["why"]
        assert site.call("tables", "register", "lake.*").code == 3
        assert site.shown("a.w")["version"] == 1
        (told,) = [one for one in site.call("doctor", "-o", "json").json if one["check"] == "catalog lake"]
        assert told["verdict"] == "warn" and told["message"].startswith(
            "It answers with 3 tables. The catalog lake"
        )


def test_a_token_that_cannot_be_sent_is_never_shown_and_nothing_is_concluded(
    site: CatalogSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rest_server() as server:
        section = f'[catalogs.lake]\ntype = "rest"\nuri = "{server.uri}"\n'
        site.declare(f'{section}token = "env:LAKE_TOKEN"\n')
        monkeypatch.setenv("LAKE_TOKEN", f"{server.token}\n")
        CataloguedWriter(root=site.folder / "lake" / "t", catalog=server, entry="a.t").append("a.parquet")
        site.register("lake.a.t")
        monkeypatch.setenv("LAKE_TOKEN", "hidden\nword\n")
        said = site.call("tables", "validate", "a.t")
        assert said.code == 2 and "catalogs.lake.token has characters that no request can hold." in said.err
        assert "hidden" not in said.out + said.err
        site.declare(f'{section}credential = "env:LAKE_KEY"\n')
        monkeypatch.setenv("LAKE_KEY", f"client:{server.secret}\n")
        server.token = "hidden\nword"
        logged = site.sweep()
        assert "The catalog lake cannot be asked: the token that the server gave" in logged
        assert "hidden" not in logged and "Traceback" not in logged
        assert (site.shown("a.t")["state"], site.shown("a.t")["findings"]) == ("active", [])


LEFT = "The catalog prod's entry of db.events names another table now, which lies at file:{}."


@pytest.mark.long
def test_another_table_under_the_same_name_is_not_taken_for_it(site: CatalogSite) -> None:
    """It was dropped with its files left, and made anew at a place of its own."""
    before = site.register("prod.db.events")
    site.sweep()
    written = site.lineage(before["table_id"])
    assert written == [(1, site.table.table_id)]
    anew = site.made("db.anew")
    anew.append("b.parquet")
    site.catalog.point("db.anew", None)
    site.catalog.point("db.events", anew.named)
    site.sweep()
    shown = site.shown()
    assert (shown["version"], shown["state"]) == (1, "quarantined")
    assert shown["format_ids"] == before["format_ids"] == [site.table.table_id]
    assert site.lineage(before["table_id"]) == written, "the commits of the other are none of its own"
    assert site.findings() == [LEFT.format(anew.root)]
    said = site.call("jobs", "run", "db.events", "vacuum")
    assert said.code == 4, said.err
    after = site.register("prod.db.events", "--name", "db.anew")
    assert (after["version"], after["state"], after["format_ids"]) == (2, "active", [anew.table_id])
    assert site.findings("db.anew") == []
    site.catalog.point("db.events", site.table.named)
    assert site.findings() == [], "it has its entry again"


def test_the_one_that_has_a_managed_tables_entry_by_now_is_found_by_discovery(site: CatalogSite) -> None:
    site.register("prod.db.events", "--name", "db.old")
    anew = site.made("db.anew")
    site.catalog.point("db.anew", None)
    site.catalog.point("db.events", anew.named)
    assert site.call("tables", "adopt").code == 0
    listed = site.call("tables", "list", "--format", "iceberg", "-o", "json").json
    assert {one["name"]: one["location"] for one in listed} == {
        "db.old": f"file://{site.table.root}", "db.events": f"file://{anew.root}",
    }  # fmt: skip


def test_two_tables_that_changed_their_entries_are_followed(site: CatalogSite) -> None:
    other = site.made("db.other")
    ids = {name: site.register(f"prod.{name}")["table_id"] for name in ("db.events", "db.other")}
    site.catalog.point("db.events", other.named)
    assert site.call("tables", "register", "prod.db.events").code == 5, "both name it"
    site.catalog.point("db.other", site.table.named)
    assert site.findings() == [f"{LEFT.format(other.root)} Its folder is that of prod.db.other now."]
    assert site.call("tables", "adopt").code == 0
    for name, entry in (("db.events", "db.other"), ("db.other", "db.events")):
        shown = site.shown(name)
        assert (shown["table_id"], shown["properties"]["catalog.entry"]) == (ids[name], entry)  # type: ignore[index]
        assert site.findings(name) == []


def test_a_table_that_says_itself_that_it_lies_elsewhere_is_only_observed(site: CatalogSite) -> None:
    """`SET LOCATION`: the same table, of which new files lie elsewhere."""
    site.register("prod.db.events")
    site.table.told = f"file:{site.folder}/moved"
    site.table.publish()
    site.catalog.point("db.events", f"file:{site.table.root}/metadata/{site.table.head.name}")
    (said,) = site.findings()
    assert f"The metadata says that the table lies at file:{site.folder}/moved" in said
    assert "is only observed" in said


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("catalogs = 3", "Catalogs have names in the settings file."),
        ("[catalogs.iceberg]\ntype = 'sql'\nuri = 'sqlite:///x'", "No catalog can be called 'iceberg'."),
        ("[catalogs.prod]\ntype = 'nessie'\nuri = 'x'", "The catalog prod needs a type and a uri."),
        (
            "[catalogs.prod]\ntype = 'sql'\nuri = 'postgresql+psycopg://me:word@host/db'",
            "The password of catalogs.prod does not belong in the settings file.",
        ),
        (
            "[catalogs.prod]\ntype = 'sql'\nuri = 'postgresql+psycopg://host/db'\npassword = 'word'",
            "The setting catalogs.prod.password is a secret and does not belong in the settings file.",
        ),
    ],
    ids=["no names", "taken name", "unknown kind", "password in the uri", "password"],
)
def test_a_declaration_that_is_not_whole_is_said_in_one_sentence(
    site: CatalogSite, section: str, message: str
) -> None:
    site.declare(section)
    said = site.call("tables", "list")
    assert said.code == 2 and message in said.err and "word" not in said.err.replace("password", "")
