"""Documents with ids into Elasticsearch by the push engine, against `parallel_bulk` of elasticsearch-py."""

import contextlib
import http.client
import json
import statistics
import threading
import time
from urllib.parse import urlsplit

from elasticsearch import Elasticsearch
from elasticsearch.helpers import parallel_bulk

from spark_runner.push.batch import Batch, Record
from spark_runner.push.engine import Engine
from spark_runner.push.errors import Overloaded, Permanent
from spark_runner.push.retry import Results
from spark_runner.push.settings import Limits, Order, PushSettings
from tests.servers import elasticsearch as server_module

BATCH, THREADS, CHUNK = 500, 4, 1000  # those of the helper
ROUNDS = 4  # of which the first warms up the server
JVM = "-Xms1g -Xmx1g"  # with both compilers: that of tests starts quickly, and indexes slowly
OK, BUSY, BROKEN = 300, 429, 500


class Bulk:
    """Bulk requests, on a connection of each thread."""

    def __init__(self, url: str, index: str) -> None:
        self._host, self._port, self._index = urlsplit(url).hostname or "", urlsplit(url).port, index
        self._local = threading.local()

    def deliver(self, batch: Batch) -> Results:
        """Send documents; returns the errors of those that are refused."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = http.client.HTTPConnection(self._host, self._port)
        lines = "".join(
            f'{{"index":{{"_id":"{each.key}"}}}}\n{json.dumps(each.value)}\n' for each in batch.records
        )
        path = f"/{self._index}/_bulk?filter_path=errors,items.*.status"
        connection.request("POST", path, lines.encode(), {"content-type": "application/x-ndjson"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status >= OK:
            raise (Overloaded if answer.status == BUSY else Permanent)(str(answer.status))
        if body.startswith(b'{"errors":false'):
            return None
        statuses = [each["index"]["status"] for each in json.loads(body)["items"]]
        return {
            index: (Overloaded if status in {BUSY, BROKEN} else Permanent)(str(status))
            for index, status in enumerate(statuses)
            if status >= OK
        }


def measure(count: int) -> dict[str, float]:
    """The rate of the engine against that of the helper, each into an index of its own, in turn."""
    found = [
        {"id": n, "name": f"name {n % 97}", "amount": n / 4, "at": "2026-01-02T03:04:05Z"}
        for n in range(count)
    ]
    seconds = {"ours": list[float](), "peer": list[float]()}
    server_module._JVM = JVM  # noqa: SLF001 - tests have no other way, and need none
    with server_module.local_elasticsearch() as url, Elasticsearch(url) as client:
        for number in range(2 * ROUNDS):
            name, index = ("ours", "peer")[number % 2], f"rows-{number}"
            client.indices.create(index=index, settings={"number_of_shards": 1, "refresh_interval": "-1"})
            began = time.monotonic()
            if name == "peer":
                actions = ({"_index": index, "_id": str(each["id"]), "_source": each} for each in found)
                for _ in parallel_bulk(client, actions):
                    pass
            else:
                pushed = PushSettings(order=Order.BY_KEY, batch_records=BATCH, key_groups=2 * THREADS)
                with Engine(Bulk(url, index).deliver, pushed, Limits(concurrency=THREADS)) as engine:
                    for start in range(0, count, CHUNK):
                        part = found[start : start + CHUNK]
                        engine.put([Record(each, 100, key=each["id"]) for each in part], start)
            seconds[name].append(time.monotonic() - began)
            client.indices.refresh(index=index)
            if (seen := client.count(index=index)["count"]) != count:
                raise RuntimeError(f"{name}: {seen} documents of {count}")
            with contextlib.suppress(Exception):
                client.indices.delete(index=index)
    ours, peer = (statistics.median(seconds[name][1:]) for name in ("ours", "peer"))
    return {"parallel_bulk": peer / ours}
