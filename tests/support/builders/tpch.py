"""TPC-H's `orders` and `lineitem` as Delta tables, and what its refresh functions bring in (RF1) and take away (RF2).

The rows are tpchgen-cli's, which are dbgen's. It makes no refresh sets: these are made here after clause 2.27 of
TPC-H, SF * 1500 orders with their lines each, the new ones under keys that lie in the gaps of the old ones.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

__all__ = ["KEYS", "RF1", "RF2", "load"]

KEYS: Final = {"orders": "o_orderkey", "lineitem": "l_orderkey, l_linenumber"}
RF1: Final = {
    name: f"UPSERT INTO {{db}}.{name} ON ({keys}) SELECT * FROM {{db}}.new_{name}"
    for name, keys in KEYS.items()
}
RF2: Final = {
    "lineitem": "DELETE FROM {db}.lineitem USING {db}.gone AS g WHERE l_orderkey = g.k",
    "orders": "DELETE FROM {db}.orders USING {db}.gone AS g WHERE o_orderkey = g.k",
}
_ORDERS_PER_SCALE: Final = 1500
_GAP: Final = 8
"""Of every 32 keys TPC-H uses the first 8."""


def load(spark: SparkSession, database: str, folder: Path, scale: float) -> int:
    """Make the tables `orders`, `lineitem`, `new_orders`, `new_lineitem` and `gone` (column `k`) in a database.

    Returns how many orders each refresh function has.
    """
    generator = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run(
        (generator, "parquet", "-s", str(scale), "--tables=orders,lineitem", f"--output-dir={folder}"),
        check=True,
        capture_output=True,
    )
    rows = {name: spark.read.parquet(str(folder / f"{name}.parquet")) for name in KEYS}
    count = round(scale * _ORDERS_PER_SCALE)
    keys = rows["orders"].select(col("o_orderkey").alias("k")).orderBy("k").limit(2 * count).cache()
    copied, gone = keys.orderBy("k").limit(count), keys.orderBy(col("k").desc()).limit(count)
    _save(gone, database, "gone", folder)
    for name, frame in rows.items():
        _save(frame, database, name, folder)
        key = KEYS[name].partition(",")[0]
        among = frame.join(copied, frame[key] == copied["k"], "left_semi")
        _save(among.withColumn(key, col(key) + _GAP), database, f"new_{name}", folder)
    keys.unpersist()
    return count


def _save(frame: DataFrame, database: str, name: str, folder: Path) -> None:
    place = str(folder / "delta" / name)
    frame.write.format("delta").save(place)
    frame.sparkSession.sql(f"CREATE TABLE {database}.{name} USING delta LOCATION '{place}'")
