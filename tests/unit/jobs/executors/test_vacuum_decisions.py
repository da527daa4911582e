"""What a vacuum would delete, refuses to delete, and asks consent for: on folders with real files, without Spark."""

import json
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ConflictError, ConsentError, PreconditionError, UnreadableError
from lakewarden.catalog.formats.delta.retention import FILES
from lakewarden.catalog.formats.port import Head, LogProblem, Tombstone
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.executors.vacuum import vacuum
from support.builders.maintenance import (
    NOW,
    AskedEngine,
    ValueReader,
    commit,
    context,
    data_file,
    seen,
    tombstone,
)

WEEK = 7 * 86_400
RETENTION = {"delta.deletedFileRetentionDuration": "interval 7 days"}
HISTORY = [commit(0, 30), commit(1, 20), commit(2, 10), commit(3, 1)]


def made(folder: Path, *names: str, age_days: float = 30) -> Path:
    """Files of ten bytes each, old."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"0123456789")
        moment = (NOW - timedelta(days=age_days)).timestamp()
        os.utime(path, (moment, moment))
    return folder


def reader(folder: Path, removed: Sequence[Tombstone], **changes: object) -> ValueReader:
    head = seen(
        canonical(str(folder)),
        3,
        committed_at=HISTORY[-1].committed_at,
        **({"files": 10, "bytes": 1000, "properties": RETENTION} | changes),
    )
    return ValueReader(observation=head, history=HISTORY, removed=removed, live=[data_file("live", 10)])


def on_disk(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def lite(**changes: object) -> Vacuum:
    return Vacuum(**({"requires": Head(3), "retention_seconds": WEEK} | changes))  # type: ignore[arg-type]  # by name


def test_only_files_that_no_protected_version_reads_are_deleted(tmp_path: Path) -> None:
    made(tmp_path, "old", "p=a%2Fb/ü x", "promised", "vector.bin", "shared.bin", "live")
    removed = [
        tombstone("old", 1, 20, "vector.bin"),
        tombstone("p=a%2Fb/ü x", 2, 10),
        tombstone("gone already", 1, 20),
        tombstone("promised", 3, 1, "shared.bin"),
        tombstone("old", 1, 20, "shared.bin"),
    ]
    before = on_disk(tmp_path)
    report = vacuum(context(str(tmp_path), reader(tmp_path, removed), AskedEngine(begun=4)), lite())
    assert before - on_disk(tmp_path) == {"old", "p=a%2Fb/ü x", "vector.bin"}
    assert (report.files, report.bytes, report.committed_version) == (3, 30, 6)
    assert report.details is not None and json.loads(report.details) == {
        "full": False,
        "oldest_protected_version": 2,
        "empty_folders": 0,
        "kept": {"promised": 1},
    }


def test_a_dry_run_names_the_derived_table_that_holds_files_back(tmp_path: Path) -> None:
    made(tmp_path, "old", "promised", "live")
    removed = [tombstone("old", 1, 20), tombstone("promised", 3, 1)]
    held = "db.report is derived from it and promises 7 days"
    report = vacuum(
        context(str(tmp_path), reader(tmp_path, removed), AskedEngine()), lite(dry_run=True, held_by=held)
    )
    assert report.message == f"would delete 1 file (10 B) ({held})"
    assert json.loads(report.details or "")["held_by"] == held


@pytest.mark.parametrize(
    ("removed", "words"),
    [
        pytest.param([], "nothing can go", id="nothing was removed"),
        pytest.param([tombstone("f", 3, 1)], "1 removed file still needed", id="the promise needs it"),
        pytest.param(
            [tombstone("/elsewhere/f", 1, 20)], "1 removed file still", id="a shallow clone's source"
        ),
        pytest.param([tombstone("vanished", 1, 20)], "nothing can go", id="somebody deleted it before"),
    ],
)
def test_where_nothing_can_go_spark_is_not_asked(
    tmp_path: Path, removed: list[Tombstone], words: str
) -> None:
    made(tmp_path, "f")
    engine = AskedEngine()
    report = vacuum(context(str(tmp_path), reader(tmp_path, removed), engine), lite())
    assert report.skipped and words in report.message and engine.asked == []


def test_the_tables_own_longer_retention_counts(tmp_path: Path) -> None:
    properties = {"delta.deletedFileRetentionDuration": "interval 3 weeks"}
    engine = AskedEngine()
    one = reader(made(tmp_path, "f"), [tombstone("f", 1, 20)], properties=properties)
    assert vacuum(context(str(tmp_path), one, engine), lite()).skipped


def test_a_dry_run_counts_and_changes_nothing(tmp_path: Path) -> None:
    engine = AskedEngine()
    one = reader(made(tmp_path, "f", "g"), [tombstone("f", 1, 20), tombstone("g", 1, 20)])
    report = vacuum(context(str(tmp_path), one, engine), lite(dry_run=True, max_share=0.0))
    assert (report.message, report.files, report.bytes) == ("would delete 2 files (20 B)", 2, 20)
    assert engine.asked == [] and not report.skipped


@pytest.mark.parametrize(
    "head", [{"files": 1, "bytes": 1000}, {"files": 10, "bytes": 9}], ids=["files", "bytes"]
)
def test_beyond_the_size_breaker_somebody_has_to_agree(tmp_path: Path, head: dict[str, object]) -> None:
    engine = AskedEngine()
    removed = [tombstone("f", 1, 20), tombstone("g", 1, 20)]
    one = reader(made(tmp_path, "f", "g"), removed, **head)
    with pytest.raises(
        ConsentError, match=r"would delete 2 of .* \(20 B of .*max_share = 50% allows"
    ) as refused:
        vacuum(context(str(tmp_path), one, engine), lite())
    assert "--consent" in refused.value.hint and engine.asked == []
    made(tmp_path, "live")
    assert vacuum(context(str(tmp_path), one, engine), lite(consented=True)).files == 2
    assert on_disk(tmp_path) == {"live"}


def test_a_table_that_moved_on_is_vacuumed_as_it_is_now(tmp_path: Path) -> None:
    made(tmp_path, "f")
    report = vacuum(
        context(str(tmp_path), reader(tmp_path, [tombstone("f", 1, 20)]), AskedEngine()),
        lite(requires=Head(2)),
    )
    assert report.files == 1 and on_disk(tmp_path) == set()


def test_a_table_that_went_back_or_is_broken_is_left_alone(tmp_path: Path) -> None:
    engine = AskedEngine()
    with pytest.raises(ConflictError, match="at version 3, below 4"):
        vacuum(context(str(tmp_path), reader(tmp_path, []), engine), lite(requires=Head(4)))
    with pytest.raises(ConflictError, match="at version 3; this was decided on 2"):
        vacuum(context(str(tmp_path), reader(tmp_path, []), engine), lite(requires=Head(2), consented=True))
    broken = ValueReader(observation=LogProblem(check="log_readable", message="Version 2 is not JSON."))
    with pytest.raises(UnreadableError, match="not JSON"):
        vacuum(context(str(tmp_path), broken, engine), lite())
    assert engine.asked == []


def test_a_listing_deletes_what_nobody_needs_and_nobody_touched(tmp_path: Path) -> None:
    made(tmp_path, "orphan", "promised", "vector.bin", "removed")
    made(tmp_path, "being written", age_days=1)
    engine = AskedEngine(listed=("orphan", "promised", "vector.bin", "removed", "being written", "gone"))
    removed = [tombstone("promised", 3, 1, "vector.bin"), tombstone("removed", 1, 20)]
    before = on_disk(tmp_path)
    report = vacuum(context(str(tmp_path), reader(tmp_path, removed), engine), lite(full=True))
    assert before - on_disk(tmp_path) == {"orphan", "removed"}
    assert engine.asked == ["unreferenced", "agreed", "begin 2"] and report.files == 2


@pytest.mark.parametrize("full", [False, True], ids=["by the log", "by a listing"])
def test_with_a_hole_in_the_log_nothing_goes(tmp_path: Path, full: bool) -> None:
    """What commit 2 removed, and version 1 reads, is told by nothing any more."""
    one = reader(made(tmp_path, "removed in 2", "removed in 1"), [tombstone("removed in 1", 1, 20)])
    one.history = [commit(0, 30), commit(1, 20), commit(3, 1)]
    engine = AskedEngine(listed=("removed in 2", "removed in 1"))
    before = on_disk(tmp_path)
    report = vacuum(context(str(tmp_path), one, engine), lite(full=full, consented=True))
    assert (report.skipped, on_disk(tmp_path), engine.asked) == (True, before, [])
    assert report.message.startswith("nothing can go: commits since version 2, the oldest that is")


@pytest.mark.parametrize("value", [None, "interval 1 day"])
def test_a_listing_needs_the_tables_own_retention_to_be_long_enough(
    tmp_path: Path, value: str | None
) -> None:
    properties = {"delta.deletedFileRetentionDuration": value} if value else {}
    one = reader(tmp_path, [], properties=properties)
    engine = AskedEngine()
    with pytest.raises(
        PreconditionError, match="at least 30 days before the folder may be listed"
    ) as refused:
        vacuum(context(str(tmp_path), one, engine), lite(full=True, retention_seconds=30 * 86_400))
    assert "properties" in refused.value.hint and engine.asked == []


@pytest.mark.parametrize("full", [False, True], ids=["by the log", "by a listing"])
@pytest.mark.parametrize("value", ["soon", "interval 1 month"])
def test_a_retention_that_is_no_duration_may_mean_any_so_nothing_goes(
    tmp_path: Path, value: str, full: bool
) -> None:
    one = reader(tmp_path, [tombstone("removed", 1, 4_000)], properties={**RETENTION, FILES: value})
    engine = AskedEngine(listed=("removed",))
    with pytest.raises(PreconditionError, match=f"{FILES} of .* is not a duration") as refused:
        vacuum(context(str(tmp_path), one, engine), lite(full=full))
    assert "ALTER TABLE" in refused.value.hint and engine.asked == []


def test_a_listing_never_enters_another_table(tmp_path: Path) -> None:
    inner = canonical(str(tmp_path / "inner"))
    engine = AskedEngine()
    with pytest.raises(PreconditionError, match=r"would enter .*inner, which is a table"):
        action = lite(full=True, excluded=(canonical("/elsewhere"), inner))
        vacuum(context(str(tmp_path), reader(tmp_path, []), engine), action)
    assert engine.asked == []


def test_a_cancelled_run_deletes_nothing(tmp_path: Path) -> None:
    engine = AskedEngine()
    ctx = context(str(tmp_path), reader(made(tmp_path, "f"), [tombstone("f", 1, 20)]), engine)

    def lost() -> None:
        raise ConflictError("The run was cancelled.")

    object.__setattr__(ctx, "still_ours", lost)
    with pytest.raises(ConflictError, match="cancelled"):
        vacuum(ctx, lite())
    assert engine.asked == []
