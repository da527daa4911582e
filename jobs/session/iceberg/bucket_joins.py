"""Changes of an Iceberg table that is partitioned by buckets of a column, from another such table: bucket by bucket.

Spark joins them so where both scans say how their rows are grouped, and writes without moving rows where the table asks
for no distribution. Both are settings of a session. They are for one statement, and only if the plan that comes of them
moves no row: otherwise each task would write into every bucket.
"""

import re
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lakewarden.jobs.session.iceberg.written_tables import WrittenTable, is_of_a_change, is_row_by_row
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["buckets_of", "join_by_buckets", "told_of_join"]

_SETTINGS: Final = {
    "spark.sql.iceberg.distribution-mode": "none",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.sources.v2.bucketing.allowCompatibleTransforms.enabled": "true",
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
}
_BUCKETS: Final = re.compile(r"bucket\[(\d+)\]")
_DISTRIBUTIONS: Final = (
    "write.distribution-mode",
    *(f"write.{one}.distribution-mode" for one in ("delete", "merge", "update")),
)
_TABLE: Final = "SparkTable"
"""Other tables of Iceberg's tell of its metadata, or of its changes."""
_MOVES_ROWS: Final = ("BroadcastExchangeExec", "ShuffleExchangeExec")
"""A small source that is sent to every task needs no buckets: the table is read in as many parts as Spark likes."""
_ADAPTIVE: Final = "AdaptiveSparkPlanExec"
_DOES: Final = "The {count} buckets of both tables are joined one by one: no row is moved."
_DOES_NOT: Final = "Its buckets are of no use to this statement: rows are moved between tasks."


def join_by_buckets(
    plans: Plans, session: Any, target: WrittenTable, plan: JavaPlan, table: Any
) -> int | None:
    """Have a session, a clone for one statement alone, run an analysed and pinned change of `target`, whose state
    `table` has, bucket by bucket: how many there are; None, and nothing is set, where rows would be moved. What the
    user has set stays."""
    count = buckets_of(plans, target.base.spec())
    if count is None or not is_row_by_row(plan) or _is_laid_out(target.base) or not _has_source(plans, plan):
        return None
    known, conf = session.sessionState().conf(), session.conf()
    chosen = {key: value for key, value in _SETTINGS.items() if not known.contains(key)}
    for key, value in chosen.items():
        conf.set(key, value)
    stays = False
    try:
        stays = not _moves_rows(plans, plans.physical(session, target.placed(plans, plan, table)))
    except (Py4JJavaError, PySparkException):
        pass  # it is run as it is, and says itself what is wrong with it
    finally:
        for key in () if stays else chosen:
            conf.unset(key)
    return count if stays else None


def told_of_join(plans: Plans, session: Any, target: WrittenTable, plan: JavaPlan) -> str | None:
    """What is to be said of an analysed and pinned statement of a table with buckets; None of any other. `session` is a
    clone for this alone."""
    if not is_row_by_row(plan) or buckets_of(plans, target.base.spec()) is None:
        return None
    count = join_by_buckets(plans, session, target, plan, target.table)
    return _DOES_NOT if count is None else _DOES.format(count=count)


def _is_laid_out(base: Any) -> bool:
    """Whether a table's rows do not all lie by its one specification, or its owner says where rows are to go."""
    told = (str(base.properties().getOrDefault(key, "none")).lower() for key in _DISTRIBUTIONS)
    return len(base.specs()) > 1 or any(one != "none" for one in told)


def _has_source(plans: Plans, plan: JavaPlan) -> bool:
    """Whether a change reads another Iceberg table that is partitioned by buckets."""
    return any(
        kind(leaf) == "DataSourceV2Relation"
        and not is_of_a_change(leaf)
        and kind(leaf.table()) == _TABLE
        and buckets_of(plans, leaf.table().table().spec()) is not None
        for leaf in plans.leaves(plan)
    )


def buckets_of(plans: Plans, spec: Any) -> int | None:
    """How many buckets a table has that is partitioned by nothing else; None for any other."""
    told = [_BUCKETS.fullmatch(str(one.transform())) for one in plans.items(spec.fields())]
    return int(told[0][1]) if len(told) == 1 and told[0] is not None else None


def _moves_rows(plans: Plans, plan: JavaPlan) -> bool:
    """Whether a physical plan, as it would begin, sends rows from task to task; what its subqueries do is not asked."""
    for node in plans.nodes(plan):
        name = kind(node)
        # What an adaptive plan is made of (`inputPlan`) is without exchanges yet.
        if name in _MOVES_ROWS or (name == _ADAPTIVE and _moves_rows(plans, node.executedPlan())):
            return True
    return False
