"""The queues without jobs and without Spark, on the server that `orchestrator zookeeper` runs.

Usage: `python examples/queues_alone.py`, or with HOST:PORT of another server.
"""

import sys
from pathlib import Path

from queues import Action, Claim, Done, HandlerPool, Move, NewItem, QueueSet, local_settings

SERVER = Path("~/.local/state/spark-job-orchestrator/zookeeper").expanduser()


def handle(claim: Claim) -> Action:
    """Pack an order, then ship it. After an exception the item is handled again later, up to five times."""
    print(f"{claim.queue}: {claim.id} {dict(claim.payload)}\n", end="")  # one write: other threads print too
    return Move("ship", {**claim.payload, "packed": True}) if claim.queue == "pack" else Done()


zookeeper = sys.argv[1] if len(sys.argv) > 1 else local_settings(SERVER)
with QueueSet.connect(zookeeper, "/shop", ["pack", "ship"]) as queues:
    queues.put("pack", "order-1", {"article": "lamp"})
    queues.put_many("pack", [NewItem({"article": "chair"}, id=f"order-{n}") for n in (2, 3)])
    with HandlerPool(queues, ["ship", "pack"], handle, threads=2) as pool:
        pool.wait_empty(timeout=30)
