"""A real session of Spark Connect, with the server that it starts: `attach` refuses it with what to do instead."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.errors import UsageError

spark = SparkSession.builder.remote("local[1]").getOrCreate()
print(type(spark).__module__, spark.range(3).count())
try:
    lakewarden.attach(spark)
except UsageError as refused:
    print(refused)
    print(refused.hint)
print(spark.range(4).count())
spark.stop()
"""


@pytest.mark.long
def test_a_session_of_spark_connect_is_refused_and_goes_on(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "LAKEWARDEN_HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "SPARK_TESTING": "1",  # its server takes any port that is free
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, refused, hint, after = done.stdout.splitlines()
    assert (before, after) == ("pyspark.sql.connect.session 3", "4")
    assert refused.startswith("A Spark Connect session cannot be attached: its driver")
    assert "Attach in the driver itself" in hint and "`lakewarden gateway`" in hint
    assert not (tmp_path / "home").exists()
