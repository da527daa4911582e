"""Makes tests/data/tables: small tables as Spark and delta-rs write them, and broken copies of them.

Run once, by hand, from the checkout: `PYTHONPATH=tests python -m support.builders.make_tables` (needs Java).
The outcome is committed, so that no test hinges on what a later Spark writes. Names say what is special;
verdicts.csv holds the reviewed verdicts.
"""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from support.servers.spark import start_spark

TABLES = Path(__file__).parents[2] / "data" / "tables"
LOG = "_delta_log"


def good(spark: SparkSession, folder: Path) -> None:
    """Tables every check passes on."""
    _plain(spark, f"{folder}/plain")
    _partitioned(spark, f"{folder}/partitioned")
    _vectors(spark, f"{folder}/vectors")
    _mapped(spark, f"{folder}/mapped")
    _v2(spark, f"{folder}/v2")
    _maintained(spark, f"{folder}/maintained")
    _delta_rs(f"{folder}/delta_rs")


def slim(folder: Path) -> None:
    """Leave only head's version checksum: those of older versions are as long as everything else together."""
    for log in folder.glob(f"*/{LOG}"):
        for path in sorted(log.glob("0*.crc"))[:-1]:
            _delete(path)


def broken(folder: Path) -> None:
    """One table per way of being broken, each a copy of `delta_rs` (checkpoint at 2, head 3) with one wound."""
    wounds: dict[str, Callable[[Path], None]] = {
        "commit_missing": lambda log: _delete(_needed(log, 1)),
        "commit_truncated": lambda log: _truncate(_needed(log, 3)),
        "commit_emptied": lambda log: _write(_needed(log, 3), b""),
        "commit_garbled": lambda log: _write(_needed(log, 2), b"\x00\xffnot json"),
        "old_commit_missing": lambda log: _delete(log / _commit(1)),
        "head_lost": lambda log: _write(log / f"{4:020d}.crc", b'{"tableSizeBytes":1,"numFiles":1}'),
        "checkpoint_truncated": lambda log: _truncate(log / f"{2:020d}.checkpoint.parquet"),
        "log_emptied": _empty,
        "protocol_unknown": lambda log: _protocol(log, b'{"minReaderVersion":4,"minWriterVersion":8}'),
        "feature_unknown": lambda log: _protocol(log, _FEATURE),
        "data_missing": lambda log: _delete(_data(log)),
        "data_truncated": lambda log: _truncate(_data(log)),
        "data_garbled": lambda log: _write(_data(log), b"x" * _data(log).stat().st_size),
    }
    for name, wound in wounds.items():
        shutil.copytree(folder / "delta_rs", folder / name)
        wound(folder / name / LOG)


_FEATURE = (
    b'{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["fromTheFuture"],'
    b'"writerFeatures":["fromTheFuture"]}'
)


def _plain(spark: SparkSession, path: str) -> None:
    _create(spark, path, **{"delta.checkpointInterval": "3"})
    for start in range(0, 50, 10):
        _append(spark, path, start)


def _partitioned(spark: SparkSession, path: str) -> None:
    days = "element_at(array('a b', 'c=d', 'e%f', NULL), int(id % 4) + 1) AS day"
    rows = spark.range(0, 12, 1, 1).selectExpr("id", days)
    rows.write.format("delta").partitionBy("day").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 4 = 2")


def _vectors(spark: SparkSession, path: str) -> None:
    _create(spark, path, **{"delta.enableDeletionVectors": "true"})
    _append(spark, path, 0)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")
    spark.sql(f"UPDATE delta.`{path}` SET name = 'changed' WHERE id = 4")


def _mapped(spark: SparkSession, path: str) -> None:
    rows = spark.range(0, 5, 1, 1).selectExpr(
        "id", "'n' AS name", "named_struct('x', 1, 'y', array(named_struct('z', DATE '2026-01-01'))) AS at"
    )
    rows.write.format("delta").option("delta.columnMapping.mode", "name").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN name TO title")


def _v2(spark: SparkSession, path: str) -> None:
    _create(spark, path, **{"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"})
    for start in range(0, 30, 10):
        _append(spark, path, start)


def _maintained(spark: SparkSession, path: str) -> None:
    _create(spark, path, **{"delta.deletedFileRetentionDuration": "interval 0 hours"})
    for start in range(0, 30, 10):
        _append(spark, path, start)
    spark.sql(f"OPTIMIZE delta.`{path}`")
    spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    _append(spark, path, 30)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id >= 30")


def _delta_rs(path: str) -> None:
    write_deltalake(path, pa.table({"id": pa.array(range(10), pa.int64())}))
    write_deltalake(path, pa.table({"id": pa.array(range(10, 15), pa.int64())}), mode="append")
    table = DeltaTable(path)
    table.delete("id = 3")
    table.create_checkpoint()
    write_deltalake(path, pa.table({"id": pa.array([99], pa.int64())}), mode="append")


def _create(spark: SparkSession, path: str, **properties: str) -> None:
    rows = spark.range(0).selectExpr("id", "'' AS name")
    rows.write.format("delta").options(**properties).save(path)


def _append(spark: SparkSession, path: str, start: int) -> None:
    rows = spark.range(start, start + 10, 1, 1).selectExpr("id", "concat('name ', id) AS name")
    rows.write.format("delta").mode("append").save(path)


def _commit(version: int) -> str:
    return f"{version:020d}.json"


def _data(log: Path) -> Path:
    """The data file that the last commit added."""
    actions = [json.loads(line) for line in (log / _commit(3)).read_text().splitlines()]
    name: str = next(action["add"]["path"] for action in actions if "add" in action)
    return log.parent / name


def _without_checkpoint(log: Path) -> None:
    for path in (*log.glob("*.checkpoint.parquet"), log / "_last_checkpoint"):
        _delete(path)


def _needed(log: Path, version: int) -> Path:
    """A commit that head needs, because there is no checkpoint any more."""
    _without_checkpoint(log)
    return log / _commit(version)


def _protocol(log: Path, body: bytes) -> None:
    _without_checkpoint(log)
    path = log / _commit(3)
    _write(path, path.read_bytes().rstrip() + b'\n{"protocol":' + body + b"}\n")


def _write(path: Path, data: bytes) -> None:
    """Write as a stranger would: without the companion that Hadoop keeps, which would give it away."""
    path.write_bytes(data)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _truncate(path: Path) -> None:
    _write(path, path.read_bytes()[: path.stat().st_size // 2])


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _empty(log: Path) -> None:
    for path in log.iterdir():
        _delete(path)


def main() -> int:
    """Make everything anew; verdicts.csv and README.md beside the tables stay."""
    for path in TABLES.iterdir() if TABLES.is_dir() else ():
        if path.is_dir():
            shutil.rmtree(path)
    TABLES.mkdir(parents=True, exist_ok=True)
    spark = start_spark(TABLES / "warehouse")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    good(spark, TABLES)
    spark.stop()
    slim(TABLES)
    broken(TABLES)
    shutil.rmtree(TABLES / "warehouse", ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
