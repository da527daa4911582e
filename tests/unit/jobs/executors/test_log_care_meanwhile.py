"""Log care beside an owner who wants the log kept: on a real log, without Spark."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.errors import ConflictError, RevokedError
from lakewarden.catalog.formats.port import Head
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.executors.log_care import log_care
from lakewarden.jobs.runs.meanwhile import Meanwhile
from lakewarden.jobs.runs.port import FileChange
from support.builders.runs import Bench, delta_table
from support.fakes.engine import FakeEngine


@dataclass
class _Between:
    """An engine in front of whose deletions somebody does something."""

    engine: FakeEngine
    meanwhile: Callable[[], object]

    def __getattr__(self, name: str) -> object:
        return getattr(self.engine, name)

    def clean_log(
        self, location: str, *, keep_from: int, proceed: Callable[[], None], still_ours: Callable[[], None]
    ) -> FileChange:
        self.meanwhile()
        return self.engine.clean_log(location, keep_from=keep_from, proceed=proceed, still_ours=still_ours)


def test_the_log_stays_that_its_owner_wants_kept_meanwhile(tmp_path: Path) -> None:
    location, bench = delta_table(tmp_path / "t", commits=12), Bench()
    DeltaTable(location).create_checkpoint()
    seen = bench.seen(location)

    def keep() -> None:
        DeltaTable(location).alter.set_table_properties({"delta.logRetentionDuration": "interval 365 days"})

    engine = _Between(bench.engine, keep)
    ctx = replace(bench.context(location), engine=engine)  # type: ignore[arg-type]  # but for that it is one
    action = LogCare(
        requires=seen.at,
        checkpoint=False,
        clean_before_version=11,
        retention_seconds=0,
    )
    with pytest.raises(ConflictError, match="keep more by now"):
        log_care(ctx, action)
    assert len(list((tmp_path / "t" / "_delta_log").glob("*.json"))) == 13
    assert log_care(bench.context(location), replace(action, requires=Head(12))).skipped


def test_the_log_stays_whose_cleanup_is_forbidden_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, bench = delta_table(tmp_path / "t", commits=12), Bench()
    DeltaTable(location).create_checkpoint()
    read, reads = Meanwhile.require_nothing_else, list[str]()

    def slow(meanwhile: Meanwhile) -> None:
        read(meanwhile)
        reads.append("read")

    class Held:
        def ask(self, table_id: str, name: str, location: str) -> None:
            if len(reads) == 2:  # once at the beginning, once before the first batch
                raise RevokedError("db.t is under legal hold (case 4711).")

    monkeypatch.setattr(Meanwhile, "require_nothing_else", slow)
    action = LogCare(
        requires=bench.seen(location).at, checkpoint=False, clean_before_version=11, retention_seconds=0
    )
    log = tmp_path / "t" / "_delta_log"
    before = sorted(log.iterdir())
    with pytest.raises(RevokedError, match="case 4711"):
        log_care(replace(bench.context(location), guard=Held()), action)  # type: ignore[arg-type]  # nothing else is asked
    assert sorted(log.iterdir()) == before
