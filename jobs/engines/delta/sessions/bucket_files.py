"""How files of a bucketed table are written: what a session has to set so that each is named after its bucket.

Delta calls a file after the task that wrote it (`part-00003-...`), and Spark's exchange into n parts gives task i the
rows with `pmod(hash(columns), n) = i`. So rows that come out of such an exchange, and a setting that says how the names
of files begin, are all that it takes. Nobody may put another exchange on top of it, nor make fewer parts of it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from lakewarden.catalog.model.bucket_layout import BucketLayout

__all__ = ["as_set", "naming"]

_FILE_NAMES: Final = "spark.databricks.delta.testOnly.dataFileNamePrefix"
"""Delta 4.4 has no other door to the names of its files. Where it has none, files name no bucket, and nothing is wrong.
Spark calls the setting a static one, but reads it from the session, and from there in each task."""
_EXCLUDED: Final = "spark.sql.optimizer.excludedRules"
_FEWER_PARTS: Final = "org.apache.spark.sql.catalyst.optimizer.OptimizeRepartition"
"""Makes one part of rows that have one constant key: that part is the first, whatever bucket they belong to."""
_REARRANGING: Final = (
    "spark.databricks.delta.optimizeWrite.enabled",
    "spark.databricks.delta.autoCompact.enabled",
)


def naming(session: Any, layout: BucketLayout) -> Mapping[str, str]:
    """What a session has to set so that it names files after their buckets, and leaves them as they are written."""
    rules = [rule for rule in (session.conf().get(_EXCLUDED, ""), _FEWER_PARTS) if rule]
    return {_EXCLUDED: ",".join(rules), **dict.fromkeys(_REARRANGING, "false"), _FILE_NAMES: layout.mark}


@contextmanager
def as_set(session: Any, wanted: Mapping[str, str]) -> Iterator[None]:
    """Have a session set up so in the block, and as it was after it."""
    conf = session.sessionState().conf()
    before = {key: conf.getConfString(key) if conf.contains(key) else None for key in wanted}
    try:
        for key, value in wanted.items():
            conf.setConfString(key, value)
        yield
    finally:
        for key, earlier in before.items():
            if earlier is None:
                conf.unsetConf(key)
            else:
                conf.setConfString(key, earlier)
