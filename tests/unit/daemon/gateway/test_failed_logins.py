"""Failed logins: a line and a figure for each, never the secret, and after too many none is looked at for a while."""

import base64
from datetime import UTC, datetime, timedelta
from email.message import Message
from pathlib import Path

import pytest

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.daemon.gateway.access.authentication import TokenUsers
from lakewarden.daemon.gateway.access.failed_logins import FailedLogins, TooManyFailedLoginsError, Why
from lakewarden.daemon.installation.tokens import Tokens
from lakewarden.daemon.telemetry.gateway_metrics import GatewayMetrics

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HERE, THERE = "10.0.0.1", "10.0.0.2"
MOST = 3


class Door:
    """A gateway's, with one token of ana's, and a clock that stands still."""

    def __init__(self, folder: Path) -> None:
        self.seconds, self.metrics = 0.0, GatewayMetrics()
        self.tokens = Tokens(folder / "tokens.json")
        self.token, self.text = self.tokens.create("ana", by="root", now=NOW, expires_at=None)
        self.failed = FailedLogins(most=MOST, metrics=self.metrics, monotonic=lambda: self.seconds)
        self.users = TokenUsers(self.tokens, lambda: NOW, self.failed)

    def knock(self, user: str | None, text: str, address: str = HERE) -> str:
        shown = Message()
        pair = base64.b64encode(f"{user}:{text}".encode()).decode()
        shown["Authorization"] = f"Bearer {text}" if user is None else f"Basic {pair}"
        return self.users.user(shown, address)

    def close(self, user: str, address: str = HERE) -> None:
        """Knock with a wrong token until nobody listens."""
        for _ in range(MOST):
            with pytest.raises(NotAllowedError, match="not accepted"):
                self.knock(user, "wrong", address)

    def counted(self) -> dict[tuple[str, str, str], float]:
        (family,) = [one for one in self.metrics.families() if "logins" in one.name]
        return {
            (one.labels["user"], one.labels["address"], one.labels["reason"]): one.value
            for one in family.samples
            if one.name.endswith("_total")
        }


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path)


@pytest.mark.parametrize(
    ("user", "text", "claimed", "why"),
    [
        ("ana", "", "ana", Why.NOTHING),
        ("ana", "wrong", "ana", Why.UNKNOWN),
        (None, "lw_{id}_guess", "ana", Why.WRONG),
        ("bo", "{text}", "bo", Why.OTHERS),
        (None, "lw_a_b", "", Why.UNKNOWN),
        ("an\x1b[2Ja" + "x" * 999, "wrong", "an\\x1b[2Ja" + "x" * 93, Why.UNKNOWN),
    ],
)
def test_a_refused_login_is_a_line_and_a_figure_without_the_secret(
    door: Door, caplog: pytest.LogCaptureFixture, user: str | None, text: str, claimed: str, why: Why
) -> None:
    given = text.format(id=door.token.token_id, text=door.text)
    with pytest.raises(NotAllowedError, match="not accepted"):
        door.knock(user, given)
    (line,) = caplog.messages
    assert line.startswith(f"login refused (user={claimed}, address={HERE}, because={why}, ")
    assert not given or given not in line
    assert door.counted() == {(claimed, HERE, str(why)): 1.0}


def test_an_expired_token_says_so_to_the_operator_alone(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    _, text = door.tokens.create("bo", by="root", now=NOW, expires_at=NOW - timedelta(days=1))
    with pytest.raises(NotAllowedError, match=r"not accepted\.$"):
        door.knock("bo", text)
    assert f"because={Why.EXPIRED}" in caplog.messages[0]


def test_after_too_many_none_is_looked_at_until_the_minute_is_over(door: Door) -> None:
    door.close("ana")
    with pytest.raises(TooManyFailedLoginsError, match=f"of ana from {HERE}") as refused:
        door.knock("ana", door.text)
    assert 0 < refused.value.seconds <= 61 and "Try again in" in refused.value.hint
    door.seconds = 61
    assert door.knock("ana", door.text) == "ana"


def test_other_addresses_and_users_do_not_notice(door: Door) -> None:
    _, bos = door.tokens.create("bo", by="root", now=NOW, expires_at=None)
    door.close("ana")
    assert door.knock("ana", door.text, THERE) == "ana"
    assert door.knock("bo", bos) == "bo"


def test_who_is_at_work_is_not_locked_out_by_a_stranger_with_the_same_address(door: Door) -> None:
    assert door.knock("ana", door.text) == "ana"
    door.close("ana")
    assert door.knock("ana", door.text) == "ana"
    with pytest.raises(TooManyFailedLoginsError):
        door.knock("ana", "guess")


def test_a_flood_of_names_is_no_flood_of_lines_figures_or_memory(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(12_000):
        with pytest.raises(NotAllowedError):
            door.knock(f"user {number}", "wrong")
    assert len(caplog.messages) == 100 and "silent=True" in caplog.messages[-1]
    assert len(door.counted()) <= 1_001 and sum(door.counted().values()) == 12_000
    assert len(door.failed._failed) == 10_000
