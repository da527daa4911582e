"""What tests of telemetry share."""

from collections.abc import Iterator

import pytest

from support.servers.receivers import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A server that keeps what it is sent."""
    one = Receiver()
    yield one
    one.close()
