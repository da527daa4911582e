"""A real Kubernetes of one node on this machine, with our image in it: brought up, asked, taken down again.

Needs root, Debian's package sources and Go; node/up.sh says what it does. One per machine.
"""

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from support.kubernetes.chart import CHART
from support.kubernetes.image import ROOT, SCRIPTS, build_image
from support.kubernetes.tools import helm

__all__ = [
    "IMAGE",
    "NAMESPACE",
    "NODE_IP",
    "POSTGRES",
    "Cluster",
    "forwarded",
    "node_home",
    "running_cluster",
]

IMAGE: Final = "localhost/lakewarden"
POSTGRES: Final = "localhost/postgres"
NODE_IP: Final = "172.30.0.1"
NAMESPACE: Final = "lakewarden"


class Cluster:
    """One that is up. Commands raise with what was said where they fail."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as admin in our namespace."""
        return _run([*self._kubectl, *arguments], stdin=stdin)

    @contextmanager
    def begun(self, *arguments: str) -> Iterator[Callable[[], str]]:
        """kubectl, not waited for: yields what waits and returns what it said on stdout."""
        begun = subprocess.Popen(
            [*self._kubectl, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

        def ending() -> str:
            out, err = begun.communicate(timeout=900)
            assert begun.returncode == 0, f"{out}\n{err}"
            return out

        try:
            yield ending
        finally:
            begun.kill()
            begun.wait()

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Make or change objects."""
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def get(self, kind: str, *labels: str) -> Sequence[Mapping[str, Any]]:
        """The objects of a kind, by labels (`key=value`)."""
        selector = ("--selector", ",".join(labels)) if labels else ()
        items: list[Mapping[str, Any]] = json.loads(self.kubectl("get", kind, "-o", "json", *selector))[
            "items"
        ]
        return items

    def helm(self, *arguments: str) -> str:
        """Run helm in our namespace."""
        return _run([str(helm("4")), "--kubeconfig", str(self._admin), "--namespace", NAMESPACE, *arguments])

    def install(
        self, release: str, values: Path, *, chart: Path = CHART, upgrade: bool = False, wait: bool = True
    ) -> None:
        """Install or upgrade a chart, ours as it is by default, and wait until it is ready."""
        verb = "upgrade" if upgrade else "install"
        waiting = ("--wait", "--timeout", "5m") if wait else ()
        self.helm(verb, release, str(chart), "--values", str(values), *waiting)

    def build_image(self, tag: str, *, name: str = IMAGE, folder: Path = ROOT) -> str:
        """Build a folder's Containerfile and bring the image to the node. Returns what the script said."""
        return build_image(self.home, f"{name}:{tag}", folder)

    def asked_by(self, account: str) -> set[tuple[str, str, bool]]:
        """Verb, resource, and whether it was allowed: all that a ServiceAccount asked the API server for."""
        user = f"system:serviceaccount:{NAMESPACE}:{account}"
        asked = set()
        for line in (self.home / "log" / "audit.log").read_text().splitlines():
            event = json.loads(line)
            if event["user"]["username"] == user and "objectRef" in event:
                allowed = event["annotations"]["authorization.k8s.io/decision"] == "allow"
                asked.add((event["verb"], event["objectRef"]["resource"], allowed))
        return asked

    def build_postgres(self) -> None:
        """The image of the PostgreSQL that the chart brings for trying out."""
        self.build_image("test", name=POSTGRES, folder=SCRIPTS / "postgres")

    def as_environment(self) -> Mapping[str, str]:
        """The environment of a shell whose kubectl and helm are this cluster's admin's, in our namespace."""
        self.kubectl("config", "set-context", "--current", f"--namespace={NAMESPACE}")
        programs = (str(self.home / "cache" / "bin"), str(helm("4").parent), os.environ["PATH"])
        return {"KUBECONFIG": str(self._admin), "PATH": os.pathsep.join(programs)}

    def said(self, component: str) -> str:
        """What the pods of a component said last, for messages."""
        label = f"app.kubernetes.io/component={component}"
        try:
            return self.kubectl("logs", "-l", label, "--tail", "60", "--prefix", "--all-containers")
        except AssertionError as error:  # a container that has not begun has nothing to say
            return str(error)

    @property
    def _kubectl(self) -> Sequence[str]:
        program = str(self.home / "cache" / "bin" / "kubectl")
        return (program, "--kubeconfig", str(self._admin), "--namespace", NAMESPACE)

    @property
    def _admin(self) -> Path:
        return self.home / "run" / "admin.conf"


def node_home() -> Path:
    """The folder of the node in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lakewarden" / "kubernetes" / "node"


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Bring it up (minutes the first time), take it down at the end; what was built stays in the user's cache."""
    home = node_home()
    environment = {**os.environ, "K8S_HOME": str(home), "AUDITED": NAMESPACE}
    log = home / "log" / "audit.log"
    log.unlink(missing_ok=True)
    try:
        _run([str(SCRIPTS / "up.sh")], env=environment)
        yield Cluster(home)
    finally:
        subprocess.run([str(SCRIPTS / "down.sh")], env=environment, check=False)


@contextmanager
def forwarded(port: int) -> Iterator[int]:
    """A port of this machine's loopback, to be reached by pods at the node's address. Yields the port there."""
    with socket.create_server((NODE_IP, 0)) as server:
        threading.Thread(target=_accept, args=(server, port), daemon=True).start()
        yield server.getsockname()[1]


def _accept(server: socket.socket, port: int) -> None:
    while True:
        try:
            near, _ = server.accept()
        except OSError:  # closed: the block is over
            return
        try:
            far = socket.create_connection(("127.0.0.1", port))
        except OSError:  # nobody listens there: so it is here
            near.close()
            continue
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=_pump, args=(one, other), daemon=True).start()


def _pump(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(65_536):
            other.sendall(data)
    except OSError:
        pass
    finally:
        for end in (one, other):
            end.close()


def _run(command: Sequence[str], *, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
    assert shutil.which(command[0]) is not None, f"{command[0]} is not there"
    done = subprocess.run(command, input=stdin, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command[:6])}...\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
