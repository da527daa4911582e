"""Somebody who comes right before a governed statement publishes what it has written to an Iceberg table."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lakewarden.jobs.session.iceberg.staged_writes import StagedWrite

__all__ = ["before_publishing"]


@contextmanager
def before_publishing(act: Callable[[], Any]) -> Iterator[None]:
    """Let somebody act once: the rows of the next statement are ready, and no snapshot has them yet."""
    waiting, publish = [act], StagedWrite._publish

    def later(self: StagedWrite, plan: Any) -> None:
        if waiting:
            waiting.pop()()
        publish(self, plan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StagedWrite, "_publish", later)
        yield
