"""A small Delta table as streams leave them: one file for each hour of a day. The quickstart begins with it.

python -m examples.events FOLDER
"""

import sys

import pyarrow as pa
from deltalake import write_deltalake

HOURS, ROWS = 24, 1_000


def write_events(folder: str) -> None:
    """Append the events of one hour after another."""
    for hour in range(HOURS):
        ids = range(hour * ROWS, (hour + 1) * ROWS)
        kinds = ["view" if number % 5 else "click" for number in ids]
        write_deltalake(
            folder, pa.table({"id": list(ids), "hour": [hour] * ROWS, "kind": kinds}), mode="append"
        )


if __name__ == "__main__":
    write_events(sys.argv[1])
