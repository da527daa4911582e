"""What a person orders by hand passes the gates that the planner's runs pass, but for what is a person's to decide."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.model.rows import DELTA, Action
from lakewarden.daemon.usecases.runs.orders import order_run
from lakewarden.jobs.actions.registry import SPECS
from lakewarden.jobs.actions.spec import Order
from lakewarden.jobs.engines.registry import lacking
from support.builders.callers import actor
from support.builders.estate import Estate, made_estate

OWNER = actor("bea", admin=True)
ORDERED = sorted(action for action, spec in SPECS.items() if spec.order is not None)
TOUCHING = [action for action in ORDERED if SPECS[action].needs_features and action not in lacking(DELTA)]


@pytest.fixture
def estate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Estate:
    made = made_estate(tmp_path, monkeypatch, capfdbinary)
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    made.must("tables", "register", str(tmp_path / "t"), "--name", "db.t")
    return made


def is_changed_elsewhere(folder: Path) -> None:
    """Its commits are decided by a catalog from now on: a feature that lakewarden does not act on."""
    features = {"readerFeatures": ["catalogManaged"], "writerFeatures": ["catalogManaged"]}
    entry = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    (folder / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(entry))


@pytest.mark.parametrize("action", TOUCHING)
def test_nobody_orders_what_lakewarden_cannot_do_right(estate: Estate, tmp_path: Path, action: str) -> None:
    is_changed_elsewhere(tmp_path / "t")
    said = estate.says("jobs", "run", "db.t", action)
    assert said.code == 4
    assert "db.t uses catalogManaged, which lakewarden does not act on." in said.err
    assert "Hint: " in said.err
    assert not estate.services.queue.unfinished()


def test_nobody_orders_what_its_format_has_no_use_for(estate: Estate) -> None:
    said = estate.says("jobs", "run", "db.t", Action.METADATA_CARE)
    assert said.code == 4 and "Delta tables have no manifests" in said.err and "why`" in said.err, said
    assert not estate.services.queue.unfinished()


@pytest.mark.parametrize("action", ORDERED)
def test_a_pause_stands_against_every_order(estate: Estate, action: str) -> None:
    estate.must("pause", "db.t", "--reason", "audit")
    said = estate.says("jobs", "run", "db.t", action)
    assert (said.code, "db.t is paused (db.t: audit)." in said.err) == (4, True), said
    assert not estate.services.queue.unfinished()


@pytest.mark.parametrize("wish", ["mode=observe", "compaction.enabled=no", "quiet_hours=00:00-00:00"])
def test_a_wish_of_the_owner_is_no_matter_to_who_orders(estate: Estate, wish: str) -> None:
    estate.must("tables", "policy", "set", "db.t", wish)
    request = order_run(estate.services, estate.row("db.t"), Order(action=Action.COMPACT), actor=OWNER)
    assert request.action is Action.COMPACT and request.requires_version == 0
