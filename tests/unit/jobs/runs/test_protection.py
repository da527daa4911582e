"""Which versions a promise protects, and which removed files can go."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.catalog.formats.port import Commit, Tombstone
from lakewarden.jobs.runs.protection import KeepReason, protect, sort_tombstones
from support.builders.maintenance import DAY, NOW, commit, tombstone


@pytest.mark.parametrize(
    ("ages", "oldest"),
    [
        pytest.param([30, 20, 10], 2, id="all old: only head"),
        pytest.param([30, 20, 3, 1], 1, id="the parent of the oldest young commit, however old"),
        pytest.param([3, 2, 1], 0, id="all young: everything"),
        pytest.param([30, 7, 1], 1, id="exactly as old as the promise is no longer promised"),
        pytest.param([30, 1, 20, 10], 0, id="an older clock after a younger one: the younger reading wins"),
        pytest.param([30, -300, 10], 0, id="a clock from the future protects, too"),
    ],
)
def test_the_promise_protects_parents_of_young_commits(ages: list[float], oldest: int) -> None:
    commits = [commit(version, age) for version, age in enumerate(ages)]
    protection = protect(commits, head=len(ages) - 1, now=NOW, promise=7 * DAY)
    assert protection.oldest_version == oldest and protection.is_logged


def test_a_log_that_begins_in_the_promise_still_proves_what_it_shows() -> None:
    protection = protect([commit(5, 2), commit(6, 1)], head=6, now=NOW, promise=7 * DAY)
    assert protection.oldest_version == 4 and protection.is_logged


@pytest.mark.parametrize(
    "commits",
    [
        pytest.param(
            [commit(0, 9), commit(1, 3), commit(3, 1)], id="a hole after the oldest protected version"
        ),
        pytest.param(
            [commit(0, 9), commit(2, 3), commit(3, 1)],
            id="a hole at the oldest protected version: it may have been young",
        ),
        pytest.param([commit(0, 9), commit(1, 8)], id="head's own commit is missing"),
        pytest.param([], id="no commits at all"),
    ],
)
def test_without_the_commits_nothing_is_proved(commits: list[Commit]) -> None:
    protection = protect(commits, head=3, now=NOW, promise=7 * DAY)
    assert not protection.is_logged
    ordered = sort_tombstones([tombstone("f", 1, 99)], protection, now=NOW, retention=7 * DAY)
    assert ordered.safe == () and [reason for _, reason in ordered.kept] == [KeepReason.UNPROVEN]


def test_a_hole_before_the_promise_does_not_matter() -> None:
    commits = [commit(0, 90), commit(5, 20), commit(6, 3)]
    protection = protect(commits, head=6, now=NOW, promise=7 * DAY)
    assert protection.oldest_version == 5 and protection.is_logged


@pytest.mark.parametrize(
    ("removed", "reason"),
    [
        pytest.param(tombstone("f", 2, 20), None, id="removed before the oldest protected version"),
        pytest.param(tombstone("f", 3, 20), None, id="removed in it: it does not read it"),
        pytest.param(
            tombstone("f", 4, 20),
            KeepReason.PROMISED,
            id="removed after it, whatever the writer's clock says",
        ),
        pytest.param(tombstone("f", 3, 2), KeepReason.RETENTION, id="removed too recently"),
        pytest.param(
            tombstone("f", None, 20), None, id="only a checkpoint remembers it: older than every commit"
        ),
        pytest.param(
            tombstone("f", None, 2),
            KeepReason.RETENTION,
            id="only a checkpoint remembers it, but it is young",
        ),
    ],
)
def test_removed_files_go_when_no_protected_version_reads_them(
    removed: Tombstone, reason: KeepReason | None
) -> None:
    commits = [commit(version, age) for version, age in enumerate([40, 30, 20, 10, 5, 1])]
    protection = protect(commits, head=5, now=NOW, promise=7 * DAY)
    assert protection.oldest_version == 3
    ordered = sort_tombstones([removed], protection, now=NOW, retention=7 * DAY)
    assert [why for _, why in ordered.kept] == ([reason] if reason else [])
    assert len(ordered.safe) == (reason is None)


@given(
    ages=st.lists(st.floats(-2, 30), min_size=1, max_size=20),
    removals=st.lists(st.integers(1, 19), max_size=20),
    days=st.floats(0.1, 20),
)
def test_no_safe_file_is_read_by_the_parent_of_a_commit_inside_the_promise(
    ages: list[float], removals: list[int], days: float
) -> None:
    commits = [commit(version, age) for version, age in enumerate(ages)]
    promise, head = timedelta(days=days), len(ages) - 1
    removed = [tombstone(f"f{version}", version, ages[version]) for version in removals if version <= head]
    protection = protect(commits, head=head, now=NOW, promise=promise)
    ordered = sort_tombstones(removed, protection, now=NOW, retention=promise)
    undoable = {one.version - 1 for one in commits if NOW - one.committed_at < promise} | {head}
    # A file removed in version v may be read by every version before v.
    assert all(one.removed_in is not None and one.removed_in <= min(undoable) for one in ordered.safe)
    assert len(ordered.safe) + len(ordered.kept) == len(removed)
