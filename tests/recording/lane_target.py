"""A target whose lanes have different speeds: `python -m tests.recording.lane_target '{"de": 0.1}'`.

It prints its URL, and serves until its input ends. A request is a JSON array of rows with a field `lane`.
"""

import json
import sys

from tests.servers.web import Received, Reply, web_server


def main(seconds: dict[str, float]) -> None:
    """Serve; a request takes the seconds of its slowest lane."""

    def reply(received: Received) -> Reply:
        found = {row["lane"] for row in json.loads(received.body)}
        return Reply(delay_s=max((seconds.get(lane, 0.0) for lane in found), default=0.0))

    with web_server(reply) as server:
        print(server.url, flush=True)  # noqa: T201 - its caller reads it
        sys.stdin.read()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
