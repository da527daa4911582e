"""Somebody who appends to a table while it is being rolled back: `python writer_beside.py PLACE FIRST COUNT`."""

import sys
import time
from pathlib import Path

from deltalake.exceptions import CommitFailedError

from support.builders.derived import write

__all__ = ["finished"]

_PAUSE_SECONDS = 0.05


def finished(place: Path) -> Path:
    """The file that is there when everything was written."""
    return place.with_name(f"{place.name}.written")


def main(place: Path, first: int, count: int) -> None:
    """Append ids one by one, each as clean rows of its own, until every one of them was acknowledged."""
    for number in range(first, first + count):
        while True:
            try:
                write(place, number)
                break
            except CommitFailedError:
                continue  # the rollback was first: once more, on what is there now
        print(number, flush=True)
        time.sleep(_PAUSE_SECONDS)
    finished(place).touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
