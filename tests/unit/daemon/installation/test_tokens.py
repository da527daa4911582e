"""Tokens: shown once, kept as hashes, good until they expire or are revoked."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakewarden.catalog.errors import NotFoundError, UnavailableError, UsageError
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.installation.tokens import Tokens, is_user_name
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.tokens import create_token
from support.builders.callers import actor

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def user_of(tokens: Tokens, text: str) -> str | None:
    token = tokens.named_by(text)
    return token.user if token is not None and token.is_shown_by(text) else None


def test_a_token_is_its_users_until_it_is_revoked(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    token, text = tokens.create("ana", by="root", now=NOW, expires_at=None)
    other, _ = tokens.create("bo", by="root", now=NOW, expires_at=None)
    assert user_of(Tokens(tmp_path / "tokens.json"), text) == "ana"
    Tokens(tmp_path / "tokens.json").revoke(token.token_id)
    assert user_of(tokens, text) is None
    assert [one.token_id for one in tokens.all()] == [other.token_id]
    with pytest.raises(NotFoundError):
        tokens.revoke(token.token_id)


@pytest.mark.parametrize("text", ["", "lw", "lw_", "lw__", "ä_ö_ü", "lw_{id}_", "lw_{id}_x", "{text}x"])
def test_what_is_no_token_is_nobodys(tmp_path: Path, text: str) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    token, right = tokens.create("ana", by="root", now=NOW, expires_at=None)
    assert user_of(tokens, text.format(id=token.token_id, text=right)) is None


def test_a_secret_that_is_mounted_is_read_again_when_kubernetes_changes_it(tmp_path: Path) -> None:
    """A kubelet writes another folder, and turns a link to it: the file's own link stays."""
    old, new, mounted = tmp_path / "..1", tmp_path / "..2", tmp_path / "tokens.json"
    for folder in (old, new):
        folder.mkdir()
    token, text = Tokens(old / "tokens.json").create("ana", by="root", now=NOW, expires_at=None)
    (new / "tokens.json").write_bytes((old / "tokens.json").read_bytes())
    Tokens(new / "tokens.json").revoke(token.token_id)
    data, fresh = tmp_path / "..data", tmp_path / "..data_tmp"
    data.symlink_to(old.name)
    mounted.symlink_to("..data/tokens.json")
    tokens = Tokens(mounted)
    assert user_of(tokens, text) == "ana"
    fresh.symlink_to(new.name)
    fresh.replace(data)
    assert user_of(tokens, text) is None


def test_the_file_holds_no_token_and_is_its_owners_alone(tmp_path: Path) -> None:
    _, text = Tokens(tmp_path / "tokens.json").create("ana", by="root", now=NOW, expires_at=None)
    file = tmp_path / "tokens.json"
    assert text.rpartition("_")[2] not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_damaged_file_lets_nobody_in(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text('[{"token_id": 1}]')
    with pytest.raises(UnavailableError, match="cannot be read"):
        Tokens(tmp_path / "tokens.json").named_by("lw_a_b")


@pytest.mark.parametrize(
    "user",
    [
        "", "*", "root ", " root", "ro\tot", "root\n", "a:b", "a,b", "ro\u200bot", "\u202etoor", "root\xa0",
        "\uff52oot", "x" * 129, "ana\x1b[2J",
    ],
)  # fmt: skip
def test_what_looks_like_somebody_else_or_everybody_gets_no_token(tmp_path: Path, user: str) -> None:
    services = Services(load_settings(home=tmp_path, environment={}))
    with pytest.raises(UsageError, match="is not a user name"):
        create_token(services, user, lifetime=None, caller=actor("root", admin=True))
    assert not (tmp_path / "tokens.json").exists()
    tokens = Tokens(tmp_path / "tokens.json")
    _, text = tokens.create(user, by="an older version", now=NOW, expires_at=None)
    assert user_of(tokens, text) is None


@pytest.mark.parametrize("user", ["ana", "Ana Maria", "ana@EXAMPLE.ORG", "müller", "svc-etl_01", "x" * 128])
def test_people_and_services_have_names(user: str) -> None:
    assert is_user_name(user)
