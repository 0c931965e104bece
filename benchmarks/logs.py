"""Logs from the call to Elasticsearch, compared with the client's helper, prepared bodies and a plain file.

One run on one real Elasticsearch (`ELASTICSEARCH_URL`, else that of the tests), peers and ours in turn:

    ratio.streaming_bulk   documents/s of draining a spool, ours / elasticsearch.helpers.streaming_bulk
    ratio.prepared         the same, ours / bodies prepared in memory, over two connections
    ratio.call_p50         median of a log call at 1,000 records/s, ours at its worst / loguru's file sink
    call.spread            of the medians with the server up, slow, hanging and down: largest / smallest
    job.seconds            from the end of a job that printed 10 MB until all its lines are found
    memory.more_mib        memory of the process with a shipper minus that without it, for a million documents

    python benchmarks/logs.py [--documents 500000] [--rounds 3] [--seconds 5] [--backlog 1000000]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import log_calls
import log_job
import log_site
from quiet import Stolen, wait_idle

from orchestrator.logs.shipping.elasticsearch import ElasticsearchTarget
from orchestrator.logs.shipping.http import Http
from orchestrator.logs.shipping.shipper import Shipper

_BATCH = 2_000  # documents of a prepared body
_DRAIN_SECONDS = 900


def main() -> None:
    """Measure everything, and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--documents", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement of calls")
    parser.add_argument("--backlog", type=int, default=1_000_000)
    options = parser.parse_args()
    stolen = Stolen()
    with log_site.elasticsearch() as url:
        drains = _drains(url, options.documents, options.rounds)
        memory = _memory(url, options.backlog)
        job = log_job.measure(url)
        calls = log_calls.measure(url, options.seconds, 2 * options.rounds)
    ours = drains["ours"]
    result = {
        "ratio": {
            "streaming_bulk": round(ours / drains["streaming_bulk"], 2),
            "prepared": round(ours / drains["prepared"], 2),
            "call_p50": calls.pop("ratio_p50"),
        },
        "documents_per_second": {name: round(value) for name, value in drains.items()},
        "document_bytes": log_site.DOCUMENT_BYTES,
        "call": calls,
        "memory": memory,
        "job": job,
        "stolen": round(stolen.share(), 3),
    }
    print(json.dumps(result))


# ---------------------------------------------------------------------- draining
def _drains(url: str, count: int, rounds: int) -> dict[str, float]:
    ways: dict[str, Callable[[str, str, int], float]] = {
        "streaming_bulk": _streaming_bulk,
        "prepared": _prepared,
        "ours": _ours,
    }
    for way in (_prepared, _prepared):  # after which the server's compiler has optimized bulk requests
        _one(url, way, count // 2)
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name, way in ways.items():
            wait_idle()
            found[name].append(_one(url, way, count))
            print(f"round {number + 1}: {name:<15} {found[name][-1]:>9,.0f} documents/s", flush=True)
    return {name: statistics.median(values) for name, values in found.items()}


def _one(url: str, way: Callable[[str, str, int], float], count: int) -> float:
    """Documents per second into a new index, which must have exactly these documents at the end."""
    alias = f"bench-{uuid.uuid4().hex[:8]}"
    ElasticsearchTarget(Http([url]), alias).prepare()
    seconds = way(url, alias, count)
    there = log_site.count(url, alias)
    if there != count:
        raise SystemExit(f"{alias} has {there:,} documents, not {count:,}")
    log_site.remove_all(url, alias)
    return count / seconds


def _streaming_bulk(url: str, alias: str, count: int) -> float:
    from elasticsearch import Elasticsearch  # noqa: PLC0415 - the peer
    from elasticsearch.helpers import streaming_bulk  # noqa: PLC0415 - likewise

    client = Elasticsearch(url)
    actions = (
        {"_op_type": "create", "_index": f"{alias}-2026-11-22", "_id": f"p-{number:x}", "_source": document}
        for number, document in enumerate(log_site.documents(count))
    )
    began = perf_counter()
    for ok, _ in streaming_bulk(client, actions):
        if not ok:
            raise SystemExit("a document was refused")
    return perf_counter() - began


def _prepared(url: str, alias: str, count: int) -> float:
    bodies = iter(log_site.bodies(alias, count, _BATCH))
    http, guard = Http([url]), threading.Lock()

    def send() -> None:
        while True:
            with guard:
                body = next(bodies, None)
            if body is None:
                return
            path = "/_bulk?filter_path=errors"
            answer = http.request("POST", path, body, content_type="application/x-ndjson")
            if answer.body != {"errors": False}:
                raise SystemExit(f"a body was refused: {answer.words()}")

    threads = [threading.Thread(target=send) for _ in range(2)]
    began = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return perf_counter() - began


def _ours(url: str, alias: str, count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "logs", "spool")
        log_site.fill(root, alias, count)
        wait_idle()
        began = perf_counter()
        shipper = Shipper(root, ElasticsearchTarget(Http([url]), alias))
        shipper.adopt()
        shipper.start()
        if not shipper.close(_DRAIN_SECONDS):
            raise SystemExit(f"not drained: {shipper.status()}")
        return perf_counter() - began


# ---------------------------------------------------------------------- memory
def _memory(url: str, count: int) -> dict[str, float]:
    alias = f"bench-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "logs", "spool")
        log_site.fill(root, alias, count)
        command = [sys.executable, str(Path(__file__).with_name("log_memory.py")), str(root), url, alias]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    log_site.remove_all(url, alias)
    return dict(json.loads(found.splitlines()[-1]))


if __name__ == "__main__":
    main()
