"""A release with all it has on S3: system tables and tables, no volume; its keys from a mounted Secret."""

import json
import time
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from deltalake import CommitProperties

from lakewarden.catalog.model.lineage_record import custom_metadata
from lakewarden.catalog.model.rows import Action
from support.builders.derived import reading
from support.kubernetes.cluster import NODE_IP, forwarded
from support.kubernetes.installation import COMPACTED, Installation, Node, values
from support.reference.faults import Faults
from support.servers.faults import Fault, FaultyProxy, running_proxy
from support.servers.s3 import BUCKET, KEY, SECRET, S3Server, options_of

AWAY_SECONDS = 20


@pytest.fixture(scope="module")
def proxy(s3: S3Server) -> Iterator[FaultyProxy]:
    with running_proxy(s3.endpoint) as one:
        yield one


@pytest.fixture(scope="module")
def on_s3(node: Node, s3: S3Server, proxy: FaultyProxy) -> Iterator[Installation]:
    with forwarded(int(urlsplit(proxy.endpoint).port or 0)) as port:
        keys = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "lake-keys"}}
        node.cluster.apply({**keys, "stringData": {"id": KEY, "secret": SECRET}})
        mounted = "file:/etc/lakewarden/secrets/lake-keys"
        options = {
            **options_of(f"http://{NODE_IP}:{port}"),
            "aws_access_key_id": f"{mounted}/id",
            "aws_secret_access_key": f"{mounted}/secret",
        }
        chosen = values(
            node.folder / "s3.yaml",
            mounted=False,
            system={"location": f"s3://{BUCKET}/k8s/system"},
            persistence={"enabled": False},
            secrets=["lake-keys"],
            storage=[{"prefix": f"s3://{BUCKET}", "options": options}],
        )
        lake = f"s3://{BUCKET}/k8s"
        one = Installation(
            node.cluster, "s3", lake, chosen, node.seconds, lake, dict(options_of(s3.endpoint))
        )
        one.install()
        yield one
        node.cluster.helm("uninstall", one.release, "--wait")


def test_executors_compact_on_s3_while_it_does_not_answer_and_the_leader_is_deleted(
    on_s3: Installation, proxy: FaultyProxy, faults: Faults
) -> None:
    one = on_s3
    one.compacting("events")
    first = one.leader()
    with faults.played(
        "s3",
        f"S3 answers 503 for {AWAY_SECONDS} s and the leader's pod is deleted, in the middle "
        "of a compaction by executors in pods",
        "another pod leads, the compaction is on record once; nothing is taken for gone",
    ):
        one.cluster.kubectl("delete", "pod", str(first), "--wait=false")
        with proxy.failing(Fault.SLOW_DOWN):
            time.sleep(AWAY_SECONDS)
        one.compacted_once("events")
    assert one.leader() not in (None, first)
    assert states(one) == {"db.events": "active"}


def test_a_worker_s_pod_killed_in_a_compaction_on_s3_is_made_good(
    on_s3: Installation, faults: Faults
) -> None:
    one = on_s3
    one.compacting("killed")
    (pod,) = one.running("worker")
    with faults.played(
        "s3",
        "the worker's pod deleted with no grace in the middle of a compaction",
        "begun again by its successor, on record once",
    ):
        one.kill(pod)
        one.compacted_once("killed")


def test_a_rollback_on_s3_takes_what_was_derived_with_it(on_s3: Installation) -> None:
    one = on_s3
    tables = dict[str, str]()
    for name in ("source", "derived"):
        one.write(name, ids(1), from_source(one, tables) if tables else None)
        one.register(name, *COMPACTED)
        shown = json.loads(one.command("tables", "show", f"db.{name}", "-o", "json"))
        tables[name] = shown["table_id"]
    one.write("source", ids(99))
    one.write("derived", ids(99), from_source(one, tables))
    plan = one.command("rollback", "plan", "db.source", "--to-version", "0", "--cascade", "-o", "json")
    done = json.loads(one.command("rollback", "apply", json.loads(plan)["hash"], "-o", "json"))
    assert done["state"] == "done"
    assert {name: one.read(name).to_pyarrow_table()["id"].to_pylist() for name in tables} == {
        "source": [1],
        "derived": [1],
    }
    assert one.jobs("db.source", Action.COMPACT) == []


def from_source(one: Installation, tables: Mapping[str, str]) -> CommitProperties:
    """What a job's commit says that has read the source."""
    record = reading({tables["source"]: f"{one.lake}/source"}, options=one.options)
    return CommitProperties(custom_metadata=custom_metadata(record))


def ids(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def states(one: Installation) -> dict[str, str]:
    listed = json.loads(one.command("tables", "list", "-o", "json"))
    return {table["name"]: table["state"] for table in listed if table["name"].startswith("db.")}
