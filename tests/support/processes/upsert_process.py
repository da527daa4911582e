"""A streaming query that upserts, in a process of its own, to be killed: `python upsert_process.py FOLDER HOME`."""

import sys
from pathlib import Path

import lakewarden
from support.servers.spark import start_spark


def main(folder: Path, home: Path) -> None:
    """Bring what FOLDER/source has into FOLDER/sink."""
    spark = start_spark(folder / "warehouse")
    with lakewarden.attach(spark, home=home) as lw:
        query = lw.upsert_stream(
            spark.readStream.format("delta").load(str(folder / "source")),
            str(folder / "sink"),
            keys="id",
            checkpoint=str(folder / "checkpoint"),
            trigger={"availableNow": True},
        )
        query.awaitTermination()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
