"""Writes an Iceberg table as a user does, in a Spark session that an installation's settings describe: the arguments
are the home, and statements."""

import sys
from pathlib import Path

from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.workers.pool import spark_settings
from lakewarden.jobs.engines.spark.session import start_session


def main() -> None:
    home, *statements = sys.argv[1:]
    spark = start_session(spark_settings(load_settings(home=Path(home))))
    for one in statements:
        for row in spark.sql(one).collect():
            print(*row)
    spark.stop()


if __name__ == "__main__":
    main()
