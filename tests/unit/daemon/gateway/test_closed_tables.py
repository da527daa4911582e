"""Which tables a reader of the gateway finds closed."""

from dataclasses import dataclass, replace

import pytest

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.model.rows import GONE, PolicySettings, RowKind, Source, TableRow, TableState
from lakewarden.daemon.gateway.access.closed_tables import require_open
from lakewarden.daemon.gateway.access.owned_tables import require_own
from support.builders.callers import actor
from support.builders.system_samples import table_row
from support.fakes.system_store import FakeSystemStore


@dataclass(frozen=True)
class Seen:
    name: str
    location: str | None
    format: str | None = "delta"
    format_id: str | None = None


PAY = replace(table_row(0), name="hr.pay", location="file:///lake/pay", owner="ana", policy=PolicySettings())
CLOSED, OPEN = PolicySettings(access_closed=True), PolicySettings(access_closed=False)


def scope(name: str, policy: PolicySettings) -> TableRow:
    return replace(
        PAY, row=1, table_id=f"scope-{name}", kind=RowKind.SCOPE, name=name, location=None, policy=policy
    )


def is_open(*rows: TableRow, caller: str = "bo", name: str = "hr.pay", location: str | None = None) -> bool:
    store = FakeSystemStore()
    store.create([replace(PAY, row=9, table_id="self", name="lakewarden.tables", source=Source.SELF), *rows])
    try:
        require_open(store, actor(caller), [Seen(name, location)])
    except NotAllowedError as error:
        assert str(error).startswith(f"{caller} may not query ") and error.hint
        return False
    return True


@pytest.mark.parametrize(
    ("table", "scopes", "opened"),
    [
        (PolicySettings(), (), True),
        (CLOSED, (), False),
        (PolicySettings(), (scope("hr.*", CLOSED),), False),
        (PolicySettings(), (scope("*", CLOSED),), False),
        (PolicySettings(), (scope("shop.*", CLOSED),), True),
        (OPEN, (scope("hr.*", CLOSED),), True),
        (PolicySettings(), (scope("*", CLOSED), scope("hr.*", OPEN)), True),
    ],
    ids=[
        "no word",
        "the table",
        "its database",
        "everything",
        "another database",
        "opened",
        "its database opened",
    ],
)
def test_the_narrowest_word_counts(table: PolicySettings, scopes: tuple[TableRow, ...], opened: bool) -> None:
    assert is_open(replace(PAY, policy=table), *scopes) is opened


def test_an_owner_reads_what_is_closed_to_others() -> None:
    assert is_open(replace(PAY, policy=CLOSED), caller="ana")


def test_another_name_for_the_same_place_opens_nothing() -> None:
    assert not is_open(replace(PAY, policy=CLOSED), name="public.copy", location="file:///lake/pay")
    assert is_open(replace(PAY, policy=CLOSED), name="public.copy", location="file:///lake/other")


def test_what_is_not_managed_goes_by_its_scopes() -> None:
    assert not is_open(scope("hr.*", CLOSED), name="hr.unknown")
    assert not is_open(scope("*", OPEN), scope("hr.*", CLOSED), name="hr.unknown")
    assert is_open(scope("*", OPEN), name="hr.unknown")


@pytest.mark.parametrize("state", GONE)
def test_what_was_dropped_opens_nothing_and_stays_closed(state: TableState) -> None:
    gone = replace(PAY, state=state)
    assert not is_open(replace(gone, policy=CLOSED))
    assert not is_open(replace(gone, policy=OPEN), scope("hr.*", CLOSED))
    assert is_open(replace(gone, policy=OPEN))


@pytest.mark.parametrize("state", GONE)
def test_who_owned_a_dropped_table_owns_nothing_at_its_place(state: TableState) -> None:
    """Another table may have been made there."""
    store, seen = FakeSystemStore(), Seen("hr.pay", PAY.location)
    store.create([replace(PAY, state=state)])
    with pytest.raises(NotAllowedError, match="ana may not change rows"):
        require_own(store, actor("ana"), seen)
    store.create([replace(PAY, state=state), replace(PAY, row=2, table_id="new", owner="bo")])
    require_own(store, actor("bo"), seen)
    with pytest.raises(NotAllowedError, match=r"owner: bo\)"):
        require_own(store, actor("ana"), seen)


@pytest.mark.parametrize(
    ("caller", "format_", "may"),
    [("ana", "delta", True), ("bo", "delta", False), ("ana", "parquet", False), ("ana", None, False)],
)
def test_rows_are_changed_by_the_owner_through_an_entry_of_the_tables_own_format(
    caller: str, format_: str | None, may: bool
) -> None:
    store = FakeSystemStore()
    store.create([PAY])
    seen = Seen("hr.any_name", PAY.location, format_)
    if may:
        require_own(store, actor(caller), seen)
    else:
        with pytest.raises(NotAllowedError, match=f"{caller} may not change rows of hr.any_name"):
            require_own(store, actor(caller), seen)


@pytest.mark.parametrize("entry", ["my-db.salaries", "my.db.salaries", "_my-db_.salaries", "My Db.salaries"])
def test_a_closed_namespace_of_odd_letters_closes_what_is_not_managed_yet(entry: str) -> None:
    """By the name that it would be managed as: no scope is called `my-db.*`."""
    name = CatalogAddress(catalog="prod", entry=entry).managed_as
    assert not is_open(scope("my_db.*", CLOSED), name=name)
    assert is_open(scope("my_d.*", CLOSED), name=name)


def test_a_closed_table_stays_closed_wherever_its_metadata_says_that_it_lies() -> None:
    store = FakeSystemStore()
    closed = replace(PAY, policy=CLOSED, format_ids=("id-1", "id-2"))
    store.create([replace(PAY, row=9, table_id="self", name="lakewarden.tables", source=Source.SELF), closed])
    for uuid in closed.format_ids:
        with pytest.raises(NotAllowedError, match=r"hr\.pay"):
            require_open(store, actor("bo"), [Seen("shop.orders", "file:///elsewhere", "iceberg", uuid)])
    require_open(store, actor("bo"), [Seen("shop.orders", "file:///elsewhere", "iceberg", "id-3")])
