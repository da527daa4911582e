"""Many registrations at once: what holds for one holds for each, and what is refused refuses itself alone."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.errors import LakewardenError, NotAllowedError, RefusedError, UnavailableError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import Finding, Mode, PolicySettings, Source, TableRow, TableState
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.registry.batch import Came, foresee_batch, register_batch
from lakewarden.catalog.registry.governance import set_policy
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.registry.removal import drop
from lakewarden.catalog.registry.service import Registered, Registry
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.port import HEALTH, TABLES
from support.builders.registries import ANA, ROOT, folder, made_registry
from support.builders.tables import FakeReader


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def registry(reader: FakeReader) -> Registry:
    return made_registry(reader)


def wanted(*places: str) -> list[WantedTable]:
    return [WantedTable(where=place) for place in places]


def done(came: Came) -> Registered:
    assert isinstance(came, Registered), came
    return came


def refused(came: Came) -> LakewardenError:
    assert isinstance(came, LakewardenError), came
    return came


def managed(registry: Registry) -> dict[str, TableRow]:
    rows = sorted(registry.store.rows(TABLES).all(), key=lambda one: one.row)
    return {row.name: row for row in rows if row.source is not Source.SELF}


def test_a_batch_is_one_commit_per_system_table_and_each_row_has_its_number_and_health(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    places = [folder(reader, tmp_path / f"t{number}") for number in range(30)]
    before = registry.store.rows(TABLES).version, registry.store.rows(HEALTH).version
    came = [done(one) for one in register_batch(registry, wanted(*places), actor=ANA)]
    after = registry.store.rows(TABLES).version, registry.store.rows(HEALTH).version
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1)
    assert [(one.row.row, one.row.name) for one in came] == [
        (7 + number, f"default.t{number}") for number in range(30)
    ]
    assert all(one.created and not one.moved and one.row.owner == "ana" for one in came)
    assert {one.row.name: one.row for one in came} == managed(registry)
    for one in came:
        assert one.health is not None and registry.store.rows(HEALTH).get(one.row.table_id) == one.health


def test_it_comes_to_what_one_after_the_other_would_have_come_to(reader: FakeReader, tmp_path: Path) -> None:
    places = [
        folder(reader, tmp_path / "a" / "events"),
        folder(reader, tmp_path / "b" / "events"),
        folder(reader, tmp_path / "a" / "events" / "inner"),
        folder(reader, tmp_path / "twin", uuid=f"uuid-{canonical(str(tmp_path / 'a' / 'events'))}"),
        f"{tmp_path}/nowhere",
        f"{tmp_path}/b/../a/events/",
        folder(reader, tmp_path / "broken"),
    ]
    reader.tables[places[-1]] = LogProblem(check="log_readable", message="A commit is missing.")
    together, apart = made_registry(reader), made_registry(reader)
    said = list[str]()
    for place in places:
        try:
            register(apart, place, actor=ANA)
        except LakewardenError as error:
            said.append(str(error))
    came = register_batch(together, wanted(*places), actor=ANA)
    assert [str(one) for one in came if isinstance(one, LakewardenError)] == said
    assert len(said) == 3
    assert [replace(row, table_id="") for row in managed(together).values()] == [
        replace(row, table_id="") for row in managed(apart).values()
    ]
    assert managed(together)["default.broken"].state is TableState.QUARANTINED
    assert not done(came[5]).created


def test_what_is_managed_already_is_neither_read_nor_written_again(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    asked = [
        WantedTable(
            where=folder(reader, tmp_path / name),
            name=f"db.{name}",
            owner="ana",
            policy={"mode": Mode.MANAGE},
        )
        for name in ("a", "b")
    ]
    register_batch(registry, asked, actor=ANA)
    reads, versions = reader.reads, (registry.store.rows(TABLES).version, registry.store.rows(HEALTH).version)
    again = register_batch(registry, asked, actor=ANA)
    assert [done(one).created for one in again] == [False, False]
    assert reader.reads == reads
    assert (registry.store.rows(TABLES).version, registry.store.rows(HEALTH).version) == versions


def test_a_row_that_was_left_without_health_gets_it(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    place = folder(reader, tmp_path / "t")
    row = register(registry, place, actor=ANA).row
    [health] = registry.store.rows(HEALTH).find(table_id=row.table_id)
    registry.store.edit(
        HEALTH, lambda _: (), delete=lambda _: [health], because="killed before it was written"
    )
    [came] = register_batch(registry, wanted(place), actor=ANA)
    assert not done(came).created
    assert registry.store.rows(HEALTH).get(row.table_id) == health


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"name": "db.other"}, "its name is db.t"),
        ({"owner": "bo"}, "its owner is ana"),
        ({"policy": {"vacuum.retention": 30 * 86_400}}, "its vacuum.retention is not set"),
    ],
)
def test_a_managed_table_does_not_silently_become_another_one(
    registry: Registry, reader: FakeReader, tmp_path: Path, other: dict[str, object], sentence: str
) -> None:
    place = folder(reader, tmp_path / "t")
    before = register(registry, place, actor=ANA, name="db.t").row
    asked = replace(WantedTable(where=place), **other)  # type: ignore[arg-type]  # one of three fields
    [came] = register_batch(registry, [asked], actor=ANA)
    assert sentence in str(refused(came)) and isinstance(came, RefusedError)
    assert managed(registry) == {"db.t": before}


def test_a_policy_is_in_the_first_version_of_the_row_and_its_floors_and_promise_count(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    asked = [
        WantedTable(where=folder(reader, tmp_path / name), policy=policy)
        for name, policy in (
            ("fine", {"vacuum.retention": 30 * 86_400}),
            ("short", {"vacuum.retention": 86_400}),
        )
    ]
    fine, short = register_batch(registry, asked, actor=ANA)
    assert done(fine).row.policy == PolicySettings(vacuum_retention_seconds=30 * 86_400)
    assert "vacuum.retention" in str(refused(short))
    assert list(managed(registry)) == ["default.fine"]


def test_whose_table_it_is_to_be_is_asked_of_each(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    asked = [
        WantedTable(where=folder(reader, tmp_path / name), owner=owner)
        for name, owner in (("mine", "ana"), ("theirs", "bo"))
    ]
    mine, theirs = register_batch(registry, asked, actor=ANA)
    assert done(mine).row.owner == "ana"
    assert isinstance(refused(theirs), NotAllowedError)
    [theirs] = register_batch(registry, asked[1:], actor=ROOT)
    assert done(theirs).row.owner == "bo"


def test_a_dropped_table_and_one_that_has_moved_are_told_apart_in_a_batch(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    gone, old = folder(reader, tmp_path / "gone"), folder(reader, tmp_path / "old", uuid="u")
    drop(registry, register(registry, gone, actor=ANA).row.name, actor=ANA)
    before = register(registry, old, actor=ANA, name="db.moved").row
    del reader.tables[old]
    new = folder(reader, tmp_path / "new", uuid="u")
    asked = [WantedTable(where=gone), WantedTable(where=new, moved=True)]
    dropped, moved = register_batch(registry, asked, actor=ANA)
    assert "was dropped from management" in str(refused(dropped))
    assert done(moved).moved and done(moved).row.table_id == before.table_id
    assert managed(registry)["db.moved"].location == new


def test_one_whose_twin_cannot_be_looked_at_refuses_itself_alone(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    old = folder(reader, tmp_path / "old", uuid="u")
    register(registry, old, actor=ANA, name="db.old")
    places = [folder(reader, tmp_path / "new", uuid="u"), folder(reader, tmp_path / "fine")]

    class Away(FakeReader):
        def is_table(self, location: str) -> bool:
            if location == old:
                raise UnavailableError("The storage does not answer.")
            return super().is_table(location)

    there = replace(registry, readers=(Away(tables=reader.tables),))
    new, fine = register_batch(there, wanted(*places), actor=ANA)
    assert "cannot be seen: its disk may be away" in str(refused(new))
    assert done(fine).created and set(managed(registry)) == {"db.old", "default.fine"}


def test_names_made_of_places_are_free_however_many_are_alike(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    places = [folder(reader, tmp_path / str(number) / "part") for number in range(40)]
    register_batch(registry, wanted(*places[:25]), actor=ANA)
    register_batch(registry, wanted(*places[25:]), actor=ANA)
    assert set(managed(registry)) == {"default.part", *(f"default.part_{number}" for number in range(2, 41))}


def test_one_that_cannot_be_looked_at_refuses_itself_alone(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    places = [folder(reader, tmp_path / name) for name in ("fine", "away", "closed", "odd")]
    observe = reader.observe

    def inspect(
        row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem
    ) -> tuple[Finding, ...]:
        if row.location == places[1]:
            raise UnavailableError("The storage does not answer.")
        if row.location == places[2]:
            raise PermissionError(13, "Permission denied", "part.parquet")
        return ()

    class Closed(FakeReader):
        def observe(self, location: str, *, since: Observation | None = None) -> Observation | LogProblem:
            if location == places[3]:
                raise PermissionError(13, "Permission denied", "_delta_log")
            return observe(location)

    there = replace(registry, inspect=inspect, readers=(Closed(tables=reader.tables),))
    fine, away, closed, odd, again = register_batch(there, wanted(*places, places[1]), actor=ANA)
    assert done(fine).created
    assert [str(refused(one)) for one in (away, closed, odd, again)] == [
        "The storage does not answer.",
        "Permission denied (part.parquet).",
        "Permission denied (_delta_log).",
        "The storage does not answer.",
    ]
    assert list(managed(registry)) == ["default.fine"]


def test_only_what_changed_meanwhile_is_judged_again(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    places = [folder(reader, tmp_path / name) for name in ("a", "b", "c")]
    judged = list[str]()

    def inspect(
        row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem
    ) -> tuple[Finding, ...]:
        if row.name == "first.b" and "first.b" not in judged:
            set_policy(registry, "first.*", {"vacuum.retention": 20 * 86_400}, actor=ROOT)
        judged.append(row.name)
        return ()

    asked = [
        WantedTable(where=place, name=name)
        for place, name in zip(places, ("first.a", "first.b", "second.c"), strict=True)
    ]
    came = register_batch(replace(registry, inspect=inspect), asked, actor=ANA)
    assert all(done(one).created for one in came)
    assert sorted(judged) == ["first.a", "first.a", "first.b", "first.b", "second.c"]


def test_two_who_register_the_same_at_once_end_with_one_row_each(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    places = [folder(reader, tmp_path / f"t{number}") for number in range(20)]
    begin = threading.Barrier(4)
    came: list[list[Came]] = []

    def do() -> None:
        begin.wait()
        came.append(register_batch(registry, wanted(*places), actor=ANA))

    threads = [threading.Thread(target=do) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(managed(registry)) == 20
    assert sum(done(one).created for each in came for one in each) == 20


def test_a_dry_run_comes_to_the_same_and_writes_nothing(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    asked = wanted(
        folder(reader, tmp_path / "a"), f"{tmp_path}/nowhere", folder(reader, tmp_path / "a" / "b")
    )
    versions = registry.store.rows(TABLES).version, registry.store.rows(HEALTH).version
    foreseen = foresee_batch(registry, asked, actor=ANA)
    assert (registry.store.rows(TABLES).version, registry.store.rows(HEALTH).version) == versions
    came = register_batch(registry, asked, actor=ANA)
    assert [str(one) if isinstance(one, LakewardenError) else one.row.name for one in foreseen] == [
        str(one) if isinstance(one, LakewardenError) else one.row.name for one in came
    ]


def test_a_move_into_or_around_a_managed_table_is_refused(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    outer = folder(reader, tmp_path / "outer")
    old = folder(reader, tmp_path / "old", uuid="u")
    register_batch(registry, wanted(outer, old), actor=ANA)
    del reader.tables[old]
    new = folder(reader, tmp_path / "outer" / "new", uuid="u")
    [came] = register_batch(registry, [WantedTable(where=new, moved=True)], actor=ANA)
    assert "lies inside the managed table default.outer" in str(refused(came))
    assert managed(registry)["default.old"].location == old
    del reader.tables[new]
    deeper = folder(reader, tmp_path / "old" / "deeper", uuid="u")
    [came] = register_batch(registry, [WantedTable(where=deeper, moved=True)], actor=ANA)
    assert done(came).moved and done(came).row.location == deeper, "its own old place is not in its way"


def test_the_place_of_a_twin_is_looked_at_once_however_many_copies_are_asked_for(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    first = folder(reader, tmp_path / "first", uuid="u")
    register_batch(registry, wanted(first), actor=ANA)
    looks = list[str]()

    class Counting(FakeReader):
        def is_table(self, location: str) -> bool:
            looks.append(location)
            return super().is_table(location)

    copies = [folder(reader, tmp_path / f"copy{number}", uuid="u") for number in range(5)]
    there = replace(registry, readers=(Counting(tables=reader.tables),))
    came = register_batch(there, wanted(*copies), actor=ANA)
    assert all("carries the same table UUID" in str(refused(one)) for one in came)
    assert looks.count(first) == 1


def test_whoever_waits_is_told_of_each_judgement(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    judged = list[int]()
    places = [folder(reader, tmp_path / "a"), folder(reader, tmp_path / "b"), f"{tmp_path}/nowhere"]
    register_batch(registry, wanted(*places), actor=ANA, judged=lambda: judged.append(1))
    assert len(judged) == 2


def test_whoever_waits_is_told_of_each_look(registry: Registry, reader: FakeReader, tmp_path: Path) -> None:
    looks = list[int]()
    places = [folder(reader, tmp_path / "a"), f"{tmp_path}/nowhere"]
    register_batch(registry, wanted(*places), actor=ANA, looked=lambda: looks.append(1))
    assert len(looks) == 2
