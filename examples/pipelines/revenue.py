"""Orders and their payments, joined, summed up by country every ten seconds; then kept as Parquet.

barnabas run examples/pipelines/revenue.py
"""

import os

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.spark import Files, Topic, pipeline

ORDERS = Topic(
    name="orders",
    schema="id long, country string, total double, at timestamp",
    watermark=("at", "5 seconds"),
    on_bad_record="dead_letter",
)
PAYMENTS = Topic(
    name="payments", schema="order_id long, amount double, paid_at timestamp", watermark=("paid_at", "5 seconds")
)
REVENUE = "start timestamp, country string, orders long, amount double"


@pipeline(reads={"orders": ORDERS, "payments": PAYMENTS}, writes=Topic(name="revenue", key="country"))
def revenue(orders: DataFrame, payments: DataFrame) -> DataFrame:
    paid_in_time = f.expr("id = order_id and paid_at between at and at + interval 10 seconds")
    windows = orders.join(payments, paid_in_time).groupBy(f.window("at", "10 seconds"), "country")
    sums = windows.agg(f.count("*").alias("orders"), f.round(f.sum("amount"), 2).alias("amount"))
    return sums.select(f.col("window.start").alias("start"), "country", "orders", "amount")


@pipeline(
    reads={"revenue": Topic(name="revenue", schema=REVENUE)},
    writes=Files(path=os.environ.get("REVENUE_DIRECTORY", "revenue-parquet")),
)
def archive(revenue: DataFrame) -> DataFrame:
    return revenue.select("start", "country", "orders", "amount")
