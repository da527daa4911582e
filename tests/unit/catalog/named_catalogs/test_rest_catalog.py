"""What a REST catalog is asked, and what its answers are taken for."""

import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewarden.catalog.errors import CatalogAwayError, EntryAwayError
from lakewarden.catalog.named_catalogs import rest_session
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.catalog.named_catalogs.rest_catalog import RestCatalog
from lakewarden.catalog.storage.credentials import StorageOptions
from support.fakes.rest_catalog import FakeRestServer, rest_server


@pytest.fixture
def server() -> Iterator[FakeRestServer]:
    with rest_server() as made:
        made.tables = {(("db",), "t"): "file:/t/1.json", (("a", "b"), "odd name"): "file:/u/1.json"}
        yield made


def catalog(server: FakeRestServer, files: dict[str, str] | None = None, **options: str) -> RestCatalog:
    given = StorageOptions.of(options or {"token": server.token}, files)
    return RestCatalog(
        CatalogDeclaration(name="prod", kind=CatalogKind.REST, uri=f"{server.uri}/", options=given)
    )


def test_heads_are_told_and_what_has_not_changed_is_not_sent_again(server: FakeRestServer) -> None:
    asked = catalog(server)
    for _ in range(2):
        assert asked.metadata_files("db", ["t", "gone"]) == {"t": "file:/t/1.json"}
    assert asked.metadata_files("a.b", ["odd name"]) == {"odd name": "file:/u/1.json"}
    statuses = [status for path, status in server.asked if "/tables/t?" in path]
    assert statuses == [200, 304]
    server.tables[(("db",), "t")] = "file:/t/2.json"
    assert asked.metadata_files("db", ["t"]) == {"t": "file:/t/2.json"}


def test_all_tables_of_all_namespaces_are_listed_page_by_page(server: FakeRestServer) -> None:
    server.page = 1
    server.tables[(("db",), "u")] = "file:/v/1.json"
    told = catalog(server).entries()
    assert (sorted(told.files), told.untold) == (["a.b.odd name", "db.t", "db.u"], None)


@pytest.mark.parametrize("namespace", ["a.b", None], ids=["of its namespace", "of all"])
def test_tables_that_name_a_folder_are_found_whatever_they_are_called(
    server: FakeRestServer, namespace: str | None
) -> None:
    server.tables |= {
        (("a", "b"), "t.old"): "file:/u/2.json",
        (("a", "b", "c.d"), "t"): "file:/u/3.json",
        (("a",), "b.odd name"): "file:/u/4.json",
    }
    found = set(catalog(server).naming_in(namespace, "file:///u"))
    of_namespace = {"prod.a.b.odd name", "prod.a.b.`t.old`"}
    others = {"prod.a.b.`c.d`.t", "prod.a.`b.odd name`"}
    assert found == (of_namespace if namespace else of_namespace | others)


@pytest.mark.parametrize("namespace", ["a.b", None], ids=["of its namespace", "of all"])
def test_a_table_that_is_listed_and_not_told_of_may_name_the_folder(
    server: FakeRestServer, namespace: str | None
) -> None:
    server.tables[(("a", "b"), "u")] = "file:/u/2.json"
    server.odd = {"/tables/u": (404, "NoSuchTableException")}
    with pytest.raises(EntryAwayError, match="The catalog prod lists a.b.u and says that it is not there."):
        catalog(server).naming_in(namespace, "file:///u")


def test_a_table_that_goes_while_all_are_asked_for_names_nothing(server: FakeRestServer) -> None:
    server.tables[(("a", "b"), "u")] = "file:/u/2.json"
    server.before["/tables/u"] = lambda: server.point("a.b.u", None)
    assert catalog(server).naming_in(None, "file:///u") == ("prod.a.b.odd name",)


@pytest.mark.parametrize("refused", ["/db/tables", "/v1/lake/namespaces/a/tables"])
def test_a_namespace_that_may_not_be_listed_keeps_back_its_own_tables_alone(
    server: FakeRestServer, refused: str
) -> None:
    server.odd = {refused: (403, "ForbiddenException")}
    told = catalog(server).entries()
    assert set(told.files) == {"db.t", "a.b.odd name"} - ({"db.t"} if "db" in refused else set())
    assert isinstance(told.untold, EntryAwayError)
    assert "The catalog prod answers 403 (ForbiddenException) when asked for the tables of" in str(
        told.untold
    )


def test_a_catalog_none_of_whose_namespaces_may_be_listed_tells_nothing(server: FakeRestServer) -> None:
    server.odd = {"/namespaces": (403, "ForbiddenException")}
    with pytest.raises(CatalogAwayError, match="when asked for its namespaces"):
        catalog(server).entries()


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (403, "answers 403 (NoException) when asked for db.t."),
        (404, "answers 404 (NoException) when asked for db.t."),
        (500, "answers 500 (NoException) when asked for db.t."),
        (200, "names no metadata file of db.t."),
    ],
)
def test_a_table_that_the_server_refuses_says_nothing_of_the_others(
    server: FakeRestServer, status: int, said: str
) -> None:
    server.tables[(("db",), "u")] = "file:/u/1.json"
    server.odd = {"/tables/t": (status, "NoException")}
    asked = catalog(server, credential=f"client:{server.secret}")
    for _ in range(2):
        with pytest.raises(EntryAwayError, match=re.escape(f"The catalog prod {said}")):
            asked.metadata_files("db", ["t"])
        assert asked.metadata_files("db", ["u"]) == {"u": "file:/u/1.json"}
    assert [path for path, _ in server.asked].count("/v1/oauth/tokens") == 1


def test_one_late_answer_is_no_outage_and_two_are(
    server: FakeRestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_session, "_PATIENCE", 0.1)
    server.slow = ("/tables/t",)
    with pytest.raises(EntryAwayError, match="does not answer in time when asked for db.t"):
        catalog(server).metadata_files("db", ["t"])
    server.slow = ()
    asked = catalog(server)
    assert asked.metadata_files("db", ["t"])
    server.slow = ("/tables/t", "/config")
    with pytest.raises(CatalogAwayError, match="The catalog prod does not answer: timed out") as away:
        asked.metadata_files("db", ["t"])
    assert not isinstance(away.value, EntryAwayError)


def test_a_server_that_says_forbidden_of_a_token_that_has_expired_is_asked_with_a_new_one(
    server: FakeRestServer,
) -> None:
    asked = catalog(server, credential=f"client:{server.secret}")
    assert asked.metadata_files("db", ["t"])
    server.token, server.expired = "t1", 403
    assert asked.metadata_files("db", ["t"]) == {"t": "file:/t/1.json"}


def test_a_namespace_that_is_gone_has_no_tables(server: FakeRestServer) -> None:
    assert catalog(server).metadata_files("gone", ["t"]) == {}


def test_a_token_is_got_with_the_credential_and_again_once_it_has_expired(server: FakeRestServer) -> None:
    asked = catalog(server, credential=f"client:{server.secret}")
    for _ in range(3):
        assert asked.metadata_files("db", ["t"])
    server.token = "t1"
    assert asked.metadata_files("db", ["t"]) == {"t": "file:/t/1.json"}
    assert [path for path, _ in server.asked].count("/v1/oauth/tokens") == 2


def test_a_token_in_a_file_is_read_again(server: FakeRestServer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("t0")
    asked = catalog(server, {"token": str(file)}, scope="catalog")
    assert asked.metadata_files("db", ["t"])
    server.token = "a new one"
    with pytest.raises(CatalogAwayError, match="The catalog prod refuses the token, or gives none."):
        asked.metadata_files("db", ["t"])
    file.write_text("a new one")
    assert asked.metadata_files("db", ["t"])


@pytest.mark.parametrize("said", ["hidden\nsecret", "hidden\n\tsecret", "hidden€"])
def test_a_token_that_no_header_can_hold_is_named_and_never_shown(
    server: FakeRestServer, tmp_path: Path, said: str
) -> None:
    file = tmp_path / "token"
    file.write_text(said)
    with pytest.raises(CatalogAwayError, match="cannot be asked: catalogs.prod.token has characters") as away:
        catalog(server, {"token": str(file)}, scope="catalog").metadata_files("db", ["t"])
    assert "hidden" not in "".join(traceback.format_exception(away.value))


def test_a_token_of_the_server_that_no_header_can_hold_is_never_shown(server: FakeRestServer) -> None:
    server.token = "hidden\nsecret"
    with pytest.raises(CatalogAwayError, match="cannot be asked: the token that the server gave") as away:
        catalog(server, credential=f"client:{server.secret}").metadata_files("db", ["t"])
    assert "hidden" not in "".join(traceback.format_exception(away.value))


@pytest.mark.parametrize("broken", [404, 500, 503])
def test_an_answer_that_is_none_concludes_nothing(server: FakeRestServer, broken: int) -> None:
    asked = catalog(server)
    assert asked.metadata_files("db", ["t"])
    server.broken = broken
    with pytest.raises(CatalogAwayError, match=f"The catalog prod answers {broken}"):
        asked.metadata_files("db", ["t"])


def test_a_server_that_is_not_there_is_said_in_one_sentence(server: FakeRestServer) -> None:
    server.uri = "http://127.0.0.1:1"
    with pytest.raises(
        CatalogAwayError, match="The catalog prod does not answer: Connection refused."
    ) as away:
        catalog(server).metadata_files("db", ["t"])
    assert "Check catalogs.prod.uri" in away.value.hint
