"""One scene: two tables with buckets, changed and upserted without sending their rows from task to task."""

from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

import lakewarden
from examples.stage import DIM, END, Demo

__all__ = ["change_by_buckets"]

MAKE = "CREATE TABLE demo.{} USING delta CLUSTERED BY (id) INTO 8 BUCKETS AS {}"
ORDERS = "SELECT id, 'open' AS state, id % 97 AS price FROM range(200000)"
CHANGES = "SELECT 3 * id AS id, 'sent' AS state FROM range(20000)"
UPDATE = "UPDATE demo.orders SET state = order_changes.state FROM demo.order_changes WHERE orders.id = order_changes.id"
EXCHANGE = "Exchange "


def change_by_buckets(spark: SparkSession, demo: Demo) -> None:
    """An UPDATE of one by the other; then an upsert, whose new rows go into their buckets, too."""
    demo.chapter("12. Buckets: two tables are joined without an exchange")
    with lakewarden.attach(spark, home=demo.home) as lw:
        for name, query in (("orders", ORDERS), ("order_changes", CHANGES)):
            print(f"{DIM}lw.sql:{END} {MAKE.format(name, query)}")
            lw.sql(MAKE.format(name, query))
        print(f"{DIM}lw.sql:{END} EXPLAIN GOVERNED {UPDATE}")
        print(f"  {lw.sql(f'EXPLAIN GOVERNED {UPDATE}').collect()[0]['notes']}")
        before = executions(spark)
        (counts,) = lw.sql(UPDATE).collect()
        ran = [plan for number, plan in executions(spark).items() if number not in before]
        exchanges = sum(plan.count(EXCHANGE) for plan in ran if "_delta_log" not in plan)
        print(f"{counts['num_updated_rows']:,} of 200,000 orders updated, with {exchanges} exchanges.")
        if exchanges:
            raise SystemExit("Rows were exchanged.")
        more = spark.range(199_000, 201_000).selectExpr("id", "'new' AS state", "id % 97 AS price")
        done = lw.upsert(more, "demo.orders", ["id"])
    files = [Path(one).name for one in DeltaTable(str(demo.lake / "demo.db" / "orders")).file_uris()]
    placed = sum(one.startswith("lw8-") for one in files)
    print(
        f"Upserted: {done.rows_updated:,} rows updated, {done.rows_inserted:,} inserted; "
        f"{placed} of {len(files)} files are in a bucket."
    )
    if placed < len(files) or (done.rows_updated, done.rows_inserted) != (1_000, 1_000):
        raise SystemExit("The upsert did not leave each row in its bucket.")


def executions(spark: SparkSession) -> dict[int, str]:
    """The plans that Spark has run so far, as far as it remembers them, by their numbers."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    each = (found.apply(number) for number in range(found.size()))
    return {int(one.executionId()): str(one.physicalPlanDescription()) for one in each}
