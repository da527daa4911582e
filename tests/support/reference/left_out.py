"""What stands on the pages and is not typed from a fresh home by test_page_commands.py: each with the reason, and the
test that does it or what is next to it. tests/unit/house/test_page_commands.py holds the list."""

from collections.abc import Mapping
from typing import Final

__all__ = ["NOT_RUN", "NOT_TYPED", "RUN_ELSEWHERE", "TYPED_ELSEWHERE"]

_SPARK: Final = "Spark does it"
_SERVES: Final = "it serves until it is stopped"
_CLUSTER: Final = "it is about an installation on a cluster"
_LATER: Final = "it stands for another moment than the commands around it"
_MACHINE: Final = "it changes the machine, as root"
_INSTALLS: Final = "it installs for minutes what is installed here"
_KUBERNETES: Final = "it needs a Kubernetes, a registry or a builder of images"
_HADOOP: Final = "it needs a cluster of Hadoop"
_MEASURES: Final = "it measures for minutes to hours"
_TESTS: Final = "it runs tests"

NOT_TYPED: Final[Mapping[str, Mapping[str, str]]] = {
    "buckets": {"jobs run db.t compact": f"{_SPARK}: test_bucketed_compaction.py"},
    "README": {
        "tables convert": f"{_SPARK}: test_convert.py",
        "daemon": f"{_SERVES}: test_daemon_run.py",
    },
    "gateway": {
        "gateway --port": f"{_SERVES}: test_gateway.py",
        "sql --url": "it asks a gateway, over TLS: test_gateway_users.py",
    },
    "iceberg": {
        "tables register prod.": "it needs a catalog: test_iceberg_catalogs.py",
        "tables register shop.": "it needs a metastore: test_iceberg_metastore.py",
    },
    "incident": {
        "rollback plan db.flights --to-version 12 --cascade --diff": f"{_SPARK}: test_row_diff.py",
        "rollback apply HASH": f"{_LATER}: test_restore_exactly.py",
        "rollback resume ID": f"{_LATER}: test_rollback_cli.py",
        "rollback show ID": f"{_LATER}: test_rollback_cli.py",
        "rollback undo ID": f"{_LATER}: test_rollback_cli.py",
    },
    "kubernetes": {"doctor --target k8s": f"{_CLUSTER}: test_node.py"},
    "object-stores": {
        "tables register s3://": "it needs an object store: test_s3.py",
        "doctor --target s3": "it needs an object store: test_s3.py",
    },
    "onboarding": {
        "tables register s3://": "it needs an object store and a metastore: test_onboarding_metastore.py"
    },
    "rollback": {"rollback plan db.flights --to-version 2 --cascade --diff": f"{_SPARK}: test_row_diff.py"},
    "streams": {"lineage stream": "it needs a checkpoint of Spark's: test_streams.py"},
    "workers": {"worker": f"{_SERVES}: test_worker_hosts.py"},
    "yarn": {"init": f"{_CLUSTER}: test_yarn.py", "doctor": f"{_CLUSTER}: test_yarn.py"},
}
"""Commands of lakewarden, by page and how they begin."""

TYPED_ELSEWHERE: Final[Mapping[str, str]] = {
    "quickstart": "test_quickstart.py",
    "owners": "test_pages_for_people.py",
    "platform": "test_pages_for_people.py",
    "woken": "test_pages_for_people.py",
    "laptop": "test_pages_for_people.py",
    "systemd": "test_pages_for_people.py",
}
"""Pages whose commands another test types: of the quickstart its consoles; what follows is run by
test_page_examples.py."""

NOT_RUN: Final[Mapping[str, Mapping[str, str]]] = {
    "README": {
        "make demo": "it takes minutes and fetches flights: test_packaging.py",
        "make test": f"{_TESTS}: conftest.py",
    },
    "benchmarks": {
        ".venv/bin/python -m bench.": f"{_MEASURES}: test_page_commands.py",
        "make bench": f"{_MEASURES}: test_page_commands.py",
    },
    "development": {
        "make": f"{_TESTS}: conftest.py",
        ".venv/bin/python -m bench.": f"{_MEASURES}: test_page_commands.py",
        ".venv/bin/python -m pytest": f"{_TESTS}: conftest.py",
    },
    "gateway": {
        "pip install": f"{_INSTALLS}: test_packaging.py",
        "export LAKEWARDEN_TOKEN": "it goes with a command to a gateway: test_gateway_users.py",
    },
    "kubernetes": {
        "podman build": f"{_KUBERNETES}: test_image.py",
        "kubectl": f"{_KUBERNETES}: test_node.py",
        "helm": f"{_KUBERNETES}: test_node.py",
    },
    "laptop": {
        "python3.11 -m venv": f"{_INSTALLS}: test_packaging.py",
        "~/lakewarden/bin/pip install": f"{_INSTALLS}: test_packaging.py",
        "export PATH": "it goes with what is installed: test_pages_for_people.py",
    },
    "quickstart": {
        "make demo": "it takes minutes and fetches flights: test_packaging.py",
        "make setup": f"{_INSTALLS}: test_packaging.py",
        "export LAKEWARDEN_HOME": "the test has a home of its own: test_quickstart.py",
    },
    "systemd": {
        "useradd": f"{_MACHINE}: test_systemd.py",
        "python3.11 -m venv": f"{_INSTALLS}: test_packaging.py",
        "/opt/lakewarden/bin/pip install": f"{_INSTALLS}: test_packaging.py",
        "install": f"{_MACHINE}: test_systemd.py",
        "touch": f"{_MACHINE}: test_systemd.py",
        "cp": f"{_MACHINE}: test_systemd.py",
        "export": f"{_MACHINE}: test_systemd.py",
        "systemctl": f"{_MACHINE}: test_systemd.py",
    },
    "yarn": {
        "python3.11 -m venv": f"{_INSTALLS}: test_packaging.py",
        "/opt/lakewarden/bin/pip install": f"{_INSTALLS}: test_packaging.py",
        "useradd": f"{_MACHINE}: test_systemd.py",
        "hdfs": f"{_HADOOP}: test_yarn.py",
        "cd": f"{_HADOOP}: test_yarn.py",
        "HADOOP_CONF_DIR": "it is a line of a file: test_yarn.py",
        "JAVA_HOME": "it is a line of a file: test_yarn.py",
        "cp": f"{_MACHINE}: test_systemd.py",
        "set": f"{_MACHINE}: test_systemd.py",
        "LAKEWARDEN_DATABASE_URL_FILE": f"{_MACHINE}: test_systemd.py",
        "systemctl": f"{_MACHINE}: test_systemd.py",
    },
}
"""Lines for a shell that are not lakewarden's own, by page and how they begin."""

RUN_ELSEWHERE: Final[Mapping[tuple[str, str], str]] = {
    ("gateway", "beeline"): "test_gateway.py",
    ("quickstart", ".venv/bin/python -m examples.events"): "test_quickstart.py",
    ("streams", "cd CHECKPOINT"): "test_streams.py",
    ("streams", "rm -f offsets"): "test_streams.py",
}
"""And those that a test runs, by page and how they begin."""
