"""Sends flights to a service: a lane for each carrier, and the flights of each plane in their order.

    orchestrator job submit push_flights.yaml

The first argument is the URL of the service, which takes lines of JSON.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pyspark.sql import Row, SparkSession

from spark_runner.push import Limits, Order, Overloaded, Permanent, Pusher, PushSettings, Retryable

FLIGHTS = Path(__file__).with_name("data") / "flights.parquet"
TIMEOUT_S = 10
BUSY, BROKEN = {429, 503}, 500


class FlightPusher(Pusher):
    """Sends a batch of flights in one request."""

    def __init__(self, url: str) -> None:
        self.url = url

    def lane(self, row: Row) -> str:
        """The flights of a carrier share a queue, and a slow one delays no other."""
        return str(row.carrier)

    def key(self, row: Row) -> Any:
        """The flights of a plane stay in their order."""
        return row.tailnum

    def push(self, rows: Sequence[Row]) -> None:
        """Send the rows; the type of an error says what follows it."""
        lines = "".join(f"{json.dumps(row.asDict(), default=str)}\n" for row in rows)
        request = Request(self.url, lines.encode(), {"Content-Type": "application/x-ndjson"})
        try:
            urlopen(request, timeout=TIMEOUT_S).close()
        except HTTPError as error:
            words = f"HTTP {error.code}"
            if error.code in BUSY:
                raise Overloaded(words, float(error.headers.get("Retry-After", 0))) from error
            raise (Retryable if error.code >= BROKEN else Permanent)(words) from error


def main(url: str, rows: int = 2000) -> None:
    """Push the first flights."""
    spark = SparkSession.builder.getOrCreate()
    flights = spark.read.parquet(str(FLIGHTS)).select("time_hour", "carrier", "flight", "tailnum").limit(rows)
    # What keeps its order must be in one partition, in this order.
    divided = flights.repartition(4, "carrier").sortWithinPartitions("time_hour", "flight")
    settings = PushSettings(order=Order.BY_KEY, batch_records=100)
    done = FlightPusher(url).run(divided, "flights", settings, Limits(concurrency=8))
    print(f"{done.delivered} flights are delivered, {done.dead.count()} are refused")


if __name__ == "__main__":
    main(sys.argv[1])
