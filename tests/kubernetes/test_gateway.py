"""The gateway as the chart runs it: reached through its Service by whoever has a token, until that is revoked."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyhive import hive
from thrift.Thrift import TApplicationException

from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.installation.tokens import Token
from lakewarden.daemon.usecases.init import initialise
from lakewarden.daemon.usecases.tokens import create_token, revoke_token
from support.builders.callers import actor
from support.kubernetes.installation import FILES, LAKE_MOUNTED, Installation, Node, values, volume

ADMIN = actor("root", admin=True)


@dataclass
class Gated:
    """A release with a gateway, and the home in which its tokens are made."""

    installation: Installation
    home: Services
    token: Token
    text: str

    def publish(self) -> None:
        """Bring the tokens to the cluster, as an admin does."""
        content = self.home.settings.tokens_file.read_text(encoding="utf-8")
        self.installation.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "tokens"},
                "stringData": {"tokens.json": content},
            }
        )

    def rows(self, statement: str, text: str | None = None) -> list[tuple[Any, ...]]:
        """What PyHive is answered."""
        connection = hive.connect(
            host=self.installation.address("gateway"),
            port=10001,
            scheme="http",
            username="ana",
            password=self.text if text is None else text,
        )
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def refuses(self) -> bool:
        """Whether the token opens nothing any more."""
        try:
            self.rows("SELECT row FROM lakewarden.tables")
        except TApplicationException as error:
            assert "not accepted" in str(error)
            return True
        return False


@pytest.fixture(scope="module")
def gated(node: Node) -> Iterator[Gated]:
    home = open_services(home=node.folder / "tokens", flags={})
    initialise(home, real_user())
    token, text = create_token(home, "ana", lifetime=None, caller=ADMIN)
    node.cluster.apply(*volume("gated", node.folder / "gated"))
    file = values(
        node.folder / "gated.yaml",
        claim="gated",
        settings={"gateway": {"writers": "ana"}},
        gateway={
            "enabled": True,
            "tokensSecret": "tokens",
            "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
            **LAKE_MOUNTED,
        },
    )
    found = Gated(Installation(node.cluster, "gw", str(node.lake), file, node.seconds), home, token, text)
    found.publish()
    found.installation.install()
    yield found
    node.cluster.helm("uninstall", "gw", "--wait")


def test_who_has_a_token_is_answered_from_system_tables_and_by_spark(gated: Gated) -> None:
    one = gated.installation
    one.table("asked", "mode=observe")
    assert gated.rows("SELECT name FROM lakewarden.tables WHERE name = 'db.asked'") == [("db.asked",)]
    assert gated.rows("SELECT count(*), max(id) FROM delta.`/lake/asked`") == [(FILES * 10, FILES * 10 - 1)]
    gated.rows("UPDATE delta.`/lake/asked` SET id = -1 WHERE id < 10")
    assert sorted(one.read("asked").to_pyarrow_table()["id"].to_pylist())[:11] == [-1] * 10 + [10]
    (commit,) = one.read("asked").history(1)
    assert commit["operation"] == "UPDATE" and '"ana"' in commit["userMetadata"]
    with pytest.raises(TApplicationException, match="not accepted"):
        gated.rows("SELECT row FROM lakewarden.tables", text="lw_a_b")


def test_a_revoked_token_opens_nothing_though_nothing_is_started_again(gated: Gated) -> None:
    one, pods = gated.installation, gated.installation.ready("gateway")
    assert not gated.refuses()
    revoke_token(gated.home, gated.token.token_id, caller=ADMIN)
    gated.publish()
    one.until("a revoked token is refused", gated.refuses, 180)  # a kubelet looks every minute or so
    assert one.ready("gateway") == pods
