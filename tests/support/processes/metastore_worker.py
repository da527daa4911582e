"""A worker process without Spark, on a real Hive metastore."""

import sys

from lakewarden.catalog.metastore.hive import HiveMetastore
from support.fakes.engine import FakeEngine
from support.processes import fake_worker

if __name__ == "__main__":
    sys.exit(fake_worker.main(FakeEngine, HiveMetastore))
