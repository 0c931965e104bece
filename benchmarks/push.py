"""The push engine against a target of its own, and against a hand-written push. Last line: JSON.

`foreach`: 50,000 records in order by key, batches of 100, a target with a latency of 20 ms: the rate against
that of one request at a time, as in `foreachPartition`.
`window`: the same, as a share of the requests in flight: 1 if each follows the one before without a pause.
`parallel_bulk`: documents with ids into Elasticsearch, against the helper of elasticsearch-py (`--bulk`).
`slow_lane_loss`: ten lanes, of which one takes 100 times as long: how much later the nine others are
delivered, 0 for no loss.
`stop_seconds`, `recover_seconds`: a target that takes a tenth of what comes: when reading stops, and when it
is at 90 % of its speed after the target is as fast as before; `buffer` and `memory`: the most that was
buffered, and by how much the memory of the process grew, as shares of `buffer_bytes`.
`adjust_p99_seconds`: from a change of the limits in the driver to its effect in each of 20 tasks;
`control_share`: the processor share of the channel of one of them.
`lost`, `out_of_order`, `dead`: 1 % errors, 1 % requests without an answer, 0.1 % records that are refused.

    python benchmarks/push.py [--records 50000] [--concurrency 8] [--rounds 3] [--slow-seconds 60] [--bulk]
"""

import argparse
import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import push_adjust
import push_bulk
import push_rounds
from quiet import Stolen, wait_idle


def main() -> None:
    """Measure, and print the medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slow-seconds", type=float, default=10)
    parser.add_argument("--bulk", action="store_true")
    given = parser.parse_args()
    found, stolen = defaultdict[str, list[float]](list), Stolen()
    with push_rounds.target() as to:
        for _ in range(given.rounds):
            wait_idle()
            one = {
                **push_rounds.throttled(to, given.slow_seconds),
                **push_rounds.window(to, given.records, given.concurrency),
                **push_rounds.slow_lane(to, given.records),
                **push_rounds.faults(to, given.records),
                **push_adjust.measure(),
                **(push_bulk.measure(given.records) if given.bulk else {}),
            }
            print(" ".join(f"{name} {value:.3f}" for name, value in one.items()), flush=True)
            for name, value in one.items():
                found[name].append(value)
    print(f"stolen: {stolen.share():.2f}")
    result = {name: round(statistics.median(values), 3) for name, values in found.items()}
    print(json.dumps({**result, **{name: max(found[name]) for name in ("lost", "out_of_order")}}))


if __name__ == "__main__":
    main()
