"""Tokens: shown once, kept as hashes, good until they expire or are revoked."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import NotFoundError, UnavailableError
from lakewarden.daemon.installation.tokens import Tokens

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_token_is_its_users_until_it_is_revoked(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    token, text = tokens.create("ana", by="root", now=NOW, expires_at=None)
    other, _ = tokens.create("bo", by="root", now=NOW, expires_at=None)
    assert Tokens(tmp_path / "tokens.json").user_of(text, NOW) == "ana"
    Tokens(tmp_path / "tokens.json").revoke(token.token_id)
    assert tokens.user_of(text, NOW) is None
    assert [one.token_id for one in tokens.all()] == [other.token_id]
    with pytest.raises(NotFoundError):
        tokens.revoke(token.token_id)


def test_a_token_ends_when_it_expires(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    _, text = tokens.create("ana", by="root", now=NOW, expires_at=NOW + timedelta(days=1))
    assert tokens.user_of(text, NOW + timedelta(hours=23)) == "ana"
    assert tokens.user_of(text, NOW + timedelta(days=1)) is None


@pytest.mark.parametrize("text", ["", "lw", "lw_", "lw__", "ä_ö_ü", "lw_{id}_", "lw_{id}_x", "{text}x"])
def test_what_is_no_token_is_nobodys(tmp_path: Path, text: str) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    token, right = tokens.create("ana", by="root", now=NOW, expires_at=None)
    assert tokens.user_of(text.format(id=token.token_id, text=right), NOW) is None


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
    assert tokens.user_of(text, NOW) == "ana"
    fresh.symlink_to(new.name)
    fresh.replace(data)
    assert tokens.user_of(text, NOW) is None


def test_the_file_holds_no_token_and_is_its_owners_alone(tmp_path: Path) -> None:
    _, text = Tokens(tmp_path / "tokens.json").create("ana", by="root", now=NOW, expires_at=None)
    file = tmp_path / "tokens.json"
    assert text.rpartition("_")[2] not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_damaged_file_lets_nobody_in(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text('[{"token_id": 1}]')
    with pytest.raises(UnavailableError, match="cannot be read"):
        Tokens(tmp_path / "tokens.json").user_of("lw_a_b", NOW)
