"""Rows that are kept for a write while it runs are on executors, and go with them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lakewarden.jobs.engines.spark.errors import is_told
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError

__all__ = ["kept_rows"]

_GONE: Final = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"


@contextmanager
def kept_rows(rdd: Any) -> Iterator[None]:
    """Use an RDD that is kept by a local checkpoint, and let go of it at the end. It is read before a commit: who finds
    a part of it gone has changed nothing. Raises `LostRaceError` then: another try computes the rows anew."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if not is_told(error, _GONE, f"rdd_{rdd.id()}_"):
            raise
        raise LostRaceError(
            "An executor was lost, and with it rows that were kept for this write.", is_mendable=True
        ) from error
    finally:
        rdd.unpersist(False)
