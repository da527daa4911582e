"""The chart on a real Kubernetes node: two daemons, a worker whose executors are pods, a PostgreSQL, and what is
killed, deleted, drained and taken away in the middle of their work.

`make test-k8s`; not part of `make test`: cold it takes as long as all of that (docs/development.md).
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.model.rows import Action
from lakewarden.daemon.usecases.doctor.diagnosis import CheckResult
from lakewarden.daemon.usecases.doctor.kubernetes import examine_kubernetes
from support.kubernetes.installation import FILES, LEASE_TTL, PASSWORD, Installation, files_for_all
from support.reference.faults import Faults
from support.reference.rights import Rights

FORGOTTEN = 20_000
"""Files that no log entry names, for a vacuum that takes a while."""


def test_another_daemon_leads_soon_after_the_leaders_pod_is_gone(
    installation: Installation, faults: Faults
) -> None:
    one, first = installation, installation.leader()
    assert first is not None
    with faults.played(
        "kubernetes", f"the leader's pod deleted with no grace (`lease.ttl` {LEASE_TTL} s)", "another leads"
    ):
        one.kill(first)
        one.until("another pod leads", lambda: one.leader() not in (None, first), 60)
    assert one.seconds["another pod leads"] <= LEASE_TTL + 1
    one.until("two daemons are ready again", lambda: len(one.ready("daemon")) == 2)


def test_the_leader_s_pod_and_an_executor_killed_in_a_compaction_cost_nothing(
    installation: Installation, faults: Faults
) -> None:
    one, first = installation, installation.leader()
    one.compacting("events")
    one.until("its executors are pods", lambda: len(one.running("executor")) == 2)
    with faults.played(
        "kubernetes",
        "an executor killed with -9 and the leader's pod deleted, in the middle of a compaction",
        "another pod leads, a new executor is made, the compaction is on record once",
    ):
        one.cluster.kubectl("exec", one.running("executor")[0], "--", "sh", "-c", "kill -9 -1 || true")
        one.cluster.kubectl("delete", "pod", str(first), "--wait=false")
        one.compacted_once("events")
    assert one.leader() not in (None, first)
    one.until("idle executors are gone", lambda: not one.running("executor"), 120)


def test_a_worker_s_pod_killed_in_a_compaction_is_made_good_by_its_successor(
    installation: Installation, faults: Faults
) -> None:
    one = installation
    one.compacting("killed")
    (pod,) = one.running("worker")
    with faults.played(
        "kubernetes",
        "the worker's pod deleted with no grace in the middle of a compaction (`run.lease` 15 s)",
        "begun again by its successor, on record once",
    ):
        one.kill(pod)
        one.compacted_once("killed")


def test_a_worker_s_pod_killed_in_a_vacuum_is_made_good_by_its_successor(
    installation: Installation, faults: Faults
) -> None:
    one = installation
    with vacuuming(one, "littered") as said:
        (pod,) = one.running("worker")
        with faults.played(
            "kubernetes",
            f"the worker's pod deleted with no grace in the middle of a vacuum of {FORGOTTEN:,} files",
            "begun again by its successor: nothing is left that no version needs, nothing else is gone",
        ):
            one.kill(pod)
            run = json.loads(said())
    vacuumed(one, "littered", run)


def test_executors_killed_in_a_vacuum_are_made_good(installation: Installation, faults: Faults) -> None:
    one = installation
    with vacuuming(one, "scattered") as said:
        one.until("a vacuum's executors are pods", lambda: len(one.running("executor")) == 2)
        first = one.running("executor")
        with faults.played(
            "kubernetes",
            f"both executors' pods deleted with no grace in the middle of a vacuum of {FORGOTTEN:,} files",
            "the vacuum goes on with new ones, or says that they were taken away and is asked for again: "
            "nothing is left that no version needs, nothing else is gone",
        ):
            one.kill(*first)
            try:
                run = json.loads(said())
            except AssertionError as error:  # a dying executor that turns a task down four times ends the job
                assert "executors were taken away" in str(error)
                run = json.loads(one.command(*vacuum("scattered")))
    vacuumed(one, "scattered", run)


@contextmanager
def vacuuming(one: Installation, name: str) -> Iterator[Callable[[], str]]:
    """A table with files that nobody needs, whose vacuum a worker has in hand: yields what waits for its end."""
    one.table(name, "mode=observe", "vacuum.retention=1 s", "rollback.promise=1 s")
    litter(Path(one.lake) / name)
    with one.begun(*vacuum(name)) as said:
        one.until("a vacuum runs", lambda: one.runs_now(Action.VACUUM))
        yield said


def vacuum(name: str) -> tuple[str, ...]:
    """What asks for it and waits."""
    return ("jobs", "run", f"db.{name}", "vacuum", "--full", "--consent", "-o", "json")


def vacuumed(one: Installation, name: str, run: Mapping[str, Any]) -> None:
    """What no version needs is gone, and nothing else."""
    assert run["outcome"] == "succeeded", run
    left = list((Path(one.lake) / name).glob("*.parquet"))
    assert len(left) == len(one.read(name).file_uris()) == FILES
    assert len(one.read(name).to_pyarrow_table()) == FILES * 10


def litter(place: Path) -> None:
    """Files of a month ago that no log entry names: older than what the table itself keeps (a week)."""
    here = place / "part-forgotten-0.parquet"
    here.write_bytes(next(place.glob("*.parquet")).read_bytes())
    files_for_all(place, [here])
    made = here.stat().st_mtime - 30 * 86_400
    os.utime(here, (made, made))
    for number in range(1, FORGOTTEN):
        os.link(here, place / f"part-forgotten-{number}.parquet")


def test_postgresql_that_is_killed_is_waited_for(installation: Installation, faults: Faults) -> None:
    one = installation
    one.compacting("interrupted")
    pod = "lw-lakewarden-postgresql-0"
    with faults.played(
        "kubernetes",
        "PostgreSQL ended at once (SIGQUIT) in the middle of a compaction",
        "daemon and worker wait for it, the compaction is on record once",
    ):
        one.cluster.kubectl("exec", pod, "--", "sh", "-c", "pg_ctl --mode=immediate --no-wait stop")
        one.until("PostgreSQL was started again", lambda: restarts(one) >= 1)
        one.compacted_once("interrupted")


def test_postgresql_whose_pod_is_deleted_with_all_its_data_costs_no_fact(
    installation: Installation, faults: Faults
) -> None:
    one = installation
    name = frozen_in_a_compaction(one)
    before = one.command("tables", "list", "-o", "json"), one.database.incarnation()
    with faults.played(
        "kubernetes",
        "PostgreSQL's pod deleted, and with it all its data, in the middle of a compaction",
        "a new database is made by whoever comes first, somebody leads, the compaction is on record once",
    ):
        one.kill("lw-lakewarden-postgresql-0")
        one.until("PostgreSQL answers again", lambda: one.ready("postgresql"))
        one.until("somebody leads by the new database", one.leads_again)
        signal_driver(one, "CONT")
        one.compacted_once(name)
    assert one.database.incarnation() != before[1]
    names = {table["name"] for table in json.loads(one.command("tables", "list", "-o", "json"))}
    assert names == {table["name"] for table in json.loads(before[0])}


def frozen_in_a_compaction(one: Installation) -> str:
    """A table of whose compaction Spark's driver stands still, however fast it would be."""
    for number in range(5):
        name = f"forgotten_{number}"
        one.compacting(name)
        signal_driver(one, "STOP")
        if one.runs_now(Action.COMPACT):
            return name
        signal_driver(one, "CONT")
    raise AssertionError("each of five compactions had ended before it could be frozen")


def signal_driver(one: Installation, signal: str) -> None:
    (pod,) = one.running("worker")
    every = f'for p in /proc/[0-9]*; do [ "$(cat $p/comm)" != java ] || kill -{signal} "${{p#/proc/}}"; done'
    one.cluster.kubectl("exec", pod, "-c", "worker", "--", "sh", "-c", every)


def restarts(one: Installation) -> int:
    (pod,) = one.pods("postgresql")
    return int(pod["status"]["containerStatuses"][0]["restartCount"])


def test_a_drain_leaves_a_daemon_and_what_was_evicted_goes_on_elsewhere(
    installation: Installation, faults: Faults
) -> None:
    one = installation
    one.compacting("drained")
    drain = ("drain", "lab", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=90s")
    with faults.played(
        "kubernetes",
        "the only node drained in the middle of a compaction (the drain gives up "
        "after 90 s), then given back",
        "one daemon stays, as its disruption budget says; the worker ends its run before it goes, "
        "or its successor does it: on record once",
    ):
        with pytest.raises(
            AssertionError, match="Cannot evict pod as it would violate the pod's disruption budget"
        ):
            one.cluster.kubectl(*drain, "--pod-selector", "app.kubernetes.io/name=lakewarden")
        assert len(one.running("daemon")) == 1
        one.cluster.kubectl("uncordon", "lab")
        one.until("all pods are there again", lambda: one.ready("worker") and len(one.ready("daemon")) == 2)
        one.compacted_once("drained")


def test_the_driver_asked_for_what_it_was_given_and_nothing_else_asked(
    installation: Installation, rights: Rights
) -> None:
    cluster = installation.cluster
    (role,) = cluster.get("roles")
    given = {(verb, kind) for rule in role["rules"] for kind in rule["resources"] for verb in rule["verbs"]}
    accounts = {
        name: f"{installation.release}-lakewarden-{name}" for name in ("worker", "daemon", "executor")
    }
    asked = {name: cluster.asked_by(account) for name, account in accounts.items()}
    print("asked:", asked)
    assert {(verb, kind) for verb, kind, allowed in asked["worker"] if not allowed} == set()
    assert {(verb, kind) for verb, kind, _ in asked["worker"]} == given
    assert asked["daemon"] == asked["executor"] == set()
    rights.keep({name: {(verb, kind) for verb, kind, _ in each} for name, each in asked.items()})


def test_doctor_finds_nothing_wrong_from_outside_and_from_a_pod(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = installation.cluster
    cluster.helm("test", installation.release, "--logs")
    for name, value in cluster.as_environment().items():
        monkeypatch.setenv(name, value)
    found = {one.check: one for one in examine_kubernetes()}
    seen = {name: one.verdict for name, one in found.items() if one.verdict is not CheckResult.NOT_CHECKED}
    expected = {
        "helm": CheckResult.OK,
        "cluster": CheckResult.OK,
        "rights": CheckResult.OK,
        "volumes": CheckResult.WARN,
    }
    assert seen == expected, "\n".join(map(str, found.values()))
    everything = {
        "dns",
        "cluster",
        "rights",
        "clocks",
        "database",
        "system tables",
        "clock",
        "network policies",
    }
    for component, unseen in (("worker", set()), ("daemon", {"cluster", "rights"})):
        (pod, *_) = installation.ready(component)
        command = ("lakewarden", "doctor", "--target", "k8s", "-o", "json")
        told = json.loads(cluster.kubectl("exec", pod, "-c", component, "--", *command))
        assert {one["check"]: one["verdict"] for one in told} == {
            name: CheckResult.NOT_CHECKED if name in unseen else CheckResult.OK for name in everything
        }, told


def test_an_upgrade_an_uninstall_and_what_they_leave(installation: Installation) -> None:
    one, cluster = installation, installation.cluster
    cluster.install(one.release, one.values, upgrade=True)
    shown = one.command("config", "show") + cluster.said("daemon") + cluster.said("worker")
    assert PASSWORD not in shown
    secret = cluster.kubectl("get", "secret", "lw-lakewarden-postgresql", "-o", "jsonpath={.data.password}")
    assert secret, "kept"
    cluster.helm("uninstall", one.release, "--wait")
    assert {claim["metadata"]["name"] for claim in cluster.get("persistentvolumeclaims")} >= {
        "lake",
        "system",
    }
    assert len(one.read("events").to_pyarrow_table()) == FILES * 10
    one.install()
    again = {table["name"] for table in json.loads(one.command("tables", "list", "-o", "json"))}
    assert again >= {"db.events", "db.killed", "db.drained"}, "the system tables outlive the release"
