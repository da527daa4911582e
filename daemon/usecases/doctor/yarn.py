"""What workers need of a Hadoop cluster with YARN, asked from the edge node where they will run. Only asks."""

import ctypes
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen
from xml.etree import ElementTree

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.storage.file_store import canonical, open_store
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.doctor.diagnosis import Diagnosis, answered, fail, not_checked, ok, warn
from lakewarden.daemon.usecases.doctor.examinations import examine_only
from lakewarden.daemon.usecases.doctor.one_machine import database_server

__all__ = ["examine_yarn"]

_FILES: Final = ("core-site.xml", "hdfs-site.xml", "yarn-site.xml")
_SAID: Final = "yarn.resourcemanager"
_PATIENCE: Final = 10
_GSSAPI: Final = "libgssapi_krb5.so.2"
"""By which delta-rs speaks Kerberos."""
_CLIENT_KEYTAB: Final = "KRB5_CLIENT_KTNAME"
_AFTERWARDS: Final = "The first run that needs Spark tells."


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cluster:
    """What the files of the cluster's clients say, and what lakewarden tells Spark."""

    site: Mapping[str, str]
    conf: Mapping[str, str]

    def ask(self, path: str) -> Mapping[str, Any]:
        """The answer of the first ResourceManager that has one. Raises `UnavailableError` where none has."""
        why = "yarn-site.xml names none"
        for place in _managers(self.site):
            try:
                with urlopen(f"{place}/ws/v1/cluster/{path}", timeout=_PATIENCE) as answer:
                    found = json.load(answer)
            except (OSError, ValueError, HTTPException) as error:
                why = f"{place}: {error}"
                continue
            if isinstance(found, dict):
                return found
            why = f"{place}: what answers is none"
        raise UnavailableError(
            f"No ResourceManager answers ({why}).",
            hint=f"Correct {_SAID}.webapp.address in yarn-site.xml, or let this machine through to it.",
        )


def examine_yarn(services: Services) -> Iterator[Diagnosis]:
    """The edge node, the files of the cluster's clients, the cluster, and a word on what only nodes would see."""
    yield from examine_only(services, ("java", "jars", "metastore"))
    yield _master(services)
    yield answered("database", partial(database_server, services))
    folder = os.environ.get("HADOOP_CONF_DIR")
    missing = [name for name in _FILES if folder is None or not (Path(folder) / name).is_file()]
    if folder is None or missing:
        yield fail(
            "cluster files",
            f"HADOOP_CONF_DIR is {folder or 'not set'}, and there is no {', '.join(missing)}.",
            "Set it to the folder of the files that the cluster's clients have.",
        )  # fmt: skip
        yield not_checked(
            "cluster", "Without them nobody knows where it is.", "Mend that first, then ask again."
        )
        return
    try:
        site = {key: value for name in _FILES for key, value in _properties(Path(folder) / name)}
    except (ElementTree.ParseError, OSError) as error:
        yield fail("cluster files", f"Those in {folder} cannot be read: {error}.", "Copy them anew.")
        return
    yield ok("cluster files", f"{', '.join(_FILES)} are in {folder}.")
    cluster = _Cluster(site=site, conf=dict(services.settings.spark_conf))
    for name, look in (("resource manager", _manager), ("nodes", _nodes), ("queue", _queue)):
        yield answered(name, partial(look, cluster))
    yield _recovery(cluster)
    yield answered("hdfs", partial(_hdfs, services, cluster))
    yield answered("spark's jars", partial(_archive, services, cluster))
    yield _driver(cluster)
    yield from _kerberos(cluster)
    yield not_checked(
        "nodes' java", "Which Java containers find is seen on nodes: Spark needs 17 or 21.", _AFTERWARDS
    )
    yield not_checked("way back", "Whether nodes reach this machine's driver is seen on nodes.", _AFTERWARDS)


def _master(services: Services) -> Diagnosis:
    if services.settings.spark_master != "yarn":
        return fail(
            "spark", f"spark.master is {services.settings.spark_master}.", 'Set spark.master = "yarn".'
        )
    return next(examine_only(services, ("spark",)))


def _manager(cluster: _Cluster) -> Diagnosis:
    info = cluster.ask("info").get("clusterInfo") or {}
    state, version = info.get("state"), info.get("hadoopVersion", "of a version that it does not tell")
    if state is None:
        return not_checked(
            "resource manager",
            "One answers and does not tell its state.",
            "`yarn node -list` shows whether it works.",
        )
    if state != "STARTED":
        return fail(
            "resource manager",
            f"It answers that it is {state}.",
            "Start it, or correct yarn-site.xml.",
        )
    return ok("resource manager", f"YARN {version} answers.")


def _nodes(cluster: _Cluster) -> Diagnosis:
    count = (cluster.ask("metrics").get("clusterMetrics") or {}).get("activeNodes")
    if count is None:
        return not_checked(
            "nodes", "The ResourceManager does not tell how many there are.", "`yarn node -list` does."
        )
    if not count:
        return fail("nodes", "No NodeManager is there: applications would wait for ever.", "Start one.")
    return ok("nodes", f"NodeManagers there: {count}.")


def _queue(cluster: _Cluster) -> Diagnosis:
    wanted = cluster.conf.get("spark.yarn.queue", "default")
    found = dict(_queues_of(cluster.ask("scheduler")))
    short = wanted.removeprefix("root.").rpartition(".")[2]
    if not found:
        return not_checked(
            "queue", "The ResourceManager tells no queues.", f"`yarn queue -status {wanted}` does."
        )
    if short not in found:
        return fail(
            "queue",
            f"There is no queue {wanted}.",
            f"Set spark.yarn.queue to one of: {', '.join(sorted(found))}.",
        )
    if found[short] not in ("", "RUNNING"):
        return fail("queue", f"The queue {wanted} is {found[short]}.", "Start it, or set spark.yarn.queue.")
    return ok(
        "queue", f"The queue {wanted} is there; whether this user may use it is found out by the first run."
    )


def _recovery(cluster: _Cluster) -> Diagnosis:
    if cluster.site.get(f"{_SAID}.recovery.enabled") == "true":
        return ok("recovery", "By yarn-site.xml the ResourceManager keeps its state over a restart.")
    return not_checked(
        "recovery", "This machine's yarn-site.xml does not say that the ResourceManager keeps its state.",
        f"Where {_SAID}.recovery.enabled is not true its restart ends every application.",
    )  # fmt: skip


def _hdfs(services: Services, cluster: _Cluster) -> Diagnosis:
    system = services.settings.system_location
    place = system if system.startswith("hdfs://") else cluster.site.get("fs.defaultFS", "")
    if not place.startswith("hdfs://"):
        return not_checked(
            "hdfs", "Neither system.location nor fs.defaultFS is on HDFS.", "Set one if tables are."
        )
    root = "hdfs://" + place.removeprefix("hdfs://").partition("/")[0]
    next(iter(open_store(root, services.storage(root)).list("")), None)
    return ok(
        "hdfs", f"{root} can be listed. Whether this user may write there is found out by `lakewarden init`."
    )


def _archive(services: Services, cluster: _Cluster) -> Diagnosis:
    place = cluster.conf.get("spark.yarn.archive") or cluster.conf.get("spark.yarn.jars")
    if place is None:
        return warn(
            "spark's jars",
            "Neither spark.yarn.archive nor spark.yarn.jars is set: each session uploads 460 MB.",
            "Put them on HDFS once (docs/deploy/yarn.md).",
        )  # fmt: skip
    if not place.startswith("hdfs://") or "*" in place:
        return not_checked("spark's jars", f"{place} is looked up by containers.", _AFTERWARDS)
    folder, _, name = canonical(place).rpartition("/")
    try:
        there = open_store(folder, services.storage(folder)).exists(name)
    except LakewardenError as error:
        return not_checked("spark's jars", f"{place} cannot be asked for: {error}", error.hint)
    if not there:
        return fail("spark's jars", f"{place} is not there.", "Put Spark's jars there (docs/deploy/yarn.md).")
    return ok("spark's jars", f"{place} is there.")


def _driver(cluster: _Cluster) -> Diagnosis:
    host = cluster.conf.get("spark.driver.host") or socket.gethostname()
    try:
        address = socket.gethostbyname(host)
    except (OSError, UnicodeError):
        return fail("driver", f"{host} is no name that this machine can look up.", "Set spark.driver.host.")
    if address.startswith("127."):
        return warn(
            "driver", f"{host} is {address}, where executors of other machines find nobody.",
            "Set spark.driver.host to this machine's address as the cluster sees it.",
        )  # fmt: skip
    return ok("driver", f"Executors will be told to connect to {host} ({address}).")


def _kerberos(cluster: _Cluster) -> Iterator[Diagnosis]:
    if cluster.site.get("hadoop.security.authentication", "simple") != "kerberos":
        yield ok("kerberos", "The cluster asks for none.")
        return
    yield _sparks_keytab(cluster)
    yield _tickets()


def _sparks_keytab(cluster: _Cluster) -> Diagnosis:
    keytab = cluster.conf.get("spark.kerberos.keytab")
    if keytab is None or "spark.kerberos.principal" not in cluster.conf:
        return fail(
            "kerberos", "The cluster asks for Kerberos, and Spark is told no principal and keytab.",
            "Set spark.kerberos.principal and spark.kerberos.keytab in [spark.conf].",
        )  # fmt: skip
    if not os.access(keytab, os.R_OK):
        return fail("kerberos", f"{keytab} cannot be read.", "Let this user, and nobody else, read it.")
    return not_checked(
        "kerberos", "Whether the key distribution centre takes the keytab.", f"kinit -kt {keytab} PRINCIPAL"
    )


def _tickets() -> Diagnosis:
    """Of what reads HDFS without Spark."""
    try:
        ctypes.CDLL(_GSSAPI)
    except OSError:
        return fail(
            "tickets", f"There is no {_GSSAPI}: daemon and commands cannot prove who they are.",
            "Install libgssapi-krb5-2 (Debian) or krb5-libs (Red Hat).",
        )  # fmt: skip
    keytab = os.environ.get(_CLIENT_KEYTAB)
    if keytab is None:
        return warn(
            "tickets", f"{_CLIENT_KEYTAB} is not set: without Spark a ticket cache counts, until it expires.",
            f"Set {_CLIENT_KEYTAB} to the keytab, for daemon and workers.",
        )  # fmt: skip
    file = keytab.removeprefix("FILE:")
    if not os.access(file, os.R_OK):
        return fail("tickets", f"{file} cannot be read.", "Let this user, and nobody else, read it.")
    return ok(
        "tickets", f"Without Spark tickets are got with {file}; what `hdfs` says shows whether that works."
    )


def _managers(site: Mapping[str, str]) -> Sequence[str]:
    """Where the ResourceManagers' pages are, as YARN's own clients find them."""
    secure = site.get("yarn.http.policy") == "HTTPS_ONLY"
    scheme, key, port = (
        ("https", "webapp.https.address", 8090) if secure else ("http", "webapp.address", 8088)
    )
    ids = [one.strip() for one in site.get(f"{_SAID}.ha.rm-ids", "").split(",") if one.strip()]
    found = []
    for suffix in [f".{one}" for one in ids] or [""]:
        host = site.get(f"{_SAID}.hostname{suffix}")
        place = site.get(f"{_SAID}.{key}{suffix}") or (f"{host}:{port}" if host else "")
        found.append(place.replace("${" + f"{_SAID}.hostname{suffix}" + "}", host or ""))
    return [f"{scheme}://{place}" for place in found if place]


def _queues_of(tree: object) -> Iterator[tuple[str, str]]:
    """Every queue's own name and its state, "" where none is told, of whatever scheduler."""
    if isinstance(tree, Mapping):
        if isinstance(tree.get("queueName"), str):
            yield tree["queueName"].rpartition(".")[2], str(tree.get("state", ""))
        for one in tree.values():
            yield from _queues_of(one)
    elif isinstance(tree, list):
        for one in tree:
            yield from _queues_of(one)


def _properties(file: Path) -> Iterator[tuple[str, str]]:
    for one in ElementTree.parse(file).getroot().iter("property"):
        name, value = one.findtext("name"), one.findtext("value")
        if name and value is not None:
            yield name.strip(), value.strip()
