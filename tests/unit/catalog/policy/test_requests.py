"""Table properties ask; the row decides."""

from dataclasses import replace
from datetime import UTC, datetime

from lakewarden.catalog.model.rows import Mode, Source, TableRow
from lakewarden.catalog.policy.property_requests import has_new_requests, record_requests

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROW = TableRow(
    row=7, table_id="t", name="db.t", source=Source.REGISTER,
    registered_at=NOW, registered_by="ana", updated_at=NOW, updated_by="ana",
)  # fmt: skip
NINE_DAYS = {"lakewarden.vacuum.retention": "9 days", "delta.appendOnly": "true"}


def test_a_request_is_recorded_once() -> None:
    row, problems = record_requests(ROW, NINE_DAYS, rewound=False)
    assert row.policy.vacuum_retention_seconds == 9 * 86_400
    assert problems == ()
    assert not has_new_requests(row, NINE_DAYS)


def test_a_policy_set_later_is_not_undone_by_the_old_request() -> None:
    row, _ = record_requests(ROW, NINE_DAYS, rewound=False)
    row = replace(row, policy=replace(row.policy, vacuum_retention_seconds=20 * 86_400))
    again, _ = record_requests(row, NINE_DAYS, rewound=False)
    assert again == row


def test_what_a_restore_brings_back_is_noted_and_not_obeyed() -> None:
    row, _ = record_requests(ROW, {"lakewarden.mode": "manage"}, rewound=False)
    rewound, problems = record_requests(row, {"lakewarden.mode": "observe"}, rewound=True)
    assert (rewound.policy.mode, problems) == (Mode.MANAGE, ())
    assert not has_new_requests(rewound, {"lakewarden.mode": "observe"})


def test_a_request_below_a_floor_or_unreadable_is_named_and_not_obeyed() -> None:
    row, problems = record_requests(
        ROW, {"lakewarden.vacuum.retention": "5 s", "lakewarden.mode": "maybe"}, rewound=False
    )
    assert row.policy.vacuum_retention_seconds is None
    assert len(problems) == 2
    assert any("below the floor" in one for one in problems)


def test_a_property_closes_a_table_and_never_opens_it() -> None:
    closed, problems = record_requests(ROW, {"lakewarden.access.closed": "yes"}, rewound=False)
    assert (closed.policy.access_closed, problems) == (True, ())
    still, (problem,) = record_requests(closed, {"lakewarden.access.closed": "no"}, rewound=False)
    assert still.policy.access_closed is True and "never opens it" in problem
