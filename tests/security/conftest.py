"""One gateway for all attacks."""

from collections.abc import Iterator

import pytest

from support.security.besieged import Besieged, besieged_gateway


@pytest.fixture(scope="session")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Besieged]:
    with besieged_gateway(tmp_path_factory.mktemp("security")) as there:
        yield there
